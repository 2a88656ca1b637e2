import os
import sys

# One thread a rank: these machines have few cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, os.path.dirname(__file__))
