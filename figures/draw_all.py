"""Draws every figure of the lessons and guides and writes README.md, their text equivalents."""

from __future__ import annotations

import architecture
import attention
import block
import broken_vit
import broken_vit_dots
import broken_vit_list
import class_size
import convolution
import cpu_race
import experiments
import fine_tuning
import inside
import modern
import parameters
import patches
import positions
import receptive_growth
import scaling
import start
import tokens
import training
from style import FOLDER, save_figure

PAGES = {
    "00_start": [start, broken_vit],
    "01_patchify": [patches, convolution],
    "02_positions": [positions, tokens],
    "03_attention": [attention, scaling],
    "04_block": [block],
    "05_vit": [architecture, parameters],
    "06_training": [training],
    "07_experiments": [experiments, broken_vit_dots, broken_vit_list],
    "08_inside": [inside, receptive_growth],
    "09_fine_tuning": [fine_tuning],
    "10_modern": [modern, cpu_race],
    "many_machines": [class_size],
}
INTRODUCTION = """# Figures of the lessons

Each figure is drawn by the script of its family from numbers that the script computes; `make figures` redraws
them all, and this page with them. `name.svg` is for pages; it has its text equivalent inside, as on this page. On a
page that asks for dark colors its card turns dark, and all that is drawn with it (`dark.py`); pictures keep their
pixels. `name.png` is the light card for the inside of a notebook, where Colab shows no SVG. Both lie on their own
opaque card, so that they read on light and dark pages, whichever colors they have.
The portrait is that of Grace Hopper which comes with matplotlib (US Navy, public domain).

`python figures/draw_all.py` refuses a figure whose text leaves the card or lies on other text.
"""


def main() -> None:
    """Draw, save and describe all figures."""
    page = [INTRODUCTION]
    for page_name, families in PAGES.items():
        page.append(f"## {page_name}\n")
        for family in families:
            for name, draw in family.FIGURES.items():
                canvas = draw()
                path = save_figure(canvas, name)
                print(f"{path.name:28s} {path.stat().st_size / 1024:6.1f} kB")
                script = f"`{family.__name__}.py`"
                page.append(f"### {name}.svg\n\n![{canvas.alt}]({name}.svg)\n\n{canvas.description} ({script})\n")
    (FOLDER / "README.md").write_text("\n".join(page), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
