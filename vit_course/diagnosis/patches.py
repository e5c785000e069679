"""From pixels to tokens: what each token reads of an image, and how positions come in."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.watch import BENDS, LINEARS, NORMS, Op, pull


def one_square_each(case: Case) -> Remarks:
    """Each token reads one square of pixels, in all channels."""
    boxes = boxes_of(case)
    if case.start.shape[1] == 1 or (len(boxes) == 1 and case.start.shape[1] <= 2):
        yield wrong("the whole image is one token", "patchify: patch size counted as patches")
        return
    bad = [row for row, box in boxes.items() if not box.compact]
    if not bad:
        return
    box, at = boxes[bad[0]], _embedding(case)
    seen = f"token {bad[0]} reads {box.count} pixels, scattered over {box.height}×{box.width}"
    if len(bad) < len(boxes) / 2:
        raise NotAsked(f"{len(bad)} of {len(boxes)} tokens read another area: {seen}")
    mistake = (
        "PatchEmbedding: embedding of strips"
        if box.width > 3 * box.height and box.filled
        else "PatchEmbedding: reshaped where transposed"
    )
    if box.count > 0.6 * case.images.shape[-1] * case.images.shape[-2] and not _by_feature(case, bad[0]):
        raise NotAsked("each token reads most of the image before the first block")
    yield wrong(f"{len(bad)} of {len(boxes)} tokens read no square: {seen}", mistake, at)


def each_pixel_once(case: Case) -> Remarks:
    """Patches do not overlap."""
    total = torch.stack([_mask(case, row) for row in case.patches]).sum(0) if case.patches else None
    if total is not None and int(total.max()) > 1 and all(box.compact for box in boxes_of(case).values()):
        yield unusual(
            f"a pixel is read by up to {int(total.max())} tokens: patches overlap, as behind a stem of convolutions",
            "patchify: overlapping patches",
            _embedding(case),
        )


def rows_before_columns(case: Case) -> Remarks:
    """Tokens run row by row, from the left to the right."""
    boxes = boxes_of(case)
    if not all(box.compact for box in boxes.values()):
        raise NotAsked("tokens are no squares")
    places = [(box.top, box.left) for box in boxes.values()]
    if places != sorted(places):
        by_column = places == sorted(places, key=lambda place: place[::-1])
        seen = "tokens run column by column" if by_column else "tokens run in an order of their own"
        yield unusual(
            f"{seen}: learned positions make up for it, tables for rows and columns and weights of others do not",
            "PatchEmbedding: embedding in column order",
            _embedding(case),
        )


def same_map_for_each(case: Case) -> Remarks:
    """One linear map makes a token of each patch."""
    first = case.anatomy.start[1]
    ops = [op for op in case.watch.ops if first and first.needs(op) and op.data]
    bends = [op for op in ops if op.name in BENDS]
    linears = [op for op in ops if op.name in LINEARS]
    if len(linears) == 1 and bends:
        yield unusual(
            f"{bends[0].name} follows the projection of the patches",
            "PatchEmbedding: activation after the projection",
            bends[0],
        )
        return
    if bends or any(op.name in NORMS for op in ops):
        raise NotAsked("between pixels and tokens stands more than one linear map")
    kernels = {}
    for row, box in boxes_of(case).items():
        if box.compact:
            kernels[row] = case.seen[row][0, :, box.top : box.top + box.height, box.left : box.left + box.width]
    shapes = {each.shape for each in kernels.values()}
    if len(shapes) == 1 and len(kernels) > 1:
        alike = [_same_weights(case, row) for row in kernels]
        if not all(close(each, alike[0], 1e-3) for each in alike[1:]):
            yield wrong("not every patch is mapped by the same weights", at=_embedding(case))


def _same_weights(case: Case, row: int) -> Tensor:
    mask = case.seen[row][0]
    return mask[mask != 0].sort().values


def _by_feature(case: Case, row: int) -> bool:
    """Whether single numbers of a token read one square each, though the whole token does not."""
    some = [_Box(pull(case.start[0, row, each : each + 1], case.pixels)[0]) for each in (0, case.start.shape[-1] - 1)]
    return all(box.compact for box in some) and (some[0].top, some[0].left) != (some[1].top, some[1].left)


class _Box:
    """The smallest box around the pixels that a token reads."""

    def __init__(self, gradient: Tensor) -> None:
        plane = (gradient != 0).any(0)
        rows, columns = plane.any(1).nonzero().flatten(), plane.any(0).nonzero().flatten()
        self.top, self.left = int(rows[0]), int(columns[0])
        self.height, self.width = int(rows[-1]) + 1 - self.top, int(columns[-1]) + 1 - self.left
        self.count = int(plane.sum())
        self.filled = self.count > 0.34 * self.height * self.width
        colors = int((gradient != 0).flatten(1).any(1).sum())
        wide, narrow = max(self.height, self.width), min(self.height, self.width)
        whole = self.height * self.width > 0.6 * plane.numel()
        self.compact = self.filled and wide <= 3 * narrow and colors == len(gradient) and not whole


def boxes_of(case: Case) -> dict[int, _Box]:
    """For each patch token that is looked at, the box that it reads."""
    boxes = {row: _Box(case.seen[row][0]) for row in case.patches}
    if not boxes:
        raise NotAsked("no pixel reaches the tokens by a gradient")
    return boxes


def _mask(case: Case, row: int) -> Tensor:
    return (case.seen[row][0] != 0).any(0).int()


def _embedding(case: Case) -> Op | None:
    return next((op for op in case.watch.ops if op.data and op.name in LINEARS), None)


PROPERTIES = (
    one_square_each,
    each_pixel_once,
    rows_before_columns,
    same_map_for_each,
)
