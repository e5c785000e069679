from __future__ import annotations

import base64

import pytest

from exercise_kit.authoring.notebook import FigureError, inline_figures, refuse_unreachable_links

from .conftest import DOT

ADDRESS = "data:image/png;base64," + base64.b64encode(DOT).decode("ascii")


def test_a_figure_s_data_takes_the_place_of_its_address_and_the_words_stay(repository):
    source = "Before ![A dot [1] in\nthe middle](../figures/dot.svg), after."
    inlined = inline_figures(source, repository.root / "solutions")
    assert inlined == f"Before ![A dot [1] in the middle][dot], after.\n\n[dot]: {ADDRESS}"


def test_two_figures_in_one_cell(repository):
    (repository.root / "figures" / "spot.png").write_bytes(DOT)
    source = "![one](../figures/dot.svg)\n![two](../figures/spot.png)\n![one more](../figures/dot.png)"
    assert inline_figures(source, repository.root / "solutions") == (
        f"![one][dot]\n![two][spot]\n![one more][dot]\n\n[dot]: {ADDRESS}\n\n[spot]: {ADDRESS}"
    )


def test_a_drawing_without_its_picture_is_refused(repository):
    (repository.root / "figures" / "dot.png").unlink()
    with pytest.raises(FigureError, match=r"dot\.png is missing from figures/; draw it with its script") as caught:
        inline_figures("Text.\n\n![a dot](../figures/dot.svg)", repository.root / "solutions")
    assert caught.value.line == 3


def test_a_link_after_code_is_reported_at_its_line():
    with pytest.raises(FigureError) as caught:
        refuse_unreachable_links("```\nlayers[0](x)\n```\n[next](02_next.ipynb)")
    assert caught.value.line == 4


@pytest.mark.parametrize(
    "text",
    [
        *("`layers[0](x)`", "```python\nlayers[0](x)\n```"),
        *("[this](https://arxiv.org/abs/2010.11929)", "[this](#patches)", "[this](mailto:a@example.org)"),
    ],
)
def test_links_that_work_everywhere_and_code_are_allowed(text):
    refuse_unreachable_links(f"See {text}.")
