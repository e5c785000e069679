"""Attention: weights that sum to one over the keys, scores over the root of a head's width, tokens without an order."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from vit_course.diagnosis.anatomy import Read, Site
from vit_course.diagnosis.answers import NotAsked, Remark, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.heads import heads_merged_within_token, norm_over_features
from vit_course.diagnosis.positions import has_positions_in_attention
from vit_course.diagnosis.projections import query_of_one_token
from vit_course.diagnosis.watch import ADDS, LINEARS, Op, find_constant_factor, trace_source

_MODULE, _FUNCTION = "MultiHeadSelfAttention: ", "scaled_dot_product_attention: "
_BEHIND = f"{_MODULE}scaled after the softmax"
_AXES = {
    2: ("the queries", f"{_MODULE}softmax down the queries"),
    3: ("the heads", f"{_MODULE}softmax over the heads"),
}
_MASKS = ADDS | {"masked_fill", "masked_fill_", "sub", "__sub__", "where"}


def weights_sum_to_one(case: Case) -> Remarks:
    """The weights that a query gives to the values are not negative and add up to 1."""
    for site in case.attention_sites:
        if site.weights is None:
            continue
        weights = site.weights[0]
        total = weights.sum(site.axis)
        if are_close(total, torch.ones_like(total)) and weights.min() >= -1e-6:
            continue
        factor = trace_source(*site.weights).factor
        if factor is not None and abs(factor - 1) > 1e-4 and site.softmax is not None:
            yield report_wrong(f"the weights are multiplied by {factor:.4g} behind the softmax", _BEHIND, site.mix)
        elif (weights < -1e-6).any() and site.softmax is None:
            seen = "no softmax stands between scores and values, as in linear attention"
            yield report_unusual(seen, f"{_FUNCTION}softmax forgotten", site.mix)
        else:
            yield _remark_on_softmax_axis(site, weights.detach())
        return


def _remark_on_softmax_axis(site: Site, weights: Tensor) -> Remark:
    total, count = weights.sum(site.axis), weights.ndim
    seen = f"the weights of one query add up to {float(total.min()):.3g} to {float(total.max()):.3g}"
    if site.softmax is not None and site.softmax.reads[0][0].ndim == count:
        for axis in range(count):
            over = weights.sum(axis)
            if axis != site.axis and are_close(over, torch.ones_like(over)):
                words, mistake = _AXES.get(count - axis, ("another axis", ""))
                words, mistake = ("the batch", "") if count - axis == count == 3 else (words, mistake)
                return report_wrong(f"{seen}: softmax runs over {words} (axis {axis})", mistake, site.softmax)
    for axes in ((-2, -1), tuple(range(1, count)), tuple(range(count))):
        over = weights.sum(axes)
        if are_close(over, torch.ones_like(over)):
            name = f"{_FUNCTION}one softmax for everything"
            return report_wrong(f"{seen}: one softmax runs over all pairs", name, site.softmax)
    if site.softmax is None:
        return report_unusual(f"{seen}: there is no softmax", f"{_FUNCTION}softmax forgotten", site.mix)
    return report_unusual(f"{seen}: something changes them behind the softmax", at=site.mix)


def scaled_by_root(case: Case) -> Remarks:
    """Scores are divided by the root of a head's width."""
    for site in case.attention_sites:
        width = site.query[0].shape[-1]
        factor = _find_score_scale(site)
        if factor is None or abs(factor * width**0.5 - 1) < 2e-3:
            continue
        if site.weights is None or abs((trace_source(*site.weights).factor or 1) - 1) < 1e-4:
            ratio = 1 / factor if factor else float("inf")
            seen = f"scores are divided by {ratio:.4g}; for a head {width} wide the root is {width**0.5:.4g}"
            yield report_unusual(seen, _name_scale_mistake(site, case, factor, width), site.scores)
        return


def _name_scale_mistake(site: Site, case: Case, factor: float, width: int) -> str:
    heads = site.query[0].shape[-3] if site.query[0].ndim > 3 else 1
    keys, whole = case.embedded_tokens.shape[1:]
    if abs(factor - 1) < 2e-3 and _is_output_scaled(case, site, width):
        return _BEHIND
    known = {
        1.0: f"{_MODULE}heads not scaled",
        1 / width: f"{_MODULE}head dim without the root",
        width**0.5: f"{_FUNCTION}multiplied by the root",
        heads**-0.5: f"{_MODULE}root of the number of heads",
        whole**-0.5: f"{_MODULE}root of embed dim",
        keys**-0.5: f"{_FUNCTION}root of the number of keys",
        1 / max(1, int(width**0.5)): f"{_MODULE}root cut to whole numbers",
    }
    return next((name for value, name in known.items() if abs(factor / value - 1) < 2e-3), "")


def _is_output_scaled(case: Case, site: Site, width: int) -> bool:
    """Say whether what attention gives is divided by the root in place of the scores."""
    steps = [find_constant_factor(op) for op in case.watch.ops[site.mix.number :]]
    return any(
        step and step[0][1] is site.mix and step[1] is not None and abs(step[1] * width**0.5 - 1) < 2e-3
        for step in steps
    )


def _find_score_scale(site: Site) -> float | None:
    """By what the product of query and key is multiplied, None where it is no constant or both are normed."""
    if site.mix is site.scores:
        given = site.mix.kwargs.get("scale")
        factor: float | None = float(given) if given is not None else site.query[0].shape[-1] ** -0.5
    else:
        start = site.softmax.reads[0] if site.softmax else site.weights
        factor = _multiply_constant_factors(start, site.scores) if start else None
    for read in (site.query, site.key):
        found = trace_source(*read)
        normed = found.op and found.op.name not in LINEARS | ADDS | {"cat", "stack"}
        if factor is None or found.factor is None or normed:
            return None
        factor *= found.factor
    return factor


def _multiply_constant_factors(read: Read, scores: Op) -> float | None:
    """The constant factor between two operations, through masks and biases that are added."""
    factor = 1.0
    for _ in range(12):
        found = trace_source(*read)
        if found.factor is None or found.op is None:
            return None
        factor *= found.factor
        if found.op is scores:
            return factor
        on = [each for each in found.op.reads if each[1] is not None and each[1].needs(scores)]
        if len(on) != 1 or found.op.name not in _MASKS:
            return None
        read = on[0]
    return None


def softmax_of_large_scores(case: Case) -> Remarks:
    """Large scores give weights, and no overflow."""
    site = case.attention_sites[0]
    if site.mix is site.scores or site.softmax is not None:
        return
    with torch.no_grad():
        large, _ = case.subject.watch(case.images, {site.scores.number: lambda scores: scores * 0 + 500.0})
    if site.mix.number < len(large.ops) and not large.ops[site.mix.number].out.isfinite().all():
        seen = "scores of 500 give weights that are no numbers: the largest is not subtracted before the exponential"
        yield report_wrong(seen, f"{_FUNCTION}softmax that overflows", site.mix)


def every_token_sees_all(case: Case) -> Remarks:
    """Every token sees every other: nothing is masked."""
    for site in case.attention_sites:
        weights = site.weights[0] if site.weights else None
        causal = bool(site.mix.kwargs.get("is_causal"))
        if not causal and weights is not None and weights.shape[-1] == weights.shape[-2] >= 3:
            hidden = weights.detach()[(0,) * (weights.ndim - 2)] == 0
            causal = bool(hidden.triu(1).sum() == hidden.sum() == len(hidden) * (len(hidden) - 1) // 2)
        if causal:
            seen = "a causal mask hides from each token those behind it"
            yield report_unusual(seen, f"{_FUNCTION}causal mask", site.mix)
            return


def tokens_have_no_order(case: Case) -> Remarks:
    """The blocks know no order of tokens: moved tokens give what they gave, moved."""
    if not case.is_deterministic:
        raise NotAsked("the logits are not the same twice")
    for other in (query_of_one_token, norm_over_features, heads_merged_within_token, every_token_sees_all):
        if _has_remarks(other, case):
            raise NotAsked("tokens are mixed or hidden already")
    if has_positions_in_attention(case):
        yield report_unusual(
            "positions act inside attention, as rotary and relative ones do", at=case.attention_sites[0].scores
        )
        return
    first, last = case.anatomy.start[1], case.residual_steps[-1].sum
    count = case.embedded_tokens.shape[1]
    order = torch.randperm(count, generator=torch.Generator().manual_seed(9))
    if first is None or case.view_as_tokens(last.out).shape[1] != count:
        raise NotAsked("the tokens behind the blocks are not those before them")
    axis = next(
        axis for axis in range(first.out.ndim) if case.view_as_tokens(first.out).shape[1] == first.out.shape[axis]
    )
    with torch.no_grad():
        moved, _ = case.subject.watch(case.images, {first.number: lambda tokens: tokens.index_select(axis, order)})
    after, before = (case.view_as_tokens(ops[last.number].out) for ops in (moved.ops, case.watch.ops))
    if not are_close(after, before[:, order], 1e-3):
        far = float((after - before[:, order]).norm() / before.norm())
        yield report_unusual(
            f"moved tokens give what differs by {far:.0%}: something in the blocks depends on their order"
        )


def _has_remarks(asked: Callable[[Case], Remarks], case: Case) -> bool:
    try:
        return any(True for _ in asked(case))
    except NotAsked:
        return False


PROPERTIES = (
    scaled_by_root,
    weights_sum_to_one,
    softmax_of_large_scores,
    every_token_sees_all,
    tokens_have_no_order,
)
