"""The colors of all that is drawn: told apart by eyes of all kinds (Okabe and Ito), in print and on a dark page."""

from __future__ import annotations

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, PALE = "#CC79A7", "#56B4E9", "#cfe6f5"
INK, GRAY, HAIR, EMPTY, BACKGROUND, WHITE = "#1b2733", "#6b7785", "#d9d6cd", "#dfe3e6", "#fbfaf7", "#ffffff"
