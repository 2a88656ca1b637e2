import os
import shutil
import sys
import tempfile

# One thread a rank: these machines have few cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
# Traces of calls that are to fail do not belong into the user's cache.
os.environ.setdefault("TORCH_FR_DUMP_TEMP_FILE", os.path.join(tempfile.gettempdir(), f"nccl-falcon-tests-{os.getpid()}", "rank"))
sys.path.insert(0, os.path.dirname(__file__))

collect_ignore = ["upstream.py", "exits.py", "elastic.py"]
if os.environ.get("FALCON_TESTS_WITHOUT_TORCH"):  # scripts/test-python --without-torch
    collect_ignore += ["test_balance.py", "test_collectives.py", "test_elastic.py", "test_messages.py", "test_life.py", "test_recorder.py", "test_roles.py", "test_training.py"]


def pytest_unconfigure():
    shutil.rmtree(os.path.join(tempfile.gettempdir(), f"nccl-falcon-tests-{os.getpid()}"), ignore_errors=True)
