from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread

from vit_course import demo
from vit_course.training import History


@pytest.fixture(autouse=True)
def shrink_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "NUM_TRAIN", 100)
    monkeypatch.setattr(demo, "NUM_TIMED", 20)
    monkeypatch.setattr(demo, "NUM_VALIDATION", 60)
    monkeypatch.setattr(demo, "SETTINGS", replace(demo.SETTINGS, epochs=2))
    monkeypatch.setattr(demo, "PLANNED", 1e6)
    monkeypatch.setattr(demo, "SECONDS", 1e6)


def test_it_trains_and_writes_two_pictures(tmp_path: Path) -> None:
    """On a hundredth of the data: that it reaches 95 % in full is what `make demo` shows."""
    state = torch.get_rng_state()
    result = demo.train_demo(tmp_path / "new folder", progress=False)
    assert 0 <= result.accuracy <= 1
    assert result.images == 2 * 100
    assert result.parameters > 50_000
    for picture in (result.curves, result.attention):
        assert picture.parent == tmp_path / "new folder"
        assert imread(picture).std() > 0.05
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("limit", "images"), [("PLANNED", 2 * 64), ("SECONDS", 100)])
def test_a_machine_that_is_too_slow_sees_fewer_images(
    limit: str, images: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One on which no batch fits into the time, and one that is out of time before the second epoch."""
    monkeypatch.setattr(demo, limit, 0.0)
    result = demo.train_demo(tmp_path, progress=False)
    assert result.images == images
    assert 0 <= result.accuracy <= 1


def test_ctrl_c_is_no_end_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def return_interrupted_history(*_: object) -> History:
        return History(ending="interrupted")

    monkeypatch.setattr(demo, "_choose_images_per_epoch", lambda: 100)
    monkeypatch.setattr(demo, "fit", return_interrupted_history)
    with pytest.raises(KeyboardInterrupt):
        demo.train_demo(tmp_path, progress=False)
