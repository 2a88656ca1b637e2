#!/usr/bin/env python3
"""What Falcon costs a training: the demo trainer with NCCL_FALCON=0 and 1 in turns. Run by `scripts/bench --training`.

Two figures, of the same runs:
- pairs: iterations' wall and CPU time with Falcon over those without, with the 95 % confidence interval of the mean
  over the pairs. Who goes first alternates.
- by formula: (calls x time of a call's hook + CPU time of Falcon's monitor thread) / CPU time of the process, while the
  healthy baseline is profiled and while the job is tracked. It resolves what the pairs cannot on a machine with noise.
"""

import argparse
import json
import math
import mmap
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import command_line
import machine
import measured_code

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARIES = os.path.join(ROOT, "build", "release", "bin")
RESULTS = os.path.join(ROOT, "build", "bench", "results", "training.jsonl")
MONITOR = "nccl-falcon-mon"
POLL_SECONDS = 0.1
AIM = {"tracking": 0.1, "profiling": 1.0}  # percent
# Of a call's log entry and end: the aim, which is the upper limit of what bench_call_log shows.
HOOK_NANOSECONDS = 100
# In the header of the call log (docs/call-log.md).
CALLS_OFFSET = 248


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench --training", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15, help="%(default)s")
    parser.add_argument("--seconds", type=float, default=15, help="of each run; %(default)s")
    parser.add_argument("--skip", type=float, default=5, help="seconds at a run's start that do not count; %(default)s")
    parser.add_argument("--ranks", type=int, default=2, help="replicas; %(default)s")
    parser.add_argument("--micro-batches", type=int, default=4, help="of an iteration, over all replicas; %(default)s")
    parser.add_argument("--hook-ns", type=float, help="of a call's hook; default: as bench_call_log shows, else "
                        f"{HOOK_NANOSECONDS}")
    parser.add_argument("--output", default=RESULTS, help="JSON lines file of the pairs; %(default)s")
    parser.add_argument("--resume", action="store_true", help="go on with that file until it has that many pairs; those of other commits are kept, and marked")
    return command_line.parsed(parser)


def ranks_of(job):
    """The trainer's processes of that job."""
    mark = f"NCCL_FALCON_JOB={job}".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() != "falcon-train":
                    continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            continue
    return found


def cpu_seconds(pid):
    """Of the process's monitor thread and of all its threads."""
    monitor = total = 0
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return None
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                spent = int(file.read().split()[0]) * 1e-9
            with open(f"/proc/{pid}/task/{thread}/comm") as file:
                name = file.read().strip()
        except (OSError, IndexError):
            continue
        total += spent
        if name == MONITOR:
            monitor += spent
    return monitor, total


def calls_of(folder, rank):
    try:
        with open(os.path.join(folder, f"rank-{rank}.calls"), "rb") as file:
            with mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as header:
                return struct.unpack_from("<Q", header, CALLS_OFFSET)[0]
    except (OSError, ValueError):
        return 0


def phase_of(folder):
    try:
        with open(os.path.join(folder, "events.jsonl")) as file:
            kinds = re.findall(r'"(?:kind|event)": *"([a-z-]+)"', file.read())
    except OSError:
        return "starting"
    if "baseline-taken" in kinds:
        return "tracking" if not {"onset", "pattern-changed"} & set(kinds) else "other"
    return "profiling" if "period-known" in kinds else "starting"


class Run:
    """One job, watched from outside."""

    def __init__(self, watching, arguments):
        self.watching = watching
        self.spent = {}  # by phase: seconds of the monitor thread and of all, calls
        name = f"bench-training-{os.getpid()}"
        folder = f"/dev/shm/nccl-falcon-{os.getuid()}/{name}"
        with tempfile.TemporaryDirectory(prefix="falcon-bench-") as scratch:
            log = os.path.join(scratch, "log")
            environment = {**os.environ, "NCCL_FALCON": str(int(watching)), "NCCL_FALCON_JOB": name,
                           "NCCL_FALCON_VALIDATE": "off"}
            command = [os.path.join(BINARIES, "falcon"), "run", "-n", str(arguments.ranks), "--",
                       os.path.join(BINARIES, "falcon-train"), "--dp", str(arguments.ranks),
                       "--micro-batches", str(arguments.micro_batches), "--iterations", "1000000",
                       "--duration", str(arguments.seconds), "--quiet", "--log", log]
            with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as job:
                try:
                    self._watch(job, name, folder, arguments)
                finally:
                    if job.poll() is None:
                        job.terminate()
            if job.returncode:
                raise RuntimeError(f"the trainer ended with exit code {job.returncode}")
            with open(log) as file:
                self._read(file, arguments.skip)
        shutil.rmtree(folder, ignore_errors=True)

    def _watch(self, job, name, folder, arguments):
        before, phase_before, pids = None, None, []
        end = time.monotonic() + 10 * arguments.seconds + 60
        self.cpu = []  # (time, CPU seconds of all ranks)
        while job.poll() is None:
            if time.monotonic() > end:
                raise RuntimeError("the trainer does not end")
            phase = phase_of(folder)  # also where nobody watches: both runs are looked at as often
            if len(pids) < arguments.ranks:
                pids = ranks_of(name)
            spent = [cpu_seconds(pid) for pid in pids]
            now = None
            if len(pids) == arguments.ranks and all(spent):
                calls = sum(calls_of(folder, rank) for rank in range(arguments.ranks))
                now = (sum(one for one, _ in spent), sum(both for _, both in spent), calls)
                self.cpu.append((time.monotonic(), now[1]))
            if now and before and phase == phase_before:
                sums = self.spent.setdefault(phase, [0, 0, 0])
                for place, (new, old) in enumerate(zip(now, before)):
                    sums[place] += new - old
            before, phase_before = now, phase
            time.sleep(POLL_SECONDS)

    def _read(self, log, skip):
        lines = [json.loads(line) for line in log]
        begin = lines[0]["start"] + skip
        starts = [line["start"] for line in lines if line["start"] >= begin]
        if len(starts) < 10:
            raise RuntimeError("too few iterations: give --seconds more")
        self.seconds = (starts[-1] - starts[0]) / (len(starts) - 1)
        within = [(moment, spent) for moment, spent in self.cpu if starts[0] <= moment <= starts[-1]]
        if len(within) < 10:
            raise RuntimeError("the CPU time of the trainer's threads cannot be read")
        span = within[-1][0] - within[0][0]
        self.cpu_seconds = (within[-1][1] - within[0][1]) / span * self.seconds

    def record(self):
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "spent": self.spent}


def hook_nanoseconds(arguments):
    if arguments.hook_ns:
        return arguments.hook_ns, "as given"
    program = os.path.join(BINARIES, "bench_call_log")
    if not os.path.exists(program):
        return HOOK_NANOSECONDS, "the aim; build bench_call_log to measure it"
    text = subprocess.run([program, "--benchmark_filter=hookOfACall", "--benchmark_format=json"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return json.loads(text)["benchmarks"][0]["cpu_time"], "measured"


def student(degrees):
    """97.5 % quantile of Student's t distribution (Cornish-Fisher; within 0.2 % from five degrees on)."""
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2) + (
        3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)


def interval(pairs, key):
    """Mean change in percent and its 95 % confidence interval."""
    logs = [math.log(pair["with"][key] / pair["without"][key]) for pair in pairs]
    middle = statistics.fmean(logs)
    half = student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return [100 * math.expm1(value) for value in (middle, middle - half, middle + half)]


def report(pairs, arguments):
    nanoseconds, source = hook_nanoseconds(arguments)
    description = machine.describe()
    print(f"{len(pairs)} pairs of {arguments.seconds:g} s, {arguments.ranks} replicas on {description['cores']} cores "
          f"({description['processor']}), iterations of "
          f"{1e3 * statistics.median(pair['without']['seconds'] for pair in pairs):.1f} ms\n")
    marks = measured_code.Marks(pairs)
    print(f"{marks.legend()}\n")
    print("| with Falcon against without | mean | 95 % confidence |\n|---|---:|---:|")
    for key, text in (("seconds", "iteration time"), ("cpu_seconds", "CPU time of an iteration")):
        mean, low, high = interval(pairs, key)
        print(f"| {text}{marks.of(*pairs)} | {mean:+.2f} % | {low:+.2f} to {high:+.2f} % |")
    print(f"\nBy formula, {nanoseconds:.0f} ns a call ({source}):\n")
    print("| | CPU time | calls | calls' share | monitor's share | together | aim |\n|---|---:|---:|---:|---:|---:|---:|")
    for phase, aim in AIM.items():
        monitor, total, calls = (sum(pair["with"]["spent"].get(phase, [0, 0, 0])[place] for pair in pairs)
                                 for place in range(3))
        if not total:
            continue
        shares = [100 * calls * nanoseconds * 1e-9 / total, 100 * monitor / total]
        print(f"| {phase}{marks.of(*pairs)} | {total:.0f} s | {calls} | {shares[0]:.4f} % | {shares[1]:.3f} % | {sum(shares):.3f} % | "
              f"{aim:g} % |")


def main():
    arguments = parse_arguments()
    os.makedirs(os.path.dirname(os.path.abspath(arguments.output)), exist_ok=True)
    pairs = []
    if arguments.resume and os.path.exists(arguments.output):
        with open(arguments.output) as file:
            pairs = [json.loads(line) for line in file]
    code = measured_code.of_tree(ROOT)
    warning = measured_code.resuming(pairs, code)
    if warning:
        print(f"{arguments.output}: {warning}", file=sys.stderr, flush=True)
    with open(arguments.output, "a" if arguments.resume else "w") as file:
        while len(pairs) < arguments.pairs:
            order = ("without", "with") if len(pairs) % 2 == 0 else ("with", "without")
            pair = {name: Run(name == "with", arguments).record() for name in order}
            pair |= measured_code.as_fields(code)
            pairs.append(pair)
            file.write(json.dumps(pair) + "\n")
            file.flush()
            print(f"pair {len(pairs)}: {1e3 * pair['without']['seconds']:.2f} ms without, "
                  f"{1e3 * pair['with']['seconds']:.2f} ms with", file=sys.stderr, flush=True)
    if len(pairs) < 3:
        print("scripts/bench --training: a confidence interval takes three pairs", file=sys.stderr)
        return 2
    report(pairs, arguments)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (RuntimeError, OSError) as failure:
        print(f"scripts/bench --training: {failure}", file=sys.stderr)
        sys.exit(1)
