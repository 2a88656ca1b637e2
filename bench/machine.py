"""Describes the machine, so that figures can be read."""

import os
import platform
import re
import subprocess


def describe():
    cpu = _read("/proc/cpuinfo")
    memory = re.search(r"MemTotal:\s+(\d+)", _read("/proc/meminfo"))
    model = re.search(r"model name\s*:\s*(.+)", cpu)
    pages = re.search(r"\[(\w+)\]", _read("/sys/kernel/mm/transparent_hugepage/enabled"))
    system = re.search(r'PRETTY_NAME="(.+)"', _read("/etc/os-release"))
    return {
        "processor": model.group(1) if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "caches": _caches(),
        "memory": f"{int(memory.group(1)) / (1 << 20):.0f} GiB" if memory else "?",
        "virtual machine": "yes" if " hypervisor" in cpu else "no",
        "huge pages": pages.group(1) if pages else "?",
        "kernel": platform.release(),
        "system": system.group(1) if system else "?",
        "peers": ", ".join(f"{name} {_package(package)}" for name, package in
                           (("Open MPI", "openmpi-bin"), ("MPICH", "mpich"), ("Gloo", "libgloo-dev"))),
    }


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _caches():
    found = []
    for level in range(4):
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{level}"
        if _read(f"{folder}/type").strip() != "Instruction" and os.path.exists(folder):
            found.append(f"L{_read(f'{folder}/level').strip()} {_read(f'{folder}/size').strip()}")
    return ", ".join(found)


def _package(name):
    return _output("dpkg-query", "-W", "-f=${Version}", name)


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "?"
