"""PyTorch's own tests of a c10d backend (torch.testing._internal.distributed.distributed_test) over falcon.

    python python/tests/upstream.py [--detail] [--as-gloo] [--ranks 3] [-k WORDS]... [--list FILE]

Each test has ranks of its own, forked. What is of CUDA, NCCL or gloo by name skips itself. The last line counts; the lines before name what failed, and what
was skipped by its reason. EXPECTED lists what fails for a reason that is told there: anything else is an error.
"""

import argparse
import collections
import multiprocessing
import os
import sys
import time
import unittest

EXPECTED = {
    "test_ddp_logging_data_cpu": 'PyTorch logs every backend that is not its own as "custom"',
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--detail", action="store_true", help="under TORCH_DISTRIBUTED_DEBUG=DETAIL")
    parser.add_argument("--ranks", default=3, type=int)
    parser.add_argument("--as-gloo", action="store_true", help="falcon under gloo's name, so that tests of gloo alone run too")
    parser.add_argument("-k", action="append", default=[], help="only tests with one of these words in their names")
    parser.add_argument("--list", help="a file that gets one line a test")
    return parser.parse_args()


arguments = parse()
backend = "gloo" if arguments.as_gloo else "falcon"
os.environ.update(BACKEND=backend, WORLD_SIZE=str(arguments.ranks), OMP_NUM_THREADS="1", TEMP_DIR=os.environ.get("TMPDIR", "/tmp"))
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
if arguments.detail:
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"

import torch
from torch.testing._internal import common_distributed

import nccl_falcon  # noqa: F401

for feature in ("ddp", "subgroup", "plugin"):
    common_distributed.DistTestCases.backend_feature[feature].add(backend)
if arguments.as_gloo:
    from torch.distributed import Backend, ProcessGroup

    from nccl_falcon._backend import create

    Backend.register_backend("gloo", create, extended_api=True, devices=["cpu"], _backend_type=ProcessGroup.BackendType.CUSTOM)
common_distributed.DistTestCases.skip_collective["sendrecv anysource"].add(backend)

from torch.testing._internal.distributed import distributed_test


class TestFalcon(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(multiprocessing.get_context("fork").Process)


class Result(unittest.TestResult):
    def __init__(self, *rest, **named):
        super().__init__(*rest, **named)
        self.passed, self.began = [], 0.0
        self.lines = open(arguments.list, "w") if arguments.list else None

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def tell(self, test, what, why=""):
        name = test.id().rsplit(".", 1)[-1]
        line = f"{what:8}{time.monotonic() - self.began:6.1f} s  {name}  {why}"
        print(line, flush=True)
        if self.lines:
            self.lines.write(line + "\n")
            self.lines.flush()

    def addSuccess(self, test):
        self.passed.append(test)
        self.tell(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell(test, "skipped", reason)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell(test, "FAILED", self.last_words(error))

    def addError(self, test, error):
        super().addError(test, error)
        self.tell(test, "FAILED", self.last_words(error))

    @staticmethod
    def last_words(error):
        told = str(error[1]).split("To execute this test")[0]
        return " | ".join([line.strip() for line in told.splitlines() if line.strip()][-4:])[-500:]


def main():
    names = [name for name in unittest.TestLoader().getTestCaseNames(TestFalcon) if not arguments.k or any(word in name for word in arguments.k)]
    result = Result()
    unittest.TestSuite(TestFalcon(name) for name in names).run(result)
    reasons = collections.Counter(reason for _, reason in result.skipped)
    print("\nskipped, by reason:")
    for reason, count in reasons.most_common():
        print(f"{count:5}  {reason}")
    failed = [test.id().rsplit(".", 1)[-1] for test, _ in [*result.failures, *result.errors]]
    unexpected = [name for name in failed if name not in EXPECTED]
    for name in failed:
        print(f"FAILED {name}: {EXPECTED.get(name, 'not expected')}")
    print(f"{len(result.passed)} passed, {len(failed)} failed, {len(result.skipped)} skipped")
    sys.exit(1 if unexpected else 0)


main()
