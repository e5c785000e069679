"""Positions: that there are some, added once, one for each token."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case
from vit_course.diagnosis.patches import boxes_of
from vit_course.diagnosis.watch import ADDS, MOVES, NORMS, Op, is_given, source


def positions_there(case: Case) -> Remarks:
    """Tokens know where they stand: positions are added before the blocks, or act inside attention."""
    plain = (
        torch.full_like(case.images, 0.3)
        * torch.linspace(0.5, 1.5, case.images.shape[1]).to(case.images)[:, None, None]
    )
    with torch.no_grad():
        watch, _ = case.subject.watch(plain)
    start = _same_op(watch.ops, case.anatomy.start[1])
    rows = case.tokens(start.out)[0]
    patches = rows[[row for row in range(len(rows)) if row not in case.special]]
    spread = float((patches - patches.mean(0)).abs().max())
    kinds = len(
        {tuple((each / max(1e-6, float(patches.abs().max())) * 1e4).round().int().tolist()) for each in patches}
    )
    if spread > 1e-5 * float(patches.abs().max()):
        if kinds < len(patches) * 0.9 and kinds < len(patches) - 8:
            yield unusual(f"{len(patches)} patches have {kinds} different positions", at=start)
        return
    if _inside_attention(case, watch.ops) or not _shuffles(case):
        return
    idle = any(
        is_given(*each)
        for op in case.watch.ops
        if op.name in ADDS and op.out.shape == case.anatomy.start[0].shape
        for each in op.reads
    )
    mistake = "VisionTransformer: one position for all" if idle else "VisionTransformer: positions never added"
    yield unusual(
        "with all patches alike all tokens are alike, and shuffled patches give the same: no positions", mistake, start
    )


def _same_op(ops: list[Op], op: Op | None) -> Op:
    if op is None or op.number >= len(ops) or ops[op.number].name != op.name:
        raise NotAsked("the pass takes another way with other images")
    return ops[op.number]


def _inside_attention(case: Case, ops: list[Op]) -> bool:
    """Whether queries or scores of like tokens differ: rotary or relative positions."""
    site = case.sites[0]
    if site.mix is site.scores:
        query = next(tensor for tensor, maker in _same_op(ops, site.mix).reads[:1])
        masks = [each for each, _ in site.mix.reads[3:] if each.is_floating_point()]
        return not _alike(query, -2, len(case.special)) or any(
            not _alike(each, -1, len(case.special)) for each in masks
        )
    weights = (
        next(op for op in ops if op.number == (site.weights[1] or site.mix).number).out
        if site.weights and site.weights[1]
        else site.mix.out
    )
    query = _same_op(ops, site.scores).reads[0][0]
    return not _alike(query, -2, len(case.special)) or not _alike(weights, -2, len(case.special))


def _alike(tensor: Tensor, axis: int, special: int) -> bool:
    if tensor.ndim < 2 or tensor.shape[axis] <= special + 1:
        return True
    rows = tensor.detach().narrow(axis, special, tensor.shape[axis] - special)
    first = rows.narrow(axis, 0, 1)
    return bool((rows - first).abs().max() <= 1e-5 * max(1e-6, float(rows.abs().max())))


def _shuffles(case: Case) -> bool:
    """Whether shuffled patches give the same logits, or at least nothing tells that they were shuffled."""
    boxes = [box for box in boxes_of(case).values() if box.compact]
    if not boxes:
        return False
    size = boxes[0].height
    height, width = case.images.shape[-2:]
    if height % size or width % size or (height // size) * (width // size) < 2:
        return False
    tiles = case.images.unflatten(2, (height // size, size)).unflatten(4, (width // size, size))
    moved = tiles.roll(1, 2).roll(1, 4).reshape(case.images.shape)
    with torch.no_grad():
        other, far = case.subject.run(moved), case.subject.run(case.images.flip(0) + 0.5)
    same = float((other - case.logits).abs().max()) < 1e-4 * float((far - case.logits).abs().max())
    return same or not case.special  # a class token that reads nothing but an order would differ


def positions_once(case: Case) -> Remarks:
    """Positions are added once, one for each token, before the first block."""
    first, wide = case.anatomy.start, case.start.shape[-1]
    size = {each * wide for each in (case.start.shape[1], case.start.shape[1] - len(case.special))}
    adds, times = [], []
    for op in case.watch.ops:
        if not op.data or op.name in MOVES:
            continue
        given = [each for each in op.reads if is_given(*each) and each[0].numel() in size and each[0].ndim > 1]
        if given and op.out.shape[-1] == wide and op.out.numel() >= max(size):
            whole = given[0][0].numel() // wide
            if whole > 1 and op.name in ADDS:
                adds.append((op, given[0]))
            elif whole > 1 and op.name in ("mul", "__mul__"):
                times.append(op)
    if times and first[1] and first[1].needs(times[0]):
        yield unusual(
            "tokens are multiplied by a table with a row for each, not added to",
            "add_class_token: positions multiplied",
            times[0],
        )
    tables = [source(*given, scales=False).tensor for _, given in adds]
    later = [op for op, _ in adds if first[1] and op.needs(first[1]) and op is not first[1]]
    if later:
        blocks = sum(bool(case.anatomy.sites_of(step)) for step in case.anatomy.steps)
        before = len(adds) > blocks
        same = len({id(each) for each in tables}) < len(tables)
        name = "positions added at the start and before every block" if before else "positions added before every block"
        yield unusual(
            f"positions are added {len(adds)} times{', from the same table' if same else ''}, also between blocks",
            f"VisionTransformer: {name}",
            later[0],
        )
    elif len(adds) > 1 and tables[0].requires_grad and (times_added := _slope(case, tables[0])) > 1.5:
        yield wrong(f"the same positions are added {times_added:.0f} times before the first block", at=adds[1][0])


def _slope(case: Case, table: Tensor) -> float:
    """By how much a token grows with its own row of a table."""
    token = case.start[0, -1]
    slope = torch.autograd.grad(token.sum(), table, retain_graph=True, allow_unused=True)[0]
    first = case.anatomy.start[1]
    if slope is None or first is None or any(op.name in NORMS for op in case.watch.ops[: first.number]):
        return 1.0
    return float(slope.abs().amax())


def class_token_has_position(case: Case) -> Remarks:
    """The class token gets a position, too, and stands in front."""
    if not case.special:
        raise NotAsked("every token reads pixels")
    if case.special[0] != 0:
        yield unusual(
            f"tokens without pixels stand at {case.special[:4]}, behind the patches",
            "VisionTransformer: class token last",
        )
    token = case.start[0, case.special[0]]
    leaves = [each for each in case.subject.model.parameters() if each.requires_grad]
    found = (
        torch.autograd.grad(token.pow(2).sum(), leaves, retain_graph=True, allow_unused=True)
        if token.requires_grad
        else []
    )
    reached = [each for each in found if each is not None and each.any()]
    if (token.requires_grad and not reached) or not token.requires_grad:
        frozen = any(not each.requires_grad for each in case.subject.model.parameters())
        mistake = (
            "VisionTransformer: tensors that are no parameters" if frozen else "add_class_token: a class token of zeros"
        )
        yield wrong("the token without pixels is made of nothing that learns", mistake)
    count, own = case.start.shape[1], len(case.special) * token.numel()
    tables = any(each.shape[-2] in (count, count - len(case.special)) for each in leaves if each.ndim > 1)
    if len(reached) == 1 and reached[0].numel() <= own and tables:
        yield unusual("the class token gets no position", "VisionTransformer: no position added to the class token")


PROPERTIES = (
    positions_there,
    positions_once,
    class_token_has_position,
)
