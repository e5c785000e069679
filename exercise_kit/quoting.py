"""What a student or a library wrote, made so that it cannot disturb a report, a terminal, a page or a spreadsheet."""

from __future__ import annotations

import re
import unicodedata

# what joins within Persian words and within one picture made of several, the direction that a letter shows by itself,
# and the space that does not break
_KEPT = "\n\t\u00a0\u200c\u200d\u200e\u200f"
_COLOR = re.compile(r"(\x1b\[[0-9;]{0,20}m)")
_FORMULA = "=+-@"  # how begins what a spreadsheet would evaluate
# where the semicolon separates cells, as in half of Europe, a formula can also begin behind one
_BEGINS_A_CELL = re.compile(r"(?:^|;)[\s'\"]*(?=\S)")


def make_legible(text: str) -> str:
    """``text`` without what could disturb a terminal, a page or a file: control characters, halves of a character.

    Line ends and tabs stay. Everything else that cannot be printed becomes a space, also characters that turn the
    direction of writing around.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in _KEPT else " " for letter in text)


def make_legible_in_color(text: str) -> str:
    """The same, but that a terminal's colors stay, which a page shows too."""
    return "".join(part if place % 2 else make_legible(part) for place, part in enumerate(_COLOR.split(text)))


def make_one_line(text: str) -> str:
    """``text`` as a terminal may show it, in one line: a file's name can hold anything."""
    return make_legible(text).replace("\n", " ").replace("\t", " ")


def escape_spreadsheet_cell(value: object) -> str:
    """A value as a spreadsheet shows it in one line and nothing else: a file may be called ``=HYPERLINK(…)``.

    What would be evaluated gets an apostrophe before it, wherever a cell can begin: behind spaces and quotation marks,
    behind a semicolon, and in the wide characters that some spreadsheets take for the narrow ones.
    """
    text = "" if value is None else str(value)
    if isinstance(value, float | int):
        return text
    text = make_one_line(text)
    starts = [each.end() for each in _BEGINS_A_CELL.finditer(text)]
    for place in reversed([each for each in starts if unicodedata.normalize("NFKC", text[each])[:1] in _FORMULA]):
        text = f"{text[:place]}'{text[place:]}"
    return text


def quote_first_line(text: object, max_length: int = 200) -> str:
    """The first line of what a student or a library wrote, in backticks, cut after ``max_length`` characters.

    A line that ends in a colon is followed by the next: torch's ``load_state_dict`` tells only there what is wrong.
    Characters that no terminal can print become spaces; "" when there is nothing to quote.
    """
    lines = [line.strip() for line in convert_to_text_safely(text).splitlines() if line.strip()]
    line = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    line = make_one_line(line[: max_length + 1]).replace("`", "'")
    return "" if not line else f"`{line}`" if len(line) <= max_length else f"`{line[:max_length]} …`"


_IN_NO_NAME = re.compile(r"[^\w.:-]")


def quote_name(text: str, max_length: int = 200) -> str:
    """Quote what a student gave as a name, of a parameter say, in a sentence: letters, digits and ``_.:-`` alone."""
    return _IN_NO_NAME.sub("?", text[:max_length])


def convert_to_text_safely(value: object) -> str:
    """``str(value)``, "" where that raises."""
    try:
        return str(value)
    except Exception:
        return ""
