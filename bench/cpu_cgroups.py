"""A cpu cgroup for every rank of a peer, as `falcon run --cgroups` makes them for ours."""

import os
import time


def controller():
    """Folder in which groups can be made, of version 1 or 2."""
    with open("/proc/self/mounts") as mounts:
        fields = [line.split() for line in mounts]
    own = own_path()
    for _, path, kind, options, *_ in fields:
        if kind == "cgroup" and "cpu" in options.split(","):
            inner = os.path.normpath(path + own)
            return inner if os.path.exists(inner + "/cgroup.procs") else path
    for _, path, kind, *_ in fields:
        if kind == "cgroup2" and "cpu" in open(path + "/cgroup.controllers").read().split():
            return path
    raise RuntimeError("no cpu cgroup controller is mounted on this machine; leave out --cgroups")


def own_path():
    with open("/proc/self/cgroup") as lines:
        for line in lines:
            _, names, path = line.rstrip("\n").split(":", 2)
            if "cpu" in names.split(","):
                return path
    return "/"


class CpuCgroups:
    """Use as a context manager: the groups go at its end."""

    def __enter__(self):
        self.top = os.path.join(controller(), f"bench-{os.getpid()}")
        self.jobs = 0
        self.groups = []
        self._make(self.top, 8)
        return self

    def __exit__(self, *exception):
        for group in reversed(self.groups):
            for _ in range(500):  # an ended process leaves its group only once the kernel has taken it apart
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    time.sleep(0.01)

    def place(self, pids):
        """Each of these processes into a new group, all with equal shares, inside one group for the job."""
        self.jobs += 1
        job = self._make(os.path.join(self.top, f"job{self.jobs}"), len(pids))
        for rank, pid in enumerate(pids):
            group = self._make(os.path.join(job, f"rank{rank}"), 1)
            with open(os.path.join(group, "cgroup.procs"), "w") as procs:
                procs.write(str(pid))

    def _make(self, path, shares):
        parent = os.path.dirname(path)
        if os.path.exists(parent + "/cgroup.subtree_control"):
            with open(parent + "/cgroup.subtree_control", "w") as control:
                control.write("+cpu")
        os.mkdir(path)
        self.groups.append(path)
        first = os.path.exists(path + "/cpu.shares")
        with open(path + ("/cpu.shares" if first else "/cpu.weight"), "w") as weight:
            weight.write(str((1024 if first else 100) * shares))
        return path
