"""The dark side of a figure: for each color its partner on a dark card, and the SVG's rules that exchange them.

Gray turns round in lightness, so that ink becomes light and the card dark; a strong color keeps its lightness and
its hue, so that blue stays blue; a tint lies between them and fades into the dark card as it faded into the light
one. Pictures keep their pixels, and what is printed on them is drawn in the two colors that stay.
"""

from __future__ import annotations

import re

import numpy as np
from matplotlib.colors import to_hex, to_rgb

# almost ink and almost white: no eye tells them apart, but these two are the same on either card
INK_STAYS, WHITE_STAYS = "#1b2734", "#fffffe"
STRONG = 0.13  # the chroma from which on a color keeps its lightness

_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def convert_to_linear_light(color: str) -> np.ndarray:
    """Red, green and blue of a color in units of light, 0 to 1."""
    channels = np.array(to_rgb(color))
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def compute_luminance(color: str) -> float:
    """Relative luminance of WCAG 2, 0 to 1."""
    return float(convert_to_linear_light(color) @ (0.2126, 0.7152, 0.0722))


def compute_contrast_ratio(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2 between two colors, 1 to 21."""
    low, high = sorted((compute_luminance(one), compute_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def find_dark_color(color: str) -> str:
    """The partner of a color on the dark card, found in Oklab (Björn Ottosson, 2020)."""
    if color in (INK_STAYS, WHITE_STAYS):
        return color
    lightness, *hue = _TO_LAB @ np.cbrt(_TO_CONES @ convert_to_linear_light(color))
    kept = min(1, (np.hypot(*hue) / STRONG) ** 2)
    turned = kept * (0.75 - 0.1 * lightness) + (1 - kept) * (1.23 - 1.03 * lightness)
    light = np.linalg.solve(_TO_CONES, np.linalg.solve(_TO_LAB, [turned, *hue]) ** 3).clip(0, 1)
    return to_hex(np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055))


def add_dark_rules(svg: str) -> str:
    """The SVG with its colors as attributes, and a style sheet that exchanges them where a page is dark.

    A program that knows no such rules shows the light figure.
    """
    svg = re.sub(r'style="([^"]*)"', _split_style_into_attributes, svg)
    pairs = sorted(set(re.findall(r'(fill|stroke)="(#[0-9a-f]{6})"', svg)))
    rules = "".join(
        f'\n[{name}="{color}"]{{{name}: {find_dark_color(color)}}}'
        for name, color in pairs
        if find_dark_color(color) != color
    )
    sheet = f'<style type="text/css">@media (prefers-color-scheme: dark) {{{rules}\n}}</style>'
    return svg.replace("</style>", f"</style>\n{sheet}", 1)


def _split_style_into_attributes(style: re.Match[str]) -> str:
    """A style attribute, its fill and stroke as attributes of their own, which a style sheet may overrule."""
    parts = style[1].split("; ")
    colors = [part for part in parts if part.startswith(("fill: ", "stroke: "))]
    rest = "; ".join(part for part in parts if part not in colors)
    attributes = ['{}="{}"'.format(*part.split(": ")) for part in colors]
    return " ".join([*attributes, f'style="{rest}"'] if rest else attributes)
