"""``predict`` and ``reveal``: the first guess counts, nothing blocks, nothing is an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from exercise_kit.progress import log
from exercise_kit.progress.predictions import predict, read_predictions, reveal
from tests.kit.progress.conftest import restart_kernel

Said = pytest.CaptureFixture[str]
CHOICES = ("rows", "columns")


@pytest.fixture(autouse=True)
def quiet_kernel(kernel_folder: Path, capsys: Said) -> None:
    """A kernel in which nothing goes to stderr."""


def read_output(capsys: Said) -> str:
    found = capsys.readouterr()
    assert not found.err
    return found.out.strip()


def list_right_predictions() -> tuple[bool | None, ...]:
    return tuple(each.right for each in read_predictions(log.read_current_events().events).values())


@pytest.mark.parametrize(
    ("guess", "actual", "within", "words", "right"),
    [
        (0.5, 0.27, 0.05, "You said 0.5, it is 0.27: 0.23 too high.", False),
        (0.25, 0.27, 0.05, "You said 0.25, it is 0.27: 0.02 too low, and right: that is within 0.05.", True),
        (0.27, torch.tensor(0.2701), None, "too low, and near enough to be right", True),
        (256, 256, None, "You said 256, and so it is.", True),
        (255, 256, None, "1 too low.", False),
        (38_000, np.int64(38_016), 100, "You said 38,000, it is 38,016: 16 too low, and right", True),
        (1e-3, 1.2e-6, None, "it is 1.2e-06", False),
        (0, 0.0, None, "You said 0, and so it is.", True),
        ("Rows ", "rows", None, 'You said "Rows", and so it is.', True),
        ("rows", "columns", None, 'You said "rows", and it is "columns".', False),
        ("53 %", 53, None, "You said 53, and so it is.", True),
        ("1,000", 1000, None, "You said 1,000, and so it is.", True),
        (
            "many",
            53,
            None,
            "Your guess was a text, and a number was asked for, so this does not count. It is 53.",
            None,
        ),
        (53, "rows", None, "Your guess was a number, and a text was asked for", None),
        (True, "yes", None, 'You said "yes", and so it is.', True),
    ],
)
def test_a_result_stands_beside_its_guess(
    capsys: Said, guess: object, actual: object, within: float | None, words: str, right: bool | None
) -> None:
    predict("p", guess)
    capsys.readouterr()
    reveal("p", actual, within)
    assert words in read_output(capsys)
    assert list_right_predictions() == (right,)


def test_before_the_result_a_guess_may_change_and_says_so(capsys: Said) -> None:
    predict("p", 0.5)
    predict("p", 0.4)
    assert "(It was 0.5.)" in read_output(capsys)
    reveal("p", 0.4)
    assert list_right_predictions() == (True,)


def test_after_the_result_the_first_guess_stays_in_another_kernel_too(
    capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict("p", 0.5)
    reveal("p", 0.25)
    restart_kernel(monkeypatch, "the next day")
    capsys.readouterr()
    predict("p", 0.25)
    assert read_output(capsys) == "You have seen that it is 0.25, so your first guess stays: 0.5."
    reveal("p", 0.25)
    assert "You said 0.5" in read_output(capsys)
    assert list_right_predictions() == (False,)


def test_running_all_cells_spends_no_prediction(capsys: Said) -> None:
    for _ in range(2):
        predict("p", ...)
        reveal("p", 0.25)
        assert read_output(capsys).endswith("run both cells. Not now? The answer is 0.25.")
    predict("p", 0.5)
    assert read_output(capsys) == "Your guess: 0.5. Run on, and see."
    reveal("p", 0.25)
    predict("p", 0.25)
    assert "your first guess stays: 0.5" in read_output(capsys)
    assert list_right_predictions() == (False,)


def test_three_dots_are_no_guess_and_take_none_away(capsys: Said) -> None:
    predict("p", ...)
    assert "put a number in the place of the three dots" in read_output(capsys)
    predict("p", ..., choices=CHOICES)
    assert 'put "rows" or "columns"' in read_output(capsys)
    predict("p", "rows", choices=CHOICES)
    capsys.readouterr()
    predict("p", ..., choices=CHOICES)
    assert read_output(capsys) == 'Your guess: "rows". Run on, and see.'


@pytest.mark.parametrize(
    ("guess", "choices"),
    [
        *((each, ()) for each in (None, [1, 2], torch.zeros(2), float("nan"), float("inf"), 10**400, "", "x" * 999)),
        *((each, CHOICES) for each in ("row", 3, None, print)),
    ],
)
def test_what_cannot_be_a_guess_gets_a_sentence(capsys: Said, guess: object, choices: tuple[str, ...]) -> None:
    predict("p", guess, choices)
    assert ("a number" if not choices else '"rows" or "columns"') in read_output(capsys)
    assert list_right_predictions() == ()


@pytest.mark.parametrize("name", [0.5, None, "", ...])
def test_a_name_that_was_left_out_is_asked_for(capsys: Said, name: object) -> None:
    predict(name)  # type: ignore[arg-type]
    reveal(name, 3)  # type: ignore[arg-type]
    assert read_output(capsys).count("comes first, in quotes") == 2
    assert list_right_predictions() == ()


def test_a_result_that_is_no_number_stops_nothing(capsys: Said) -> None:
    predict("p", 1)
    for actual in (None, torch.zeros(3), float("nan"), ...):
        reveal("p", actual)
    assert read_output(capsys).count("needs a number or a text") == 4
    assert list_right_predictions() == (None,)


def test_markup_in_a_guess_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    import IPython.display

    from exercise_kit.progress import predictions

    shown: list[dict[str, str]] = []
    monkeypatch.setattr(predictions, "is_in_notebook_kernel", lambda: True)
    monkeypatch.setattr(IPython.display, "display", lambda bundle, raw: shown.append(bundle))
    predict("p", "<script>")
    reveal("p", "<b>")
    assert "<script>" not in shown[0]["text/html"]
    assert "&lt;script&gt;" in shown[0]["text/html"]
    assert "<script>" in shown[0]["text/plain"]
