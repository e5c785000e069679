"""Queries, keys and values: apart, each of one token and of the whole of it, and what the heads give projected."""

from __future__ import annotations

from torch import Tensor

from vit_course.diagnosis.anatomy import Site, find_token_axis, is_learned_linear_map
from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close, find_influential_rows
from vit_course.diagnosis.heads import norm_over_features, tokens_see_tokens
from vit_course.diagnosis.watch import LINEARS, Op, compute_gradient, list_ops_between, trace_source

_MODULE = "MultiHeadSelfAttention: "
_ALIKE = (
    ("keys", "queries", f"{_MODULE}queries compared with queries"),
    ("keys", "values", "scaled_dot_product_attention: values never used"),
    ("queries", "values", f"{_MODULE}value not projected"),
)


def with_biases(case: Case) -> Remarks:
    """The projections of patches, queries, keys and values, and of the MLP have a bias."""
    maps = [op for op in case.watch.ops if op.data and op.name in LINEARS]
    bare = [op for op in maps if op.name in ("linear", "conv2d") and not _has_bias(op)]
    if bare:
        mistake = "PatchEmbedding: projection without bias" if bare[0] is maps[0] else ""
        what = "one linear map has no bias" if len(bare) == 1 else f"{len(bare)} linear maps have no bias"
        yield report_unusual(f"{what}; some papers leave it out", mistake, bare[0])


def _has_bias(op: Op) -> bool:
    return isinstance(op.kwargs.get("bias", op.args[2] if len(op.args) > 2 else None), Tensor)


def query_key_value_apart(case: Case) -> Remarks:
    """Queries, keys and values come from projections of their own."""
    for site in case.attention_sites:
        parts = {"queries": site.query, "keys": site.key, "values": site.value}
        numbers = {name: _sort_values_before_scaling(*read) for name, read in parts.items()}
        for first, second, mistake in _ALIKE:
            if numbers[first].shape == numbers[second].shape and are_close(numbers[first], numbers[second], 1e-4):
                yield report_wrong(f"{first} and {second} are the same numbers", mistake, site.scores)
                return
        for name, (_, made) in parts.items():
            if made is not None and case.anatomy.steps and not _has_projection_before(case, made):
                seen = f"no weights stand between the tokens and the {name}"
                yield report_unusual(seen, f"{_MODULE}value not projected", site.mix)
                return


def _sort_values_before_scaling(tensor: Tensor, made: Op | None) -> Tensor:
    # whatever axes they were moved to, and before they were scaled
    return (tensor / (trace_source(tensor, made).factor or 1.0)).detach().flatten().sort().values


def _has_projection_before(case: Case, made: Op) -> bool:
    steps = case.anatomy.steps
    start = next((step for step in steps if step.sum.needs(made)), steps[0]).before[1]
    if start is None or made is start or not made.needs(start):
        return True
    return any(is_learned_linear_map(op) for op in list_ops_between(made, start, case.watch.ops))


def query_of_one_token(case: Case) -> Remarks:
    """A query is made of one token and of the whole of it: heads are cut within a token, behind the projection."""
    site, start = case.attention_sites[0], case.embedded_tokens
    query = site.query[0]
    axis = query.ndim - 2 if site.mix is site.scores else find_token_axis(site.scores, query)
    if axis is None or not query.requires_grad:
        raise NotAsked("the queries' tokens are not on an axis of their own")
    if any(True for _ in norm_over_features(case)):
        raise NotAsked("a norm before the queries mixes tokens")
    if any(True for _ in tokens_see_tokens(case)):
        raise NotAsked("attention does not run over the tokens of one image")
    middle = query.shape[axis] // 2
    row = query.select(axis, middle)
    row = row[(0,) * (row.ndim - 1)]
    reach = case.view_as_tokens(compute_gradient(row, case.anatomy.start[0]))
    tokens = find_influential_rows(reach[0])
    final = query.select(axis, 0).flatten(0, -2)[-1] if query.ndim > 2 else row
    last = case.view_as_tokens(compute_gradient(final, case.anatomy.start[0]))
    seen = mistake = ""
    if len(last) > 1 and len(query) == len(last) and last[:-1].any():
        seen, mistake = "the last image's query is made of another image", f"{_MODULE}heads read before the batch"
    elif (reach[1:] != 0).any():
        seen, mistake = "a query is made of several images", "split_heads: heads before the batch"
    elif len(tokens) > 1:
        seen = f"one query of one head is made of {len(tokens)} tokens ({tokens[:5]})"
    elif query.shape[axis] == start.shape[1] and tokens != [middle]:
        seen = f"query {middle} of a head comes from token {tokens}"
    if seen:
        yield report_wrong(seen, mistake or f"{_MODULE}heads split by view", site.scores)
        return
    if slices := _describe_features_read(case, site, row):
        yield report_wrong(slices, f"{_MODULE}heads see slices of the input", site.scores)
    if site.mix is not site.scores:
        yield from _remark_on_keys(case, site)


def _remark_on_keys(case: Case, site: Site) -> Remarks:
    key = site.key[0]
    axis = key.ndim - 1 if site.scores.name != "einsum" else find_token_axis(site.scores, key)
    if axis is None or not key.requires_grad or key.shape[axis] != case.embedded_tokens.shape[1]:
        return
    row = key.select(axis, 1)
    tokens = find_influential_rows(
        case.view_as_tokens(compute_gradient(row[(0,) * (row.ndim - 1)], case.anatomy.start[0]))[0]
    )
    if len(tokens) > 1:
        mistake = "scaled_dot_product_attention: key reshaped where transposed"
        yield report_wrong(f"key 1 is made of {len(tokens)} tokens ({tokens[:5]})", mistake, site.scores)


def _find_query_projections(case: Case, site: Site) -> list[Op]:
    """The linear maps that make the queries, the last of them last."""
    made = site.query[1]
    return [op for op in case.watch.ops if made and made.needs(op) and is_learned_linear_map(op)]


def _describe_features_read(case: Case, site: Site, row: Tensor) -> str:
    """That a query reads a part of its token's numbers, or nothing."""
    ways = _find_query_projections(case, site)
    if not ways or not case.anatomy.start[1] or not ways[-1].needs(case.anatomy.start[1]):
        return ""
    normed = trace_source(*next(each for each in ways[-1].reads if each[1] is not None and each[1].data)).tensor
    whole = normed.shape[-1]
    if whole != case.embedded_tokens.shape[-1]:
        return ""
    numbers = int((compute_gradient(row, normed).flatten(0, -2) != 0).any(0).sum())
    return f"a query of one head depends on {numbers} of {whole} numbers of its token" if numbers <= whole // 2 else ""


def heads_projected_apart(case: Case) -> Remarks:
    """Each head has a projection of its own for its queries."""
    site = case.attention_sites[0]
    inside = case.anatomy.find_sites_within(case.anatomy.steps[0]) if case.anatomy.steps else []
    width, count = site.query[0].shape[-1], len(case.images) * case.embedded_tokens.shape[1]
    heads = sum(each.query[0].numel() for each in inside) // (width * count)
    maps = {id(ways[-1]): ways[-1] for each in inside if (ways := _find_query_projections(case, each))}
    weights = {id(each): each for op in maps.values() for each in _list_weight_argument(op)}
    rows = sum(each.shape[0] for each in weights.values())
    if heads > 1 and weights and all(op.name == "linear" for op in maps.values()) and rows <= width:
        seen = f"one projection, {rows} wide, makes the queries of all {heads} heads"
        yield report_wrong(seen, f"{_MODULE}same weights for every head", site.scores)


def _list_weight_argument(op: Op) -> list[Tensor]:
    return [each for each in op.args[1:2] if isinstance(each, Tensor)]


def output_projected(case: Case) -> Remarks:
    """An output projection mixes what the heads give."""
    for step in case.anatomy.steps:
        inside = case.anatomy.find_sites_within(step)
        if not inside or step.branch[1] is None:
            continue
        last = inside[-1].mix
        heads = len(inside) if len(inside) > 1 else last.out.shape[-3] if last.out.ndim > 3 else 1
        if heads > 1 and not any(
            is_learned_linear_map(op) and op.needs(last) and op is not last for op in step.branch_ops
        ):
            seen = f"no weights stand between the {heads} heads and the residual sum"
            yield report_unusual(seen, f"{_MODULE}no projection", step.sum)
            return


PROPERTIES = (with_biases, query_key_value_apart, query_of_one_token, heads_projected_apart, output_projected)
