"""Trains balance.py on 4 ranks, makes one of them slow with `falcon inject`, and shows what Falcon sees and does.

Ends with 0 only if exactly that rank was named, work moved away from it, and that undone after its recovery.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RANKS = "4"
SHOWN = "period-known baseline-taken onset suspicion verdict mitigation-applied relief mitigation-undone".split()


class Failed(Exception):
    pass


def objects_in(path):
    """Whole lines only: the last one may be in the making."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


class Job:
    def __init__(self, launcher, folder, options):
        self.events_file, self.times_file, self.enough = folder / "events", folder / "times", folder / "enough"
        self.name = f"pytorch-demo-{os.getpid()}"
        self.began, self.shown = time.monotonic(), 0
        settings = {
            "NCCL_FALCON": "1",
            "NCCL_FALCON_MITIGATE": "auto",
            "NCCL_FALCON_EVENTS": str(self.events_file),
            "NCCL_FALCON_JOB": self.name,
            "OMP_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [*launcher, HERE / "balance.py", *options, "--until", self.enough, "--times", self.times_file],
            env={**os.environ, **settings},
        )

    def events(self):
        return objects_in(self.events_file)

    def say(self, at, text):
        print(f"{at - self.began:7.1f} s  {text}", flush=True)

    def show(self):
        """Prints what is new."""
        events = self.events()
        for event in events[self.shown :]:
            if event["kind"] in SHOWN:
                self.say(event["time_s"], f"{event['kind']:18}  {event['text']}")
        self.shown = len(events)

    def wait_for(self, kind, longest):
        """The first event of the kind."""
        end = time.monotonic() + longest
        while True:
            ended = self.process.poll() is not None
            self.show()
            for event in self.events():
                if event["kind"] == kind:
                    return event
            if ended:
                raise Failed(f"the job ended with {self.process.returncode} before {kind}")
            if time.monotonic() > end:
                raise Failed(f"no {kind} within {longest} s")
            time.sleep(0.2)

    def end(self):
        """Lets it end after this iteration."""
        self.enough.touch()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            raise Failed("the job has not ended within 30 s") from None
        if code != 0:
            raise Failed(f"the job ended with {code}")

    def iterations(self, begin, end):
        chosen = [each for each in objects_in(self.times_file) if begin <= each["start"] and each["end"] <= end]
        if not chosen:
            raise Failed(f"no iteration lies within {begin - self.began:.1f} s to {end - self.began:.1f} s")
        return chosen


def injected(falcon, job, rank, factor):
    return subprocess.Popen(
        [falcon, "inject", "slow-rank", "--job", job.name, "--rank", str(rank), "--factor", str(factor)],
        stdout=subprocess.DEVNULL,
    )


def end_of(process):
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    return process.wait(30)


def milliseconds(iterations):
    return statistics.median(each["end"] - each["start"] for each in iterations) * 1000


def story(falcon, job, arguments):
    job.wait_for("baseline-taken", 40)
    time.sleep(arguments.healthy)
    injection_began = time.monotonic()
    job.say(injection_began, f"--> rank {arguments.rank} gets 1/{arguments.factor:g} of its processor time")
    injection = injected(falcon, job, arguments.rank, arguments.factor)
    try:
        applied = job.wait_for("mitigation-applied", 30)
        time.sleep(arguments.slow)
    finally:
        injection_ended = time.monotonic()
        outcome = end_of(injection)
    job.say(injection_ended, f"--> rank {arguments.rank} gets it back")
    if outcome != 0:
        raise Failed(f"falcon inject ended with {outcome}: the rank was not slowed as asked")
    undone = job.wait_for("mitigation-undone", 30)
    time.sleep(arguments.healthy)
    ended = time.monotonic()
    job.end()
    onset, held = job.wait_for("onset", 0), job.wait_for("trap-closed", 0)
    verdicts = [event for event in job.events() if event["kind"] == "verdict"]
    told = [(event["culprit"]["kind"], event["culprit"].get("rank")) for event in verdicts]
    if told != [("rank", arguments.rank)]:
        raise Failed(f"the verdicts name {told}, not rank {arguments.rank} alone")
    stages = (
        ("healthy", injection_began - arguments.healthy, injection_began),
        ("slow", onset["time_s"], held["time_s"]),
        ("worked around", applied["time_s"], injection_ended),
        ("recovered", undone["time_s"], ended),
    )
    for name, begin, end in stages:
        iterations = job.iterations(begin, end)
        print(f"{name:14} {milliseconds(iterations):6.0f} ms an iteration, micro-batches {iterations[-1]['split']}")
    whole = objects_in(job.times_file)
    print(f"loss {whole[0]['loss']:.3f} to {whole[-1]['loss']:.3f} in {len(whole)} iterations")
    uneven = job.iterations(applied["time_s"], injection_ended)[-1]["split"]
    slow = uneven[arguments.rank // arguments.stages]
    if slow != min(uneven) or slow == max(uneven):
        raise Failed(f"no work was moved away from rank {arguments.rank}: {uneven}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", default=2, type=int, help="who turns slow")
    parser.add_argument("--factor", default=3, type=float, help="it gets its processor time divided by this")
    parser.add_argument("--stages", default=1, type=int, choices=[1, 2], help="of a pipeline; 1: each rank has a whole model")
    parser.add_argument("--seconds", default=150, type=float, help="how long the job trains at most")
    parser.add_argument("--healthy", default=5, type=float, help="seconds before the injection, and at the end")
    parser.add_argument("--slow", default=10, type=float, help="seconds from the remedy to the injection's end")
    parser.add_argument(
        "--quota",
        action="store_true",
        help="falcon run --cgroups starts the ranks, and a quota of the kernel slows the one; else torchrun starts them, "
        "and its process is stopped in turns",
    )
    parser.add_argument("--falcon", default=ROOT / "build/release/bin/falcon", help="the tool")
    arguments = parser.parse_args()
    falcon = shutil.which(arguments.falcon)
    if falcon is None:
        parser.error(f"there is no tool {arguments.falcon}: run scripts/build, or name it with --falcon")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS]
    if arguments.quota:
        launcher = [falcon, "run", "-n", RANKS, "--cgroups", "--bind", "none", "--", sys.executable]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--seconds", str(arguments.seconds), "--stages", str(arguments.stages)]
        job = Job(launcher, Path(folder), options)
        try:
            story(falcon, job, arguments)
        except Failed as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
        finally:
            end_of(job.process)
    return 0


if __name__ == "__main__":
    sys.exit(main())
