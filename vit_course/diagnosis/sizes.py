"""Images of another size, where the model takes them."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.patches import find_pixel_boxes
from vit_course.diagnosis.positions import find_op_in_other_pass, make_one_color_images
from vit_course.diagnosis.watch import Op, compute_gradient
from vit_course.diagnosis.whole import describe_unread_pixels


def other_sizes(case: Case) -> Remarks:
    """An image of another size is refused, or all of it is read, and its positions go by row and column."""
    boxes = find_pixel_boxes(case)
    side, (height, width) = next(iter(boxes.values())).height, case.images.shape[-2:]
    if (
        not all(box.height == box.width == side for box in boxes.values())
        or width % side
        or height % side
        or side == width
    ):
        raise NotAsked("the tokens read no squares of one size that fill the image")
    for tall, wide in ((height, width - side), (height, width + side), (height + side, width)):
        images = F.interpolate(case.images, (tall, wide), mode="bilinear").requires_grad_()
        try:
            reached = compute_gradient(case.subject.run(images), images).abs().amax(0)
            shown, _ = case.subject.watch(F.interpolate(make_one_color_images(case), (tall, wide)))
        except Exception:
            continue  # refused
        if seen := describe_unread_pixels(reached):
            yield report_wrong(f"it takes an image of {tall}×{wide}, and {seen}")
            return
        if wide < width and (at := _find_positions_by_token_number(case, shown.ops, wide // side)):
            seen = f"in an image of {tall}×{wide} a token's position is its running number, not its row and column"
            yield report_unusual(f"{seen}: the table is cut and not resized", at=at)
            return


def _find_positions_by_token_number(case: Case, ops: list[Op], columns: int) -> Op | None:
    """The operation before the blocks, where token k of a narrower image has the position of the first ones."""
    whole, _ = case.subject.watch(make_one_color_images(case))
    starts = [find_op_in_other_pass(each, case.anatomy.start[1]) for each in (whole.ops, ops)]
    large, small = (_find_patch_tokens(case, start.out) for start in starts)
    count, wide = len(small), case.images.shape[-1] // (case.images.shape[-2] // (len(small) // columns))
    by_place = [number // columns * wide + number % columns for number in range(count)]
    if by_place[-1] >= len(large):
        return None
    is_cut = are_close(small, large[:count], 1e-5) and not are_close(small, large[by_place], 1e-5)
    return starts[1] if is_cut else None


def _find_patch_tokens(case: Case, start: Tensor) -> Tensor:
    """The tokens of the first image that read pixels."""
    return case.view_as_tokens(start)[0][
        len(case.special_token_indices) if case.special_token_indices[:1] == [0] else 0 :
    ]


PROPERTIES = (other_sizes,)
