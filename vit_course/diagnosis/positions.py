"""Positions: that there are some, added once, one for each token."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.anatomy import Read, find_token_axis, list_factors
from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case
from vit_course.diagnosis.patches import find_pixel_boxes
from vit_course.diagnosis.watch import ADDS, MOVES, NORMS, TIMES, Op, is_independent_of_images, trace_source

_MODEL = "VisionTransformer: "


def make_one_color_images(case: Case) -> Tensor:
    """Images of one color, in which all patches are alike."""
    shades = torch.linspace(0.5, 1.5, case.images.shape[1]).to(case.images)[:, None, None]
    return torch.full_like(case.images, 0.3) * shades


def find_op_in_other_pass(ops: list[Op], op: Op | None) -> Op:
    """The same operation in another pass (NotAsked where that went another way)."""
    if op is None or op.number >= len(ops) or ops[op.number].name != op.name:
        raise NotAsked("the pass takes another way with other images")
    return ops[op.number]


def positions_there(case: Case) -> Remarks:
    """Tokens know where they stand: positions are added before the blocks, or act inside attention."""
    find_pixel_boxes(case)
    with torch.no_grad():
        watch, _ = case.subject.watch(make_one_color_images(case))
    start = find_op_in_other_pass(watch.ops, case.anatomy.start[1])
    rows = case.view_as_tokens(start.out)[0]
    patches = rows[[row for row in range(len(rows)) if row not in case.special_token_indices]]
    largest = float(patches.abs().max())
    kinds = len({tuple((each / max(1e-6, largest) * 1e4).round().int().tolist()) for each in patches})
    if float((patches - patches.mean(0)).abs().max()) > 1e-5 * largest:
        if kinds < len(patches) * 0.9 and kinds < len(patches) - 8:
            yield report_unusual(f"{len(patches)} patches have {kinds} different positions", at=start)
        return
    if has_positions_in_attention(case):
        return
    if not _ignores_patch_order(case):
        raise NotAsked("with all patches alike the tokens before the blocks are alike: positions come in later")
    adds = (op for op in case.watch.ops if op.name in ADDS and op.out.shape == case.anatomy.start[0].shape)
    idle = any(is_independent_of_images(*each) for op in adds for each in op.reads)
    seen = "with all patches alike all tokens are alike, and shuffled patches give the same: there are no positions"
    yield report_unusual(seen, f"{_MODEL}{'one position for all' if idle else 'positions never added'}", start)


def has_positions_in_attention(case: Case) -> bool:
    """Say whether queries or scores of tokens that are alike differ: rotary or relative positions.

    Where positions are added before the blocks, they are taken off.
    """
    first = case.anatomy.start[1]
    number, special = first.number if first else -1, len(case.special_token_indices)

    def make_patch_tokens_equal(tokens: Tensor) -> Tensor:
        rows = case.view_as_tokens(tokens)
        rows[:, special:] = rows[:, special : special + 1].clone()
        return tokens

    with torch.no_grad():
        watch, _ = case.subject.watch(make_one_color_images(case), {number: make_patch_tokens_equal})
    site = case.attention_sites[0]
    mixed = find_op_in_other_pass(watch.ops, site.mix)
    scores = find_op_in_other_pass(watch.ops, site.scores)
    query = list_factors(scores)[0][0]
    seen = [(query, query.ndim - 2 if site.mix is site.scores else find_token_axis(scores, query))]
    if site.mix is site.scores:
        seen += [(each, each.ndim - 2) for each, _ in mixed.reads[3:] if each.is_floating_point()]
    elif site.weights:
        weights = next(each for each, _ in mixed.reads if each.shape == site.weights[0].shape)
        seen += [(weights, find_token_axis(mixed, weights))]
    return not all(_are_patch_rows_equal(each, axis, special) for each, axis in seen)


def _are_patch_rows_equal(tensor: Tensor, axis: int | None, special: int) -> bool:
    """Say whether all patches have the same numbers."""
    if tensor.ndim < 2 or axis is None or tensor.shape[axis] <= special + 1:
        return True
    rows = tensor.detach().movedim(axis, 0)[special:]
    return bool((rows - rows[:1]).abs().max() <= 1e-5 * max(1e-6, float(rows.abs().max())))


def _ignores_patch_order(case: Case) -> bool:
    """Say whether shuffled patches give the same logits, or nothing could tell that they were shuffled."""
    boxes = [box for box in find_pixel_boxes(case).values() if box.compact]
    size = boxes[0].height if boxes else 0
    height, width = case.images.shape[-2:]
    if not size or height % size or width % size or height * width < 2 * size * size:
        return False
    tiles = case.images.unflatten(2, (height // size, size)).unflatten(4, (width // size, size))
    moved = tiles.roll(1, 2).roll(1, 4).reshape(case.images.shape)
    with torch.no_grad():
        other, far = case.subject.run(moved), case.subject.run(case.images.flip(0) + 0.5)
    same = float((other - case.logits).abs().max()) < 1e-4 * float((far - case.logits).abs().max())
    return same or not case.special_token_indices  # a class token that reads nothing but an order would differ


def find_position_tables(case: Case, ops: list[Op], names: frozenset[str]) -> list[tuple[Op, Read]]:
    """Where ``names`` join the tokens with numbers of the model's own, one row for each token, and these numbers."""
    count, wide = case.embedded_tokens.shape[1:]
    sizes = {each * wide for each in (count, count - len(case.special_token_indices)) if each > 1}
    found = []
    for op in ops:
        if op.data and op.name in names and op.out.shape[-1] == wide and op.out.numel() >= max(sizes, default=1):
            given = [
                each
                for each in op.reads
                if is_independent_of_images(*each) and each[0].numel() in sizes and each[0].ndim > 1
            ]
            found += [(op, each) for each in given[:1]]
    return found


def positions_once(case: Case) -> Remarks:
    """Positions are added once, one for each token, before the first block."""
    first = case.anatomy.start[1]
    times = [op for op, _ in find_position_tables(case, case.watch.ops, TIMES - MOVES)]
    if times and first and first.needs(times[0]):
        seen = "tokens are multiplied by a table with a row for each, which plain ViTs add"
        yield report_unusual(seen, "add_class_token: positions multiplied", times[0])
    adds = find_position_tables(case, case.watch.ops, ADDS)
    own = [trace_source(*given, scales=False).tensor for _, given in adds]
    later = [op for op, _ in adds if first and op.needs(first) and op is not first]
    if later:
        blocks = sum(bool(case.anatomy.find_sites_within(step)) for step in case.anatomy.steps)
        where = "at the start and before every block" if len(adds) > blocks else "before every block"
        same = ", from the same table" if len({id(each) for each in own}) < len(own) else ""
        seen = f"positions are added {len(adds)} times{same}, also between blocks"
        yield report_unusual(seen, f"{_MODEL}positions added {where}", later[0])
    elif len(adds) > 1 and own[0].requires_grad and (slope := _measure_token_slope(case, own[0])) > 1.5:
        yield report_wrong(f"the same positions are added {slope:.0f} times before the first block", at=adds[1][0])


def _measure_token_slope(case: Case, table: Tensor) -> float:
    """By how much a token grows with its own row of a table."""
    token, first = case.embedded_tokens[0, -1], case.anatomy.start[1]
    (slope,) = torch.autograd.grad(token.sum(), table, retain_graph=True, allow_unused=True)
    normed = first is None or any(op.name in NORMS for op in case.watch.ops[: first.number])
    return 1.0 if slope is None or normed else float(slope.abs().amax())


def class_token_has_position(case: Case) -> Remarks:
    """The class token learns, gets a position, too, and stands in front."""
    if not case.special_token_indices:
        raise NotAsked("every token reads pixels")
    if case.special_token_indices[0] != 0:
        seen = f"tokens that read no pixels stand at {case.special_token_indices[:4]}, behind the patches"
        yield report_unusual(seen, f"{_MODEL}class token last")
    token = case.embedded_tokens[0, case.special_token_indices[0]]
    own = list(case.subject.model.parameters())
    learned = [each for each in own if each.requires_grad]
    slopes: tuple[Tensor | None, ...] = ()
    if token.requires_grad:
        slopes = torch.autograd.grad(token.pow(2).sum(), learned, retain_graph=True, allow_unused=True)
    reached = [each for each in slopes if each is not None and each.any()]
    if not reached:
        frozen = f"{_MODEL}tensors that are no parameters"
        mistake = frozen if len(learned) < len(own) else "add_class_token: a class token of zeros"
        yield report_wrong("the token that reads no pixels is made of nothing that learns", mistake)
    count = case.embedded_tokens.shape[1]
    some = any(each.shape[-2] in (count, count - len(case.special_token_indices)) for each in learned if each.ndim > 1)
    if some and len(reached) == 1 and reached[0].numel() <= len(case.special_token_indices) * token.numel():
        yield report_unusual("the class token gets no position", f"{_MODEL}no position added to the class token")


PROPERTIES = (positions_there, positions_once, class_token_has_position)
