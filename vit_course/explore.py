"""Figures of the lessons whose settings can be moved: patches, positions, the softmax, attention.

Tensors in, as in :mod:`vit_course.plots`. What comes back shows itself in a notebook, with controls where ipywidgets is
installed. Of each figure only what has changed is set anew, so that it follows a slider.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course import plots
from vit_course.interactive import Control, Interactive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["explore_attention", "explore_patches", "explore_positions", "explore_softmax"]

SIDE = 192  # pixels; divisible by every patch size below
PATCH_SIZES = (4, 8, 12, 16, 24, 32, 48, 64, 96)
CHANNELS = {"red": "#c0392b", "green": "#1e8449", "blue": plots.BLUE}
KEYS = 16
HEAD_DIMS = (4, 16, 64, 256)
MEAN = -1  # of all heads; None would leave a list to choose from empty
DIVISORS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def explore_patches(picture: Tensor, patchify: Callable[[Tensor, int], Tensor]) -> Interactive:
    """A picture cut into patches of a size to choose, and one token: its pixels, and its numbers.

    Args:
        picture: (1 or 3, height, width) uint8, or float in [0, 1]; its middle square is used, as 192 x 192 pixels.
        patchify: images (batch, channels, height, width) and patch_size → (batch, tokens, channels * patch_size**2);
            drawn as it is, so a wrong one makes a wrong picture.

    Raises:
        ValueError: for another shape, dtype or range of the picture.
    """
    controls = (
        Control("patch_size", "patch size", PATCH_SIZES, 16),
        Control("row", "pixel row", range(0, SIDE, 4), 64),
        Control("column", "pixel column", range(0, SIDE, 4), 96),
    )
    drawn = _Patches(_crop_square(picture), patchify)
    shown = "A picture cut into patches, one of them framed; the pixels of that one; and the numbers of its token."
    return Interactive(drawn.figure, controls, drawn.update, shown)


class _Patches:
    """The figure of `explore_patches`."""

    def __init__(self, image: Tensor, patchify: Callable[[Tensor, int], Tensor]) -> None:
        from matplotlib.collections import LineCollection

        self.image, self.patchify = image, patchify
        self.figure = plots.new_figure(7.6, 2.7)
        self.grid, self.patch, self.numbers = self.figure.subplots(1, 3, width_ratios=(1.1, 0.8, 1.1))
        for axes in (self.grid, self.patch):
            plots.draw_picture(axes, torch.zeros(SIDE, SIDE, 3))
        self.cuts = self.grid.add_collection(LineCollection([], colors=plots.BACKGROUND, linewidths=0.7))
        self.frame = _draw_frame(self.grid, plots.ORANGE)
        self.numbers.set(xlabel="number in the token", ylim=(-0.05, 1.05), facecolor=plots.BACKGROUND)
        self.numbers.spines[["top", "right"]].set_visible(False)
        self.numbers.locator_params(nbins=4)
        self.lines = [
            self.numbers.plot([], [], color, linewidth=0.9, label=name)[0] for name, color in CHANNELS.items()
        ]
        self.numbers.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=3)

    def update(self, patch_size: int, row: int, column: int) -> str:
        tokens = _check_patch_tokens(self.patchify(self.image[None], patch_size), patch_size)
        columns = SIDE // patch_size
        at = row // patch_size, column // patch_size
        token = at[0] * columns + at[1]
        self._draw_patch_borders(patch_size, at)
        pixels = tokens.reshape(-1, 3, patch_size, patch_size)
        self.grid.images[0].set_data(_tile_patches(pixels, columns))
        self.patch.images[0].set_data(_tile_patches(pixels[token, None], 1))
        for channel, line in enumerate(self.lines):
            places = range(channel * patch_size**2, (channel + 1) * patch_size**2)
            line.set_data(places, tokens[token, places.start : places.stop].numpy())
        self.numbers.set_xlim(0, tokens.shape[1])
        self.grid.set_title(f"{len(tokens)} tokens", fontsize=9)
        self.patch.set_title(f"token {token}", fontsize=9)
        return (
            f"Patches of {patch_size}: {columns} × {columns} = {len(tokens):,} tokens of {tokens.shape[1]:,} numbers, "
            f"{len(tokens) ** 2:,} pairs to compare. The pixel in row {row}, column {column} lies in token {token}: "
            f"patch row {at[0]}, patch column {at[1]}."
        )

    def _draw_patch_borders(self, patch_size: int, at: tuple[int, int]) -> None:
        places = [place - 0.5 for place in range(patch_size, SIDE, patch_size)]
        down = [((place, -0.5), (place, SIDE - 0.5)) for place in places]
        self.cuts.set_segments(down + [(start[::-1], end[::-1]) for start, end in down])
        left, top = at[1] * patch_size - 0.5, at[0] * patch_size - 0.5
        self.frame.set(xy=(left, top), width=patch_size, height=patch_size)


def _crop_square(picture: Tensor) -> Tensor:
    """The middle square of (channels, height, width): (3, SIDE, SIDE) float in [0, 1]."""
    image = plots.convert_to_pictures(picture)[0].permute(2, 0, 1)  # (3, height, width)
    side = min(image.shape[1:])
    top, left = (image.shape[1] - side) // 2, (image.shape[2] - side) // 2
    image = image[:, top : top + side, left : left + side]
    return F.interpolate(image[None], size=(SIDE, SIDE), mode="area" if side >= SIDE else "nearest")[0]


def _check_patch_tokens(patches: Any, patch_size: int) -> Tensor:
    """Return what a patchify made of one image: (tokens, 3 * patch_size**2)."""
    wanted = (1, (SIDE // patch_size) ** 2, 3 * patch_size**2)
    if not isinstance(patches, Tensor) or tuple(patches.shape) != wanted:
        got = tuple(patches.shape) if isinstance(patches, Tensor) else type(patches).__name__
        raise ValueError(f"patchify gave {got} for an image of (1, 3, {SIDE}, {SIDE}); {wanted} is needed")
    return patches[0].detach().float().cpu()


def _tile_patches(pixels: Tensor, columns: int) -> Any:
    """Patches (tokens, 3, patch_size, patch_size), row by row, as one image (height, width, 3) of uint8."""
    tiles = pixels.unflatten(0, (-1, columns)).permute(0, 3, 1, 4, 2)  # (rows, P, columns, P, 3)
    return _convert_to_uint8(tiles.flatten(2, 3).flatten(0, 1))


def explore_positions(tables: Mapping[str, Tensor], grid_size: tuple[int, int]) -> Interactive:
    """Show how similar the position of one patch, to choose, is to that of every other: a map for each table.

    Args:
        tables: name → (1, tokens, embed_dim) or (tokens, embed_dim); a class token in front is left out.
        grid_size: (rows, columns) of patches.

    Raises:
        ValueError: there is no table, or one has neither rows * columns positions nor one more.
    """
    rows, columns = grid_size
    controls = (
        Control("row", "patch row", range(rows), rows // 2),
        Control("column", "patch column", range(columns), columns // 2),
    )
    if not tables:
        raise ValueError("there is no table of positions to show")
    drawn = _Positions({name: _measure_similarity(name, table, grid_size) for name, table in tables.items()})
    shown = f"A map for each of {', '.join(tables)}: how similar the position of the framed patch is to every other."
    return Interactive(drawn.figure, controls, drawn.update, shown)


class _Positions:
    """The figure of `explore_positions`; similarities are (rows, columns, rows, columns)."""

    def __init__(self, similarities: Mapping[str, Tensor]) -> None:
        self.similarities = similarities
        rows, columns = next(iter(similarities.values())).shape[2:]
        self.figure = plots.new_figure(2.5 * len(similarities), 0.6 + 2.3 * rows / columns)
        self.images, self.frames = [], []
        panels = self.figure.subplots(1, len(similarities), squeeze=False)[0]
        for axes, (name, similarity) in zip(panels, similarities.items(), strict=True):
            least = similarity.min().item()
            self.images.append(axes.imshow(similarity[0, 0].numpy(), cmap=plots.SEQUENTIAL, vmin=least, vmax=1))
            self.frames.append(_draw_frame(axes, plots.INK))
            axes.set_title(f"{name}: dark {least:.2f}, bright 1", fontsize=9)
            _style_patch_axes(axes)

    def update(self, row: int, column: int) -> str:
        said = []
        for image, frame, (name, similarity) in zip(self.images, self.frames, self.similarities.items(), strict=True):
            image.set_data(similarity[row, column].numpy())
            frame.set_xy((column - 0.5, row - 0.5))
            others = similarity[row, column].clone()
            others[row, column] = -math.inf
            said.append(f"{name}: {_describe_largest_value(others)}")
        return f"Position of the patch in row {row}, column {column}. Most similar among the others: {'; '.join(said)}."


def _measure_similarity(name: str, table: Tensor, grid_size: tuple[int, int]) -> Tensor:
    """(rows, columns, rows, columns) cosine similarities."""
    rows, columns = grid_size
    table = table.detach().float().cpu().reshape(-1, table.shape[-1])
    if len(table) not in (rows * columns, rows * columns + 1):
        raise ValueError(f"{name}: {len(table)} positions do not fit a grid of {rows} x {columns} patches")
    table = F.normalize(table[-rows * columns :], dim=-1)
    return (table @ table.T).reshape(rows, columns, rows, columns)


def explore_softmax(seed: int = 0) -> Interactive:
    """Show what a softmax makes of scores of one query and 16 keys, by `head_dim` and by what scores are divided by.

    Args:
        seed: of the random query and keys, whose entries have mean 0 and standard deviation 1.
    """
    controls = (
        Control("head_dim", "head_dim", HEAD_DIMS, 64),
        Control("divisor", "divisor", DIVISORS, 1),
    )
    drawn = _Softmax(torch.Generator().manual_seed(seed))
    shown = f"Bars: the scores of {KEYS} keys, and the weights that a softmax makes of them."
    return Interactive(drawn.figure, controls, drawn.update, shown)


class _Softmax:
    """The figure of `explore_softmax`."""

    def __init__(self, generator: torch.Generator) -> None:
        self.query = torch.randn(HEAD_DIMS[-1], generator=generator)
        self.key = torch.randn(KEYS, HEAD_DIMS[-1], generator=generator)
        self.figure = plots.new_figure(7.6, 2.6)
        left, right = self.figure.subplots(1, 2)
        self.bars = [left.bar(range(KEYS), [0.0] * KEYS, color=plots.BLUE)]
        self.bars += [right.bar(range(KEYS), [0.0] * KEYS, color=plots.ORANGE)]
        left.set_title("scores, divided", fontsize=9)
        right.set_title("weights: the softmax of these scores", fontsize=9)
        left.set_ylim(-42, 42)
        right.set_ylim(0, 1)
        right.axhline(1 / KEYS, color=plots.INK, linewidth=1, linestyle=(0, (4, 3)), label="all alike")
        right.legend(frameon=False, fontsize=8)
        for axes in (left, right):
            axes.set(xlabel="key", facecolor=plots.BACKGROUND, xticks=range(0, KEYS, 5))
            axes.locator_params("y", nbins=5)
            axes.spines[["top", "right"]].set_visible(False)

    def update(self, head_dim: int, divisor: float) -> str:
        scores = self.key[:, :head_dim] @ self.query[:head_dim] / divisor
        weights = scores.softmax(dim=0)
        for drawn, values in zip(self.bars, (scores, weights), strict=True):
            for bar, value in zip(drawn, values.tolist(), strict=True):
                bar.set_height(value)
        slope = (weights * (1 - weights)).max()
        least, most = (round(each.item(), 1) + 0.0 for each in scores.aminmax())  # + 0.0: no "-0.0"
        named = " (the root of head_dim)" if divisor == math.sqrt(head_dim) else ""
        return (
            f"head_dim {head_dim}, scores divided by {divisor:g}{named}: they run from {least} to {most}. "
            f"The largest weight is {weights.max():.2f}, at key {weights.argmax()}; all alike is "
            f"{1 / KEYS:.2f}. Raising a score by 1 changes its weight by about {slope:.2f} at most."
        )


def explore_attention(
    picture: Tensor,
    weights: Sequence[Tensor],
    grid_size: tuple[int, int],
    rollout: Callable[[Sequence[Tensor]], Tensor],
) -> Interactive:
    """Where a token looks in a picture, by block, head and query, from raw attention to rollout.

    Args:
        picture: (1 or 3, height, width) uint8, or float in [0, 1]: what the model saw, in any resolution.
        weights: for each block (1, num_heads, tokens, tokens), rows are queries; with or without a class token.
        grid_size: (rows, columns) of patches.
        rollout: the weights of the first blocks → (1, tokens, tokens).

    Raises:
        ValueError: there is no block, or the sizes do not fit together.
    """
    rows, columns = grid_size
    drawn = _Attention(picture, _split_weights_by_block(weights, grid_size), grid_size, rollout)
    queries, when = ["patch"], None
    if weights[0].shape[-1] > rows * columns:
        queries, when = ["patch", "class token"], ("query", "patch")
    heads = {"mean of the heads": MEAN} | {f"head {head}": head for head in range(max(map(len, drawn.blocks)))}
    controls = (
        Control("query", "query", {each: each for each in queries}, "patch"),
        Control("row", "patch row", range(rows), rows // 2, when),
        Control("column", "patch column", range(columns), columns // 2, when),
        Control("block", "block", range(len(weights)), len(weights) - 1),
        Control("head", "head", heads, MEAN),
        Control("share", "% rollout", range(0, 101, 10), 0),
    )
    shown = (
        "A picture with the query patch framed, and again in the light of its attention, the brightest patch framed."
    )
    return Interactive(drawn.figure, controls, drawn.update, shown)


class _Attention:
    """The figure of `explore_attention`."""

    def __init__(
        self,
        picture: Tensor,
        blocks: list[Tensor],
        grid_size: tuple[int, int],
        rollout: Callable[[Sequence[Tensor]], Tensor],
    ) -> None:
        self.blocks, self.grid_size = blocks, grid_size
        self.rollout, self.rolled = rollout, dict[int, Tensor]()
        pixels = _shrink_picture(picture)
        height, width = pixels.shape[:2]
        dark, bright = (
            255 * plots.shine_light_on(pixels, torch.full((height, width), light)).numpy() for light in (0.0, 1.0)
        )
        self.dark, self.glow = dark, bright - dark
        self.row_of = torch.arange(height) * grid_size[0] // height
        self.column_of = torch.arange(width) * grid_size[1] // width
        self.figure = plots.new_figure(6.6, 0.5 + 3.1 * height / width)
        panels = self.figure.subplots(1, 2)
        for axes in panels:
            _draw_on_patches(axes, pixels, grid_size)
        self.lit = panels[1]
        self.frames = [_draw_frame(axes, plots.BLUE) for axes in panels]
        self.most = _draw_frame(self.lit, "white")

    def update(self, query: str, row: int, column: int, block: int, head: int, share: int) -> str:
        rows, columns = self.grid_size
        of_block = self.blocks[block]
        raw = of_block.mean(dim=0) if head == MEAN else of_block[min(head, len(of_block) - 1)]
        token = 0 if query == "class token" else row * columns + column - rows * columns
        looks = torch.lerp(raw[token], self._compute_rollout(block)[token], share / 100) if share else raw[token]
        looks = looks[-rows * columns :].reshape(self.grid_size)
        light = (looks / looks.max().clamp_min(1e-12)).numpy()[self.row_of][:, self.column_of, None]
        self.lit.images[0].set_data((self.dark + light * self.glow).astype("uint8"))
        most_row, most_column = divmod(int(looks.argmax()), columns)
        self.most.set_xy((most_column - 0.5, most_row - 0.5))
        for frame in self.frames:
            frame.set(xy=(column - 0.5, row - 0.5), visible=query == "patch")
        kind = f"block {block}, " + ("mean of the heads" if head == MEAN else f"head {head}")
        if share:
            kind = f"rollout through block {block}" if share == 100 else f"{kind}, {share} % of the way to rollout"
        self.lit.set_title(kind, fontsize=9)
        label = f"Query patch row {row}, column {column}" if query == "patch" else "Query: the class token"
        return f"{label}; {kind}. It looks most at {_describe_largest_value(looks)}."

    def _compute_rollout(self, block: int) -> Tensor:
        """Rollout through this block: (tokens, tokens)."""
        if block not in self.rolled:
            tokens = self.blocks[0].shape[-1]
            rolled = self.rollout([layer[None] for layer in self.blocks[: block + 1]])
            if not isinstance(rolled, Tensor) or tuple(rolled.shape) != (1, tokens, tokens):
                got = tuple(rolled.shape) if isinstance(rolled, Tensor) else type(rolled).__name__
                raise ValueError(f"rollout gave {got}; (1, {tokens}, {tokens}) is needed")
            self.rolled[block] = rolled[0].detach().float().cpu()
        return self.rolled[block]


def _split_weights_by_block(weights: Sequence[Tensor], grid_size: tuple[int, int]) -> list[Tensor]:
    """For each block (num_heads, tokens, tokens) on the CPU."""
    rows, columns = grid_size
    if not weights:
        raise ValueError("there is no block to show")
    for number, layer in enumerate(weights):
        if layer.ndim != 4 or len(layer) != 1 or layer.shape[-1] not in (rows * columns, rows * columns + 1):
            raise ValueError(
                f"weights of block {number} are {tuple(layer.shape)}; for a grid of {rows} x {columns} patches and one "
                f"picture (1, num_heads, tokens, tokens) is needed, with {rows * columns} tokens or one more"
            )
    return [layer[0].detach().float().cpu() for layer in weights]


def _shrink_picture(picture: Tensor, largest: int = 192) -> Tensor:
    """(height, width, 3) in [0, 1], no side above `largest`."""
    pixels = plots.convert_to_pictures(picture)[0]
    height, width = pixels.shape[:2]
    scale = largest / max(height, width)
    if scale >= 1:
        return pixels
    size = max(1, round(height * scale)), max(1, round(width * scale))
    return F.interpolate(pixels.permute(2, 0, 1)[None], size=size, mode="area")[0].permute(1, 2, 0)


def _convert_to_uint8(pixels: Tensor) -> Any:
    """Floats in [0, 1], a little over- and undershoot cut off, as an array of uint8, which is drawn faster."""
    return (255 * pixels).clamp(0, 255).to(torch.uint8).numpy()


def _draw_on_patches(axes: Axes, pixels: Tensor, grid_size: tuple[int, int]) -> None:
    """Draw (height, width, 3) so that axes count patches."""
    rows, columns = grid_size
    aspect = pixels.shape[0] / pixels.shape[1] * columns / rows
    extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
    axes.imshow(_convert_to_uint8(pixels), extent=extent, interpolation="nearest", aspect=aspect)
    _style_patch_axes(axes)


def _style_patch_axes(axes: Axes) -> None:
    axes.tick_params(length=0, labelsize=7)
    axes.set_frame_on(False)
    axes.locator_params(integer=True, nbins=6)


def _draw_frame(axes: Axes, color: str) -> Any:
    """A frame round one patch, where axes count patches; `set_xy` moves it."""
    from matplotlib.patches import Rectangle

    return axes.add_patch(Rectangle((-0.5, -0.5), 1, 1, fill=False, edgecolor=color, linewidth=2.5, zorder=3))


def _describe_largest_value(values: Tensor) -> str:
    """The place and the value of the largest of (rows, columns)."""
    row, column = divmod(int(values.argmax()), values.shape[1])
    return f"row {row}, column {column} ({values.max():.2f})"
