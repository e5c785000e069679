"""The models stand beside the tests, and the broken ones among the benchmarks, which are scripts."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3] / "benchmarks")]
