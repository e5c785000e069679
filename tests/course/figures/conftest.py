"""The figures' scripts import one another from their own folder; benchmarks/ has a broken_vit too, and goes first."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "figures"))
