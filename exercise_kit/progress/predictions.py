"""``predict`` and ``reveal``: a guess is made before the cell that shows the result, and stands beside it there.

The guess that counts is the last one before the two were shown side by side; without a guess the result is folded, so
that "run all cells" spends none. Nothing here is graded, and nothing stops a lesson: a guess that was not made, or
cannot be one, gets a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from exercise_kit.engine.compare import describe_kind
from exercise_kit.engine.rendering import is_in_notebook_kernel, render_html_section, render_paragraph
from exercise_kit.engine.verdict import Verdict
from exercise_kit.progress.log import Event, note, read_current_events
from exercise_kit.quoting import quote_first_line

Value = int | float | str
_LONGEST, _LARGEST = 120, 1e300
_BY_DEFAULT = 0.1  # how far off a guess may be, as a share of the result, where that is no whole number


@dataclass(frozen=True)
class Prediction:
    """What is known of one prediction.

    Attributes:
        guess: that counts; None as long as there is none.
        result: as it was when it was compared with the guess, or the last one.
        compared: whether the two have been compared.
        right: whether the guess was right; None before that, and where only one of the two is a number.
    """

    guess: Value | None = None
    result: Value | None = None
    compared: bool = False
    right: bool | None = None


def read_predictions(events: tuple[Event, ...]) -> dict[str, Prediction]:
    """Name → what became of the prediction.

    Args:
        events: of a log, in the order of their times.
    """
    found: dict[str, Prediction] = {}
    for event in events:
        if event["kind"] not in ("guess", "result"):
            continue
        name = event["name"]
        known = found.get(name, Prediction())
        if known.compared:
            continue
        if event["kind"] == "guess":
            found[name] = Prediction(event["guess"], known.result)
        elif known.guess is None:
            found[name] = Prediction(result=event["result"])
        else:
            found[name] = Prediction(known.guess, event["result"], compared=True, right=event["right"])
    return found


def predict(name: str, guess: object = ..., choices: tuple[str, ...] = ()) -> None:
    """Commit to a guess before you see the result; `reveal` shows both.

    Args:
        name: of the prediction, as "softmax-rows".
        guess: a number, or one of the choices; `...` as long as there is none.
        choices: what there is to choose from, where no number is asked for.
    """
    if not _is_valid_name(name):
        return
    known = read_predictions(read_current_events().events).get(name, Prediction())
    value = _read_value(guess)
    if isinstance(value, str) and choices:
        value = next((each for each in choices if _has_same_words(each, value)), None)
    elif choices:
        value = None
    elif isinstance(value, str):
        value = _parse_number(value)
    if value is None:
        kept = (
            f" Until then it stays {_format_value(known.guess)}."
            if known.guess is not None and guess is not ...
            else ""
        )
        print(
            _write_guess_request(guess, choices) + kept
            if guess is not ... or known.guess is None
            else _describe_guess_so_far(known)
        )
        return
    if not known.compared and value != known.guess:
        note("guess", name=name, guess=value)
        before = "" if known.guess is None else f" (It was {_format_value(known.guess)}.)"
        print(f"Your guess: {_format_value(value)}.{before} Run on, and see.")
    elif value == known.guess:
        print(_describe_guess_so_far(known))
    else:
        print(
            f"You have seen that it is {_format_value(known.result)}, "
            f"so your first guess stays: {_format_value(known.guess)}."
        )


def reveal(name: str, actual: object, within: float | None = None) -> None:
    """Show a result beside the guess that was made for it.

    Args:
        name: of the prediction.
        actual: a number (a tensor of one number, too), or a choice.
        within: how far off a number may be and still be right; None: a whole number not at all, another by a tenth.
    """
    value = _read_value(actual)
    if not _is_valid_name(name):
        return
    if value is None:
        print(f"reveal({quote_first_line(name)}) needs a number or a text, and this is {describe_kind(actual)}.")
        return
    known = read_predictions(read_current_events().events).get(name, Prediction())
    right = None if known.guess is None else _is_guess_right(known.guess, value, within)
    if not known.compared and (known.guess is not None or value != known.result):
        note("result", name=name, result=value, right=right)
    if known.guess is None:
        _show_sentence(
            "Guess first: replace the dots above, run both cells.", None, f"The answer is {_format_value(value)}."
        )
    else:
        _show_sentence(_describe_comparison(known.guess, value, right, within), right)


def _is_valid_name(name: object) -> bool:
    """Say whether a prediction can be called that; says so where not."""
    if isinstance(name, str) and 0 < len(name) <= _LONGEST:
        return True
    print(f'The name of the prediction comes first, in quotes, as "softmax-rows". This is {describe_kind(name)}.')
    return False


def _read_value(value: object) -> Value | None:
    """A guess or a result as JSON has it; None where it is neither a number nor a text."""
    if hasattr(value, "item") and getattr(value, "size", None) is not None:
        try:
            value = value.item()
        except (TypeError, ValueError, RuntimeError):
            return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return value if abs(value) < _LARGEST else None  # nor infinite, nor nan
    words = " ".join(value.split()) if isinstance(value, str) else ""
    return words if 0 < len(words) <= _LONGEST else None


def _parse_number(text: str) -> Value:
    """The number that a text is, as "256", "25 %" and "1,000" are; other texts as they are."""
    try:
        number = float(text.removesuffix("%").replace(",", ""))
    except ValueError:
        return text
    return text if not abs(number) < _LARGEST else int(number) if number.is_integer() else number


def _has_same_words(first: str, second: str) -> bool:
    return " ".join(first.split()).casefold() == " ".join(second.split()).casefold()


def _is_guess_right(guess: Value, actual: Value, within: float | None) -> bool | None:
    """Say whether a guess is right; None where the one is a number and the other a text."""
    if isinstance(guess, str) and isinstance(actual, str):
        return _has_same_words(guess, actual)
    if isinstance(guess, str) or isinstance(actual, str):
        return None
    if within is None:
        within = 0.0 if isinstance(actual, int) else _BY_DEFAULT * abs(actual)
    return abs(guess - actual) <= within * (1 + 1e-9)


def _write_guess_request(guess: object, choices: tuple[str, ...]) -> str:
    wanted = "a number"
    if choices:
        *first, last = (f'"{each}"' for each in choices)
        wanted = f"{', '.join(first)} or {last}" if first else last
    if guess is ...:
        return f"No guess yet: put {wanted} in the place of the three dots, and run this cell again."
    return f"A guess is {wanted} here, and this is {describe_kind(guess)}."


def _describe_guess_so_far(prediction: Prediction) -> str:
    if not prediction.compared:
        return f"Your guess: {_format_value(prediction.guess)}. Run on, and see."
    return f"Your guess was {_format_value(prediction.guess)}, and it is {_format_value(prediction.result)}."


def _describe_comparison(guess: Value, actual: Value, is_right: bool | None, within: float | None) -> str:
    said = f"You said {_format_value(guess)}, "
    if is_right is None:
        kinds = "a text" if isinstance(guess, str) else "a number", "a text" if isinstance(actual, str) else "a number"
        shown = _format_value(actual)
        return f"Your guess was {kinds[0]}, and {kinds[1]} was asked for, so this does not count. It is {shown}."
    if isinstance(guess, str) or isinstance(actual, str):
        return f"{said}and so it is." if is_right else f"{said}and it is {_format_value(actual)}."
    if guess == actual:
        return f"{said}and so it is."
    off = f"{_format_value(abs(guess - actual), 2)} too {'high' if guess > actual else 'low'}"
    near = f", and right: that is within {_format_value(within)}" if within else ", and near enough to be right"
    return f"{said}it is {_format_value(actual)}: {off}{near if is_right else ''}."


def _format_value(value: Value | None, digits: int = 4) -> str:
    """A number as people write it, with thousands apart; a text in quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    if value is None:
        return "nothing"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 10**digits <= abs(value) < 1e15 else f"{value:.{digits}g}"


def _show_sentence(sentence: str, is_right: bool | None, folded: str = "") -> None:
    """Show a sentence: with an edge in the color of a verdict in a notebook, as text elsewhere.

    What is folded opens with a click in a notebook.
    """
    text = f"{sentence} Not now? {folded}" if folded else sentence
    if not is_in_notebook_kernel():
        print(text)
        return
    from IPython.display import display

    verdict = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.UNDECIDED}[is_right]
    sign = {True: "✓", False: "≠", None: "○"}[is_right]
    shown = render_paragraph(f'<span aria-hidden="true">{sign}</span> {escape(sentence)}')
    shown += f"<details><summary>Not now?</summary>{render_paragraph(escape(folded))}</details>" if folded else ""
    html = render_html_section("Your prediction", shown, verdict)
    bundle: dict[str, Any] = {"text/plain": text, "text/html": html}
    display(bundle, raw=True)
