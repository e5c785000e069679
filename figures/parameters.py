"""Figure of lesson 05: where the parameters of ViT-B/16 live."""

from __future__ import annotations

from architecture import CLASSES, DEPTH, EMBED_DIM, PATCH_SIZE, TOKENS
from canvas import Canvas
from style import BACKGROUND, BLUE, GRAY, GREEN, INK, ORANGE, PURPLE, QUIET, SKY, VERMILION, save_all_figures, tint

HIDDEN_DIM = 4 * EMBED_DIM
STRENGTH = 0.55
Colors = tuple[str, ...]
MODEL_COLORS = (VERMILION, PURPLE, BLUE, GRAY, ORANGE)
BLOCK_COLORS = (BLUE, SKY, GREEN, "#6fc7ae", ORANGE)


def count_linear_parameters(inputs: int, outputs: int) -> int:
    """Parameters of a Linear with bias."""
    return inputs * outputs + outputs


def count_block_parameters() -> dict[str, int]:
    """Parameters of one encoder block."""
    return {
        "qkv": count_linear_parameters(EMBED_DIM, 3 * EMBED_DIM),
        "projection": count_linear_parameters(EMBED_DIM, EMBED_DIM),
        "fc1": count_linear_parameters(EMBED_DIM, HIDDEN_DIM),
        "fc2": count_linear_parameters(HIDDEN_DIM, EMBED_DIM),
        "norm1, norm2": 4 * EMBED_DIM,
    }


def count_model_parameters() -> dict[str, int]:
    """Parameters of the whole model, in the order of the forward pass."""
    return {
        "patch_embedding": count_linear_parameters(3 * PATCH_SIZE**2, EMBED_DIM),
        "class_token, positions": EMBED_DIM + (TOKENS + 1) * EMBED_DIM,
        "blocks": DEPTH * sum(count_block_parameters().values()),
        "norm": 2 * EMBED_DIM,
        "head": count_linear_parameters(EMBED_DIM, CLASSES),
    }


def _format_number(number: int) -> str:
    return f"{number / 1e6:.2f} M" if number >= 1e5 else f"{number:,}"


def _format_share(number: int, whole: int) -> str:
    share = 100 * number / whole
    return f"{share:.1f} %" if share >= 0.05 else "< 0.1 %"


def _draw_table(canvas: Canvas, x: float, y: float, title: str, parts: dict[str, int], colors: Colors) -> None:
    """A table of the parts: color, name, number, share."""
    whole = sum(parts.values())
    canvas.text(x, y, title, 14, weight="bold")
    for row, ((name, number), color) in enumerate(zip(parts.items(), colors, strict=True)):
        line = y + 30 + 25 * row
        canvas.box(x, line - 7, 14, 14, tint(color, STRENGTH), color, radius=3)
        canvas.text(x + 22, line, name, 12.5, mono=True)
        canvas.text(x + 330, line, _format_number(number), 12.5, align="right")
        canvas.text(x + 432, line, _format_share(number, whole), 12.5, QUIET, align="right")


def _draw_stacked_bar(canvas: Canvas, y: float, parts: dict[str, int], colors: Colors) -> list[float]:
    """A stacked bar over the card's width; returns where its parts begin, and its end."""
    numbers = list(parts.values())
    edges = [24 + 432 * sum(numbers[:count]) / sum(numbers) for count in range(len(numbers) + 1)]
    for start, end, color in zip(edges, edges[1:], colors, strict=False):
        canvas.box(start, y, end - start, 46, tint(color, STRENGTH), line=0, radius=0)
    return edges


def _draw_zoom_into_block(canvas: Canvas, edges: list[float]) -> None:
    """The blocks told apart in the upper bar, and one of them opened into the lower bar."""
    start, width = edges[2], (edges[3] - edges[2]) / DEPTH
    for number in range(1, DEPTH):
        canvas.line([(start + width * number, 114), (start + width * number, 160)], BACKGROUND, 2)
    for number in range(DEPTH):
        canvas.text(start + width * (number + 0.5), 137, str(number), 12.5, align="center")
    one = start + width * (DEPTH // 2)
    canvas.polygon([(one, 162), (one + width, 162), (456, 210), (24, 210)], tint(BLUE, 0.1))
    canvas.box(one, 114, width, 46, "none", INK, line=2.4, radius=0)


def parameters() -> Canvas:
    """The whole model, and one block of it, as stacked bars."""
    model, block = count_model_parameters(), count_block_parameters()
    total, each = sum(model.values()), sum(block.values())
    share = _format_share(model["blocks"], total)
    subtitle = f"ViT-B/16: {total:,} in all; below, one of its {DEPTH} blocks."
    title = f"{total / 1e6:.1f} million parameters,\n{share} of them in the blocks"
    canvas = Canvas(650, title, subtitle)
    _draw_zoom_into_block(canvas, _draw_stacked_bar(canvas, 114, model, MODEL_COLORS))
    edges = _draw_stacked_bar(canvas, 212, block, BLOCK_COLORS)
    for name, start, end in zip(block, edges, edges[1:], strict=False):
        canvas.line([(end, 212), (end, 258)], BACKGROUND, 2)
        if end - start > 100:
            canvas.text((start + end) / 2, 235, name, 13, align="center", mono=True)
    _draw_table(canvas, 24, 294, "The model", model, MODEL_COLORS)
    _draw_table(canvas, 24, 464, "One block", block, BLOCK_COLORS)
    attention = _format_share(block["qkv"] + block["projection"], each)
    mlp = _format_share(block["fc1"] + block["fc2"], each)
    canvas.text(46, 622, f"attention {attention},  mlp {mlp}", 12.5, QUIET)
    return canvas.describe(
        f"Two stacked bars: {share} of ViT-B/16's {total / 1e6:.1f} million parameters are in its {DEPTH} blocks, "
        f"and two thirds of a block are in its MLP.",
        f"""ViT-B/16 has {total:,} parameters. {_list_parts(model)}. Each of the {DEPTH} blocks has {each:,}:
        {_list_parts(block)}. Attention holds {attention} of a block, the MLP {mlp}.""",
    )


def _list_parts(parts: dict[str, int]) -> str:
    return "; ".join(f"{name}: {number:,}" for name, number in parts.items())


FIGURES = {"parameters": parameters}

if __name__ == "__main__":
    save_all_figures(FIGURES)
