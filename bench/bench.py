#!/usr/bin/env python3
"""Compares NCCL Falcon's host engine with Open MPI, MPICH and Gloo; see README.md in this folder. Run by scripts/bench."""

import argparse
import contextlib
import dataclasses
import os
import shlex
import signal
import statistics
import sys
import time

import cells
import chart
import command_line
import document
import libraries
import machine
import measured_code
import pairing
import store
import summary
from cpu_cgroups import CpuCgroups
from job import JobFailed

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "bench")


@dataclasses.dataclass(frozen=True)
class Effort:
    sizes: list
    seconds: float  # of each measurement; every cell takes a few dozen
    pairs: int  # of every cell with each contender; an even number, so that each goes first as often
    contenders: int  # peers that may turn out best, at most
    closeness: float  # how near to the best one's first time they are


LEAST_PAIRS = 5
QUICK = Effort(cells.QUICK_SIZES, 0.03, 10, 2, 1.25)
FULL = Effort(cells.FULL_SIZES, 0.1, 14, 3, 1.5)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_true", help="five sizes (the default)")
    amount.add_argument("--full", action="store_true", help="twelve sizes, 8 B to 128 MiB")
    parser.add_argument("--cgroups", action="store_true", help="each rank in a cpu cgroup of its own, peers' too")
    parser.add_argument("--collectives", default=",".join(cells.COLLECTIVES), help="comma list; %(default)s")
    parser.add_argument("--ranks", default=",".join(map(str, cells.RANKS)), help="comma list; %(default)s")
    parser.add_argument("--transport", default=",".join(cells.TRANSPORTS), help="shm, tcp or both; %(default)s")
    parser.add_argument("--sizes", help="comma list such as 8,64K,1M")
    parser.add_argument("--peers", help="comma list: " + ", ".join(peer.name for peer in libraries.PEERS))
    parser.add_argument("--pairs", type=int, help=f"interleaved pairs of every cell, at least {LEAST_PAIRS}")
    parser.add_argument("--seconds", type=float, help="of each measurement")
    parser.add_argument("--no-watching", action="store_true", help="leave out the comparison of NCCL_FALCON=1 with =0")
    parser.add_argument("--output", help="JSON lines file of the results")
    parser.add_argument("--resume", action="store_true", help="go on with that file; what other commits gave is kept, and marked")
    parser.add_argument("--document", action="store_true",
                        help="write docs/performance.md although the run was filtered (a run of all cells does)")
    return command_line.parsed(parser)


def chosen(text, known, convert=str):
    values = [convert(word) for word in text.split(",")]
    unknown = [value for value in values if known and value not in known]
    if unknown:
        raise ValueError(f"{unknown[0]}: not one of {', '.join(map(str, known))}")
    return values


def say(text):
    print(text, file=sys.stderr, flush=True)


class Run:
    def __init__(self, arguments):
        if arguments.pairs is not None and arguments.pairs < LEAST_PAIRS:
            raise ValueError(f"--pairs {arguments.pairs}: at least {LEAST_PAIRS}, or the median says little")
        self.effort = FULL if arguments.full else QUICK
        for name in ("pairs", "seconds"):
            if getattr(arguments, name):
                self.effort = dataclasses.replace(self.effort, **{name: getattr(arguments, name)})
        if arguments.sizes:
            self.effort = dataclasses.replace(self.effort, sizes=chosen(arguments.sizes, None, cells.parse_size))
        self.cells = [cells.Cell(collective, size) for collective in chosen(arguments.collectives, cells.COLLECTIVES)
                      for size in self.effort.sizes]
        self.settings = [cells.Setting(transport, ranks, arguments.cgroups)
                         for transport in chosen(arguments.transport, cells.TRANSPORTS)
                         for ranks in chosen(arguments.ranks, None, int)]
        names = chosen(arguments.peers, [peer.name for peer in libraries.PEERS]) if arguments.peers else None
        self.peers = [peer for peer in libraries.PEERS if names is None or peer.name in names]
        self.whole = not (arguments.sizes or names or arguments.no_watching) and (
            len(self.cells) == len(cells.COLLECTIVES) * len(self.effort.sizes)) and (
                len(self.settings) == len(cells.TRANSPORTS) * len(cells.RANKS))
        self.name = ("full" if arguments.full else "quick") if self.whole else "some"
        self.name += "-cgroups" if arguments.cgroups else ""
        self.watching = not arguments.no_watching
        self.paths = libraries.Paths(BUILD, os.path.join(ROOT, "build", "release", "bin", "falcon"))
        self.logs = os.path.join(BUILD, "logs")
        os.makedirs(self.logs, exist_ok=True)
        self.output = arguments.output or os.path.join(BUILD, "results", self.name + ".jsonl")
        self.code = measured_code.of_tree(ROOT)
        self.built = self._fingerprint()
        self.store = store.Store(self.output, arguments.resume, self.code)
        say(f"Measuring {self.code}.")
        warning = measured_code.resuming(self.store.records, self.code)
        if warning:
            say(f"{self.output}: {warning}")
        self.begun = time.monotonic()
        self.done = 0

    def measure(self):
        for setting in self.settings:
            with contextlib.ExitStack() as stack:
                cgroups = stack.enter_context(CpuCgroups()) if setting.cgroups else None
                self._compare(stack, setting, cgroups)
            if self.watching:
                with contextlib.ExitStack() as stack:
                    self._watch(stack, setting)

    def _compare(self, stack, setting, cgroups):
        missing = [cell for cell in self.cells if not self.store.has("cell", setting, cell)]
        if not missing:
            return
        crew = pairing.Crew(stack, setting, self.paths, self.logs, cgroups, say)
        crew.add(libraries.OURS)
        crew.add(libraries.COPY)
        peers = []
        for peer in self.peers:
            if setting.transport in peer.transports:
                try:
                    crew.add(peer)
                    peers.append(peer)
                except JobFailed as failure:
                    say(f"left out: {failure}")
        copies = {}
        for cell in missing:
            if cell.bytes not in copies:
                found = [crew.measure(libraries.COPY, cells.Cell("all_reduce", cell.bytes), self.effort.seconds)
                         for _ in range(3)]
                copies[cell.bytes] = statistics.median(found)
            able = [peer for peer in peers if not peer.collectives or cell.collective in peer.collectives]
            record = pairing.measure_cell(crew, libraries.OURS, able, cell, self.effort)
            limit = summary.copy_limit(cell.collective, setting.ranks, libraries.CORES, copies[cell.bytes])
            self._add("cell", setting, cell, limit_us=limit, **record)
            self._progress(setting, cell, record)

    def _watch(self, stack, setting):
        """NCCL_FALCON=1 and =0 in turn, with nobody else up: the watching job wakes ten times a second."""
        missing = [cell for cell in self.cells if not self.store.has("watching", setting, cell)]
        if not missing:
            return
        crew = pairing.Crew(stack, setting, self.paths, self.logs, None, say)
        crew.add(libraries.OURS)
        crew.add(libraries.OURS_WATCHING)
        for cell in missing:
            pairs = pairing.interleaved(crew, libraries.OURS, libraries.OURS_WATCHING, cell, self.effort.pairs,
                                        self.effort.seconds)
            self._add("watching", setting, cell, pairs=pairs, slowdown=pairing.median_ratio(pairs))

    def _add(self, kind, setting, cell, **values):
        if self._fingerprint() != self.built:
            raise RuntimeError("the library or a driver was built anew meanwhile, so that it is not known what was measured")
        self.store.add(kind, setting, cell, **values)

    def _fingerprint(self):
        """Tells whether what is measured is still what was built for this run."""
        files = [self.paths.falcon, os.path.join(ROOT, "build", "release", "lib", "libnccl.so.2"),
                 os.path.join(BUILD, "bench_nccl")]
        return [(found.st_ino, found.st_mtime_ns, found.st_size) for found in map(os.stat, files)]

    def _progress(self, setting, cell, record):
        self.done += 1
        spent = time.monotonic() - self.begun
        result = "no peer could be measured"
        if "ratio" in record:
            result = (f"{record['ratio']:5.2f}  ours {summary.duration(record['ours_us'])}, "
                      f"{record['best']} {summary.duration(record['best_us'])}")
        say(f"{spent:5.0f} s  {setting}  {str(cell):24}  {result}")

    def report(self):
        records = self.store.records
        if not summary.compared(records):
            raise RuntimeError("nothing was measured")
        parts = [summary.origin(records), summary.headline(records), summary.geometric_means(records)]
        parts += [summary.ratios(records, one) for one in cells.TRANSPORTS
                  if any(record["transport"] == one for record in records)]
        parts += [summary.watching(records), summary.limits(records), summary.failures(records)]
        print("\n\n".join(part for part in parts if part))
        say(f"Results: {self.output}")


def main():
    arguments = parse_arguments()
    try:
        run = Run(arguments)
    except (ValueError, OSError) as error:
        say(f"scripts/bench: {error}")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run.measure()
    except KeyboardInterrupt:
        say("Stopped; --resume goes on from here.")
        return 130
    except (JobFailed, RuntimeError, OSError) as error:
        say(f"scripts/bench: {error}; what was measured is kept, --resume goes on from there")
        return 1
    run.report()
    if run.whole or arguments.document:
        description = machine.describe()
        words = " ".join(shlex.quote(word) for word in sys.argv[1:]) or "--quick"
        picture = chart.write(ROOT, run.store.records, arguments.cgroups)
        document.write(ROOT, run.store.records, description, words, arguments.cgroups, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
