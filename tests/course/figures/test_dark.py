"""figures/dark.py: what a figure shows on a dark page is as readable as on a light one."""

import itertools

import numpy as np
import pytest
from dark import INK_STAYS, WHITE_STAYS, add_dark_rules, compute_contrast_ratio, compute_luminance, find_dark_color
from matplotlib.colors import to_hex
from style import (
    BACKGROUND,
    BLUE,
    DIVERGING,
    GRAY,
    GREEN,
    HAIR,
    INK,
    ORANGE,
    PURPLE,
    QUIET,
    SEQUENTIAL,
    SKY,
    VERMILION,
    WHITE,
    choose_readable_ink,
    shade,
    tint,
)

STRONG = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
MAPS = {"diverging": DIVERGING, "sequential": SEQUENTIAL}
PAINTED = [to_hex(colors(value)) for colors in MAPS.values() for value in np.linspace(0, 1, 41)]
TINTED = [tint(color, amount) for color in (*STRONG, GRAY) for amount in np.linspace(0, 1, 21)]


@pytest.mark.parametrize(("one", "other", "ratio"), [("#ffffff", "#000000", 21), ("#ffffff", "#767676", 4.54)])
def test_contrast_is_that_of_wcag(one, other, ratio):
    assert compute_contrast_ratio(one, other) == compute_contrast_ratio(other, one) == pytest.approx(ratio, abs=0.005)


def test_the_card_turns_dark_and_stays_behind_what_lies_on_it():
    assert compute_luminance(find_dark_color(BACKGROUND)) < 0.02
    for words in (INK, QUIET, *(shade(color) for color in STRONG)):
        assert compute_contrast_ratio(find_dark_color(words), find_dark_color(BACKGROUND)) >= 4.5
    for mark in (*STRONG, GRAY):
        assert compute_contrast_ratio(find_dark_color(mark), find_dark_color(BACKGROUND)) >= 3
    assert compute_contrast_ratio(find_dark_color(HAIR), find_dark_color(BACKGROUND)) >= compute_contrast_ratio(
        HAIR, BACKGROUND
    )


@pytest.mark.parametrize("color", STRONG)
def test_a_strong_color_keeps_its_name(color):
    light, night = (np.array([int(each[i : i + 2], 16) for i in (1, 3, 5)]) for each in (color, find_dark_color(color)))
    assert list(light.argsort()) == list(night.argsort())


def test_text_on_a_fill_reads_as_well_as_on_the_light_card():
    worst = min(compute_contrast_ratio(choose_readable_ink(fill), fill) for fill in TINTED + PAINTED)
    assert (
        min(
            compute_contrast_ratio(find_dark_color(choose_readable_ink(fill)), find_dark_color(fill))
            for fill in TINTED + PAINTED
        )
        >= worst - 0.1
    )


@pytest.mark.parametrize("colors", MAPS.values(), ids=MAPS)
def test_a_larger_number_never_has_a_fainter_color(colors):
    middle = 0.5 if colors is DIVERGING else 0
    for end in (0, 1):
        way = [compute_luminance(find_dark_color(to_hex(colors(value)))) for value in np.linspace(middle, end, 30)]
        assert all(after > before - 0.01 for before, after in itertools.pairwise(way))


def test_two_colors_stay_and_look_like_ink_and_white():
    assert find_dark_color(INK_STAYS) == INK_STAYS
    assert find_dark_color(WHITE_STAYS) == WHITE_STAYS
    assert compute_contrast_ratio(INK_STAYS, INK) == pytest.approx(1, abs=0.01)
    assert compute_contrast_ratio(WHITE_STAYS, WHITE) == pytest.approx(1, abs=0.01)
    assert {choose_readable_ink(ORANGE), choose_readable_ink(BACKGROUND)} == {INK_STAYS, INK}


def test_rules_exchange_each_color_and_leave_all_else():
    svg = (
        "<svg><defs><style>*{stroke-linecap: butt}</style></defs>"
        f'<path style="fill: {INK}; stroke: {HAIR}; stroke-width: 2"/><path style="fill: none"/>'
        '<image style="image-rendering:pixelated;image-rendering:crisp-edges"/></svg>'
    )
    ruled = add_dark_rules(svg)
    assert f'<path fill="{INK}" stroke="{HAIR}" style="stroke-width: 2"/><path fill="none"/>' in ruled
    assert '<image style="image-rendering:pixelated;image-rendering:crisp-edges"/>' in ruled
    sheet = ruled.partition("@media (prefers-color-scheme: dark) {")[2].partition("</style>")[0]
    assert sheet.split("\n") == [
        "",
        f'[fill="{INK}"]{{fill: {find_dark_color(INK)}}}',
        f'[stroke="{HAIR}"]{{stroke: {find_dark_color(HAIR)}}}',
        "}",
    ]
