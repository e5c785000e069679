"""From pixels to tokens: what each token reads of an image."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.watch import BENDS, LINEARS, NORMS, Op, compute_gradient

_MODULE = "PatchEmbedding: "


class Box:
    """The smallest box around the pixels that a token reads."""

    def __init__(self, gradient: Tensor) -> None:
        plane = (gradient != 0).any(0)
        rows, columns = plane.any(1).nonzero().flatten(), plane.any(0).nonzero().flatten()
        self.top, self.left = int(rows[0]), int(columns[0])
        self.height, self.width = int(rows[-1]) + 1 - self.top, int(columns[-1]) + 1 - self.left
        self.count, area = int(plane.sum()), self.height * self.width
        self.filled = self.count > 0.34 * area
        wide, narrow = max(self.height, self.width), min(self.height, self.width)
        all_colors = bool((gradient != 0).flatten(1).any(1).all())
        self.compact = self.filled and wide <= 3 * narrow and all_colors and area <= 0.6 * plane.numel()


def find_pixel_boxes(case: Case) -> dict[int, Box]:
    """For each patch token that is looked at, the box that it reads."""
    boxes = {row: Box(case.pixel_gradients_by_token[row][0]) for row in case.patch_token_indices}
    if not boxes:
        raise NotAsked("no pixel reaches the tokens by a gradient")
    return boxes


def one_square_each(case: Case) -> Remarks:
    """Each token reads one square of pixels, in all channels."""
    boxes, count = find_pixel_boxes(case), case.embedded_tokens.shape[1]
    if count == 1 or (len(boxes) == 1 and count <= 2):
        yield report_wrong("the whole image is one token", "patchify: patch size counted as patches")
        return
    bad = [row for row, box in boxes.items() if not box.compact]
    if not bad:
        return
    box = boxes[bad[0]]
    seen = f"token {bad[0]} reads {box.count} pixels, scattered over {box.height}×{box.width}"
    if len(bad) < len(boxes) / 2:
        raise NotAsked(f"{len(bad)} of {len(boxes)} tokens read another area: {seen}")
    if box.count > 0.6 * case.images[0, 0].numel() and not _reads_square_per_feature(case, bad[0]):
        raise NotAsked("each token reads most of the image before the first block")
    strips = box.width > 3 * box.height and box.filled
    mistake = f"{_MODULE}{'embedding of strips' if strips else 'reshaped where transposed'}"
    yield report_wrong(
        f"{len(bad)} of {len(boxes)} tokens read no square: {seen}", mistake, _find_patch_embedding(case)
    )


def _reads_square_per_feature(case: Case, row: int) -> bool:
    """Say whether single numbers of a token read one square each, though the whole token does not."""
    width = case.embedded_tokens.shape[-1]
    first, last = (
        Box(compute_gradient(case.embedded_tokens[0, row, each : each + 1], case.pixels_with_gradient)[0])
        for each in (0, width - 1)
    )
    return first.compact and last.compact and (first.top, first.left) != (last.top, last.left)


def each_pixel_once(case: Case) -> Remarks:
    """Patches do not overlap."""
    if not all(box.compact for box in find_pixel_boxes(case).values()):
        return
    most = int(
        torch.stack([(case.pixel_gradients_by_token[row][0] != 0).any(0).int() for row in case.patch_token_indices])
        .sum(0)
        .max()
    )
    if most > 1:
        seen = f"a pixel is read by up to {most} tokens: patches overlap, as behind a stem of convolutions"
        yield report_unusual(seen, "patchify: overlapping patches", _find_patch_embedding(case))


def rows_before_columns(case: Case) -> Remarks:
    """Tokens run row by row, from left to right."""
    boxes = find_pixel_boxes(case)
    if not all(box.compact for box in boxes.values()):
        raise NotAsked("tokens are no squares")
    places = [(box.top, box.left) for box in boxes.values()]
    if places != sorted(places):
        by_column = places == sorted(places, key=lambda place: place[::-1])
        seen = "column by column" if by_column else "in an order of their own"
        seen = (
            f"tokens run {seen}: learned positions make up for it, tables of rows and columns and loaded weights do not"
        )
        yield report_unusual(seen, f"{_MODULE}embedding in column order", _find_patch_embedding(case))


def same_map_for_each(case: Case) -> Remarks:
    """One linear map makes a token of each patch."""
    first = case.anatomy.start[1]
    ops = [op for op in case.watch.ops if first and first.needs(op) and op.data]
    bends = [op for op in ops if op.name in BENDS]
    if bends and sum(op.name in LINEARS for op in ops) == 1:
        seen = f"{bends[0].name} follows the projection of the patches"
        yield report_unusual(seen, f"{_MODULE}activation after the projection", bends[0])
        return
    if bends or any(op.name in NORMS for op in ops):
        raise NotAsked("between pixels and tokens stands more than one linear map")
    rows = [row for row, box in find_pixel_boxes(case).items() if box.compact]
    weights = [mask[mask != 0].sort().values for mask in (case.pixel_gradients_by_token[row][0] for row in rows)]
    whole = {len(each) for each in weights}
    if len(whole) == 1 and not all(are_close(each, weights[0], 1e-3) for each in weights[1:]):
        yield report_wrong("the patches are not all mapped by the same weights", at=_find_patch_embedding(case))


def _find_patch_embedding(case: Case) -> Op | None:
    return next((op for op in case.watch.ops if op.data and op.name in LINEARS), None)


PROPERTIES = (one_square_each, each_pixel_once, rows_before_columns, same_map_for_each)
