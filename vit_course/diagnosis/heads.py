"""Heads: over the tokens of one image, several, apart, each giving its token back what it found for it."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.anatomy import Site, find_token_axis_of_result, is_learned_linear_map
from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close, find_influential_rows
from vit_course.diagnosis.watch import compute_gradient, list_ops_between, trace_source

_MODULE = "MultiHeadSelfAttention: "


def tokens_see_tokens(case: Case) -> Remarks:
    """Attention runs over the tokens of one image."""
    site, count, batch = case.attention_sites[0], case.embedded_tokens.shape[1], len(case.images)
    query, scores = site.query[0], site.scores.out
    keys = query.shape[-2] if site.mix is site.scores else scores.shape[-1] if scores.ndim else 0
    if keys == count:
        return
    # torch's own module puts the heads beside the tokens there
    if keys == batch and any(size % count == 0 for size in query.shape[:-2]):
        seen = f"each token attends to the same token of the other images: its keys are {keys}, the batch, not {count}"
        seen += "; nn.MultiheadAttention without batch_first=True does this"
        yield report_wrong(seen, f"{_MODULE}attention over the batch", site.scores)
    elif query.ndim == 4 and query.shape[1] == count and keys == query.shape[2]:
        seen = f"a token's {keys} heads attend to each other, and no token to another"
        yield report_wrong(seen, f"{_MODULE}heads talk to each other", site.scores)


def norm_over_features(case: Case) -> Remarks:
    """Before attention no token depends on another: norms take their statistics over a token's numbers alone."""
    site = case.attention_sites[0]
    made, start = site.query[1], case.anatomy.start[1]
    if made is None or start is None or not made.needs(start):
        raise NotAsked("queries are not made from the stream")
    first = next((op for op in list_ops_between(made, start, case.watch.ops) if is_learned_linear_map(op)), None)
    read = next(each for each in first.reads if each[1] is not None and each[1].data) if first else site.query
    norm = trace_source(*read, scales=False).op
    if norm is None or norm is start:
        return
    shapes = [each for each in (read[0], norm.out) if each.ndim == case.embedded_tokens.ndim and each.requires_grad]
    normed = next(
        (each for each in map(case.view_as_tokens, shapes) if each.shape[1] == case.embedded_tokens.shape[1]), None
    )
    if normed is None:
        raise NotAsked("the tokens before attention are not those of the stream")
    reach = case.view_as_tokens(compute_gradient(normed[0, normed.shape[1] // 2], case.anatomy.start[0]))
    mixing, images = len(find_influential_rows(reach[0])), len(reach) > 1 and bool(reach[1:].any())
    seen = "before attention a token depends on {}: the norm takes its statistics over {}, too"
    if mixing > 1:
        mistake = "layer_norm: batch norm" if images else "layer_norm: statistics over the tokens"
        yield report_wrong(seen.format(f"{mixing} tokens", "tokens"), mistake, norm)
    elif images:
        yield report_wrong(seen.format("other images", "the batch"), "layer_norm: statistics over the first axis", norm)


def heads_merged_within_token(case: Case) -> Remarks:
    """What the heads give for a token goes back to that token."""
    site, step = case.attention_sites[0], case.anatomy.steps[0] if case.anatomy.steps else None
    mixed = site.mix.out
    if step is None or not mixed.requires_grad:
        raise NotAsked("what attention gives is added to nothing")
    axis, branch = find_token_axis_of_result(site), case.view_as_tokens(step.branch[0])
    if axis is None or mixed.shape[axis] != branch.shape[1]:
        raise NotAsked("the tokens of what attention gives are not on an axis of their own")
    reach = compute_gradient(branch[0, 1], mixed)
    rows = find_influential_rows(reach.movedim(axis, 0).flatten(1))
    if mixed.ndim == 4 and len(mixed) == len(case.images) and reach[1:].any():
        seen = "what attention gives for one image lands in another"
        yield report_wrong(seen, f"{_MODULE}heads merged before the batch", site.mix)
    elif rows != [1]:
        seen = f"behind attention token 1 is made of what was found for the tokens {rows[:6]}"
        yield report_wrong(seen, f"{_MODULE}heads merged by view", site.mix)


def heads_apart(case: Case) -> Remarks:
    """There are several heads, each with weights of its own, and no head reads another's scores."""
    site, batch = case.attention_sites[0], len(case.images)
    query = site.query[0]
    inside = case.anatomy.find_sites_within(case.anatomy.steps[0]) if case.anatomy.steps else []
    fused = site.mix is site.scores or site.weights is None
    heads = query.shape[-3 if fused else 1] if query.ndim > 3 else 1
    folded = query.ndim == 3 and query.shape[0] % batch == 0 and query.shape[0] > batch
    if heads == 1 and len(inside) <= 1 and not folded:
        seen = f"attention has one head, {query.shape[-1]} wide"
        yield report_unusual(seen, f"{_MODULE}one head for everything", site.scores)
    if heads > 1 and query.ndim == 4:
        yield from _remark_on_equal_heads(site, query, heads, batch)


def _remark_on_equal_heads(site: Site, query: Tensor, heads: int, batch: int) -> Remarks:
    mistake = f"{_MODULE}same weights for every head"
    if len(query) == batch and are_close(query, query[:, :1].expand_as(query), 1e-5):
        yield report_wrong("all heads have the same queries", mistake, site.scores)
    weights = site.weights[0] if site.weights else query
    if not site.weights or weights.ndim != 4 or weights.shape[1] != heads:
        return
    if are_close(weights, weights[:, :1].expand_as(weights), 1e-5):
        yield report_wrong("all heads have the same weights", mistake, site.mix)
    total = weights.sum(site.axis)
    if compute_gradient(weights[0, 0], query)[0, 1:].any() and are_close(total, torch.ones_like(total)):
        seen = "a head's weights depend on the queries of other heads"
        yield report_unusual(seen, f"{_MODULE}heads talk to each other", site.mix)


PROPERTIES = (norm_over_features, tokens_see_tokens, heads_apart, heads_merged_within_token)
