"""Attention: weights that sum to one over the keys, scores over the root of the head's width, heads within a token."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.anatomy import Site
from vit_course.diagnosis.answers import Remark, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.watch import ADDS, LINEARS, Op, constant_factor, source

_AXES = {
    2: ("the queries", "MultiHeadSelfAttention: softmax down the queries"),
    3: ("the heads", "MultiHeadSelfAttention: softmax over the heads"),
}


def weights_sum_to_one(case: Case) -> Remarks:
    """The weights that a query gives to the values are not negative and add up to 1."""
    for site in case.sites:
        if site.weights is None:
            continue
        weights, made = site.weights
        total = weights.sum(site.axis)
        if close(total, torch.ones_like(total)) and weights.min() >= -1e-6:
            continue
        factor = source(weights, made).factor
        if factor is not None and abs(factor - 1) > 1e-4 and site.softmax is not None:
            yield wrong(
                f"the weights are multiplied by {factor:.4g} behind the softmax",
                "MultiHeadSelfAttention: scaled after the softmax",
                site.mix,
            )
        elif (weights < -1e-6).any() and site.softmax is None:
            yield unusual(
                "no softmax stands between scores and values, as in linear attention",
                "scaled_dot_product_attention: softmax forgotten",
                site.mix,
            )
        else:
            yield _wrong_axis(site, weights.detach())
        return


def _wrong_axis(site: Site, weights: Tensor) -> Remark:
    total = weights.sum(site.axis)
    seen = f"the weights of one query add up to {float(total.min()):.3g} to {float(total.max()):.3g}"
    if site.softmax is not None and site.softmax.reads[0][0].ndim == weights.ndim:
        for axis in range(weights.ndim):
            over = weights.sum(axis)
            if axis != site.axis and close(over, torch.ones_like(over)):
                back = weights.ndim - axis
                words, mistake = _AXES.get(back, ("another axis", ""))
                if back == 3 and weights.ndim == 3:
                    words, mistake = "the batch", ""
                return wrong(f"{seen}: softmax runs over {words} (axis {axis})", mistake, site.softmax)
    for axes in ((-2, -1), tuple(range(1, weights.ndim)), tuple(range(weights.ndim))):
        over = weights.sum(axes)
        if close(over, torch.ones_like(over)):
            return wrong(
                f"{seen}: one softmax runs over all pairs",
                "scaled_dot_product_attention: one softmax for everything",
                site.softmax,
            )
    if site.softmax is None:
        return unusual(f"{seen}: no softmax", "scaled_dot_product_attention: softmax forgotten", site.mix)
    return unusual(f"{seen}: something changes them behind the softmax", at=site.mix)


def scaled_by_root(case: Case) -> Remarks:
    """Scores are divided by the root of a head's width."""
    for site in case.sites:
        width = site.query[0].shape[-1]
        factor = _scale_of(site)
        if factor is None or abs(factor * width**0.5 - 1) < 2e-3:
            continue
        behind = site.weights is not None and abs((source(*site.weights).factor or 1) - 1) > 1e-4
        if not behind:
            ratio = 1 / factor if factor else float("inf")
            yield unusual(
                f"scores are divided by {ratio:.4g}; a head {width} wide asks for {width**0.5:.4g}",
                _scale_mistake(site, case, factor, width),
                site.scores,
            )
        return


def _scale_mistake(site: Site, case: Case, factor: float, width: int) -> str:
    query = site.query[0]
    heads = query.shape[-3] if query.ndim > 3 else 1
    whole, keys = case.start.shape[-1], case.start.shape[1]
    if abs(factor - 1) < 2e-3 and _scaled_behind(case, site, width):
        return "MultiHeadSelfAttention: scaled after the softmax"
    known = {
        1.0: "MultiHeadSelfAttention: heads not scaled",
        1 / width: "MultiHeadSelfAttention: head dim without the root",
        width**0.5: "scaled_dot_product_attention: multiplied by the root",
        heads**-0.5: "MultiHeadSelfAttention: root of the number of heads",
        whole**-0.5: "MultiHeadSelfAttention: root of embed dim",
        keys**-0.5: "scaled_dot_product_attention: root of the number of keys",
        1 / max(1, int(width**0.5)): "MultiHeadSelfAttention: root cut to whole numbers",
    }
    return next((name for value, name in known.items() if abs(factor / value - 1) < 2e-3), "")


def _scaled_behind(case: Case, site: Site, width: int) -> bool:
    """Whether what attention gives is divided by the root in place of the scores."""
    for op in case.watch.ops[site.mix.number :]:
        step = constant_factor(op)
        if step and step[0][1] is site.mix and step[1] is not None and abs(step[1] * width**0.5 - 1) < 2e-3:
            return True
    return False


def _scale_of(site: Site) -> float | None:
    """By what the product of query and key is multiplied, None where it is no constant or both are normed."""
    if site.mix is site.scores:
        given = site.mix.kwargs.get("scale")
        factor = float(given) if given is not None else site.query[0].shape[-1] ** -0.5
    else:
        soft = site.softmax or site.mix
        start = soft.reads[0] if site.softmax else site.weights
        factor = _down_to(start, site.scores) if start else None
        if factor is None:
            return None
    for tensor, made in (site.query, site.key):
        found = source(tensor, made)
        if found.factor is None or (
            found.op and found.op.name not in LINEARS | ADDS | {"cat"} and found.op.name != "stack"
        ):
            return None
        factor *= found.factor
    return factor


def _down_to(read: tuple[Tensor, Op | None], scores: Op) -> float | None:
    """The constant factor between two operations, through masks and biases that are added."""
    factor = 1.0
    for _ in range(12):
        found = source(*read)
        if found.factor is None or found.op is None:
            return None
        factor *= found.factor
        if found.op is scores:
            return factor
        on = [each for each in found.op.reads if each[1] is not None and (each[1] is scores or each[1].needs(scores))]
        if len(on) != 1 or found.op.name not in ADDS | {"masked_fill", "masked_fill_", "sub", "__sub__", "where"}:
            return None
        read = on[0]
    return None


def softmax_of_large_scores(case: Case) -> Remarks:
    """Large scores give weights, and no overflow."""
    site = case.sites[0]
    if site.mix is site.scores or site.softmax is not None:
        return
    with torch.no_grad():
        large, _ = case.subject.watch(case.images, {site.scores.number: lambda scores: scores * 0 + 500.0})
    if site.mix.number < len(large.ops) and not large.ops[site.mix.number].out.isfinite().all():
        mistake = "scaled_dot_product_attention: softmax that overflows"
        yield wrong(
            "scores of 500 give weights that are no numbers: the largest is not taken off before the exponential",
            mistake,
            site.mix,
        )


def every_token_sees_all(case: Case) -> Remarks:
    """Every token sees every other: nothing is masked."""
    for site in case.sites:
        weights = site.weights[0] if site.weights else None
        if site.mix.kwargs.get("is_causal"):
            yield unusual(
                "a causal mask hides the tokens behind each token",
                "scaled_dot_product_attention: causal mask",
                site.mix,
            )
            return
        if weights is None or weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < 3:
            continue
        hidden = weights.detach()[(0,) * (weights.ndim - 2)] == 0
        if hidden.triu(1).sum() == hidden.sum() == len(hidden) * (len(hidden) - 1) // 2:
            yield unusual(
                "a causal mask hides the tokens behind each token",
                "scaled_dot_product_attention: causal mask",
                site.mix,
            )
            return


PROPERTIES = (
    scaled_by_root,
    weights_sum_to_one,
    softmax_of_large_scores,
    every_token_sees_all,
)
