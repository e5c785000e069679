from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread

from vit_course import demo


def test_it_trains_and_writes_two_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a hundredth of the data: that it reaches 95 % in full is what `make demo` shows."""
    monkeypatch.setattr(demo, "NUM_TRAIN", 100)
    monkeypatch.setattr(demo, "NUM_VALIDATION", 60)
    monkeypatch.setattr(demo, "SETTINGS", replace(demo.SETTINGS, epochs=1))
    state = torch.get_rng_state()
    result = demo.train_demo(tmp_path / "new folder", progress=False)
    assert 0 <= result.accuracy <= 1
    assert result.parameters > 50_000
    for picture in (result.curves, result.attention):
        assert picture.parent == tmp_path / "new folder"
        assert imread(picture).std() > 0.05
    assert torch.equal(torch.get_rng_state(), state)
