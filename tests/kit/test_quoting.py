"""Text of others' in a terminal, a page and a spreadsheet."""

from __future__ import annotations

import pytest

from exercise_kit.quoting import (
    escape_spreadsheet_cell,
    make_legible,
    make_legible_in_color,
    make_one_line,
    quote_first_line,
)

TURNED = "ab\u202ecd\u2066e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode and 漢字", "plain, ünïcode and 漢字"),
        ("\x1b[31mred\x1b]0;title\x07", " [31mred ]0;title "),
        (TURNED, "ab cd e"),
        ("\ud800half", " half"),
        ("می\u200cخواهم\u200f 1\u00a0%", "می\u200cخواهم\u200f 1\u00a0%"),
    ],
)
def test_what_no_terminal_should_act_upon_becomes_a_space(text, shown):
    assert make_legible(text) == make_one_line(text) == shown


def test_lines_stay_where_lines_may_be():
    assert make_legible("a\n\tb\r\n") == "a\n\tb \n"
    assert make_one_line("a\n\tb\r\n") == "a  b  "
    assert quote_first_line("\x1b[2Ja\u202eb\nmore") == "` [2Ja b`"


def test_a_page_shows_a_terminal_s_colors_and_nothing_else_of_it():
    assert make_legible_in_color("\x1b[1;31mred\x1b[0m \x1b[2J\x1bc\u202e") == "\x1b[1;31mred\x1b[0m  [2J c "


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        (" =1+1", " '=1+1"),
        ("\u00a0\t=1+1", "\u00a0 '=1+1"),
        ("x;=1+1", "x;'=1+1"),
        ('x; "@SUM(A1)', "x; \"'@SUM(A1)"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("\ufe621", "'\ufe621"),
        ("a\n=1+1", "a =1+1"),
        ("\r=1+1", " '=1+1"),
        (TURNED, "ab cd e"),
        ("+1;-1;@a", "'+1;'-1;'@a"),
        ("ada.lovelace-king", "ada.lovelace-king"),
        ("took too long; 3 = 1 + 2", "took too long; 3 = 1 + 2"),
        (-1.5, "-1.5"),
        (None, ""),
        ("", ""),
        (" ; ", " ; "),
    ],
)
def test_nothing_in_a_spreadsheet_is_evaluated(value, cell):
    assert escape_spreadsheet_cell(value) == cell
