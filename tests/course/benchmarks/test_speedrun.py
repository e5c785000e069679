from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from vit_course.data import shapes


@pytest.fixture
def speedrun(monkeypatch: pytest.MonkeyPatch):
    import speedrun

    recipe = speedrun.RECIPES["gpu-minute"]
    small = replace(recipe, config=replace(recipe.config, embed_dim=24, depth=1))
    monkeypatch.setattr(speedrun, "RECIPES", {"gpu-minute": small})
    images = shapes(60)
    monkeypatch.setattr(
        speedrun, "load_dataset", lambda name, data: (images.subset(slice(40)), images.subset(slice(40, 60)))
    )
    return speedrun


def test_a_run_ends_with_its_log(speedrun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.json"
    options = ["--epochs", "2", "--batch-size", "16", "--mixed", "--device", "cpu", "--output", str(log)]
    monkeypatch.setattr(sys, "argv", ["speedrun.py", *options])
    speedrun.main()
    told = json.loads(log.read_text())
    assert 0 <= told["accuracy"] <= 1
    assert told["training_seconds"] <= told["seconds_in_all"]
    assert (told["epochs"], told["mixed"], told["compiling_seconds"]) == (2, True, 0.0)
