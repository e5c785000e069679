"""What the lessons say of themselves: a test that named a number of points would fail for other points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "vit_course" / "exercises" / "outline.json"
OUTLINE: dict[str, dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))
# lesson → exercise → points
POINTS: dict[str, dict[str, float]] = {lesson: facts["points"] for lesson, facts in OUTLINE.items()}
