from __future__ import annotations

import pytest

from vit_course.training import TrainingSettings, fit


def test_no_bar_in_a_pipe_and_none_on_stderr(tiny_model, random_dataset, capfd: pytest.CaptureFixture[str]) -> None:
    fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=1))
    assert capfd.readouterr() == ("", "")


def test_the_bar_tells_throughput_memory_loss_and_accuracies(
    tiny_model, random_dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(tiny_model(), random_dataset(), random_dataset(), TrainingSettings(epochs=2), progress=True)
    captured = capsys.readouterr()
    assert captured.err == ""
    for word in ("epoch 2/2", "100/100", "images/s", "validation loss", "top-1", "top-5"):
        assert word in captured.out


def test_a_resumed_bar_begins_where_the_run_was(
    tiny_model, random_dataset, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, settings = random_dataset(), TrainingSettings(epochs=2)
    fit(tiny_model(), dataset, dataset, settings, folder=tmp_path, trackers=())
    fit(tiny_model(), dataset, dataset, settings, progress=True, folder=tmp_path, resume=True, trackers=())
    assert "100/100" in capsys.readouterr().out
