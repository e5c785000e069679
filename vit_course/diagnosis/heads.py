"""Queries, keys and values: of one token and of the whole of it, apart, in heads that go back to their token."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.anatomy import Site, factors, is_linear
from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.watch import MOVES, Op, between, pull, source


def tokens_see_tokens(case: Case) -> Remarks:
    """Attention runs over the tokens of one image."""
    site, count, batch = case.sites[0], case.start.shape[1], len(case.images)
    if site.mix is site.scores:
        queries = site.query[0].shape[-2]
    else:
        queries = site.scores.out.shape[-1] if site.scores.out.ndim else 0
    if queries == count:
        return
    # torch's own module puts the heads beside the tokens there
    if queries == batch and any(size % count == 0 for size in site.query[0].shape[:-2]):
        yield wrong(
            f"each token attends to the same token of the other images: keys are {batch}, the batch, and not {count}; "
            "nn.MultiheadAttention without batch_first=True does this",
            "MultiHeadSelfAttention: attention over the batch",
            site.scores,
        )
    elif site.query[0].ndim == 4 and site.query[0].shape[1] == count and queries == site.query[0].shape[2]:
        yield wrong(
            f"a token's {queries} heads attend to each other, and no token to another",
            "MultiHeadSelfAttention: heads talk to each other",
            site.scores,
        )


def query_key_value_apart(case: Case) -> Remarks:
    """Queries, keys and values come from projections of their own."""
    for site in case.sites:
        parts = {"queries": site.query, "keys": site.key, "values": site.value}
        numbers = {name: _numbers(*read) for name, read in parts.items()}
        for first, second, mistake in (
            ("keys", "queries", "queries compared with queries"),
            ("keys", "values", "values never used"),
            ("queries", "values", "value not projected"),
        ):
            home = "scaled_dot_product_attention" if mistake == "values never used" else "MultiHeadSelfAttention"
            if numbers[first].shape == numbers[second].shape and close(numbers[first], numbers[second], 1e-4):
                yield wrong(f"{first} and {second} are the same numbers", f"{home}: {mistake}", site.scores)
                return
        for name, (_, made) in parts.items():
            if made is not None and case.anatomy.steps and not _projected(case, made):
                yield unusual(
                    f"no weights stand between the tokens and the {name}",
                    "MultiHeadSelfAttention: value not projected",
                    site.mix,
                )
                return


def _numbers(tensor: Tensor, made: Op | None) -> Tensor:
    found = source(tensor, made)
    # the part of a projection that a query is cut from is the projection's own axis
    return (tensor / (found.factor or 1.0)).detach().flatten().sort().values


def _projected(case: Case, made: Op) -> bool:
    step = next((each for each in case.anatomy.steps if each.sum.needs(made)), case.anatomy.steps[0])
    start = step.before[1]
    return (
        start is None
        or made is start
        or not made.needs(start)
        or any(is_linear(op) for op in between(made, start, case.watch.ops))
    )


def _token_axis(op: Op, operand: Tensor) -> int | None:
    """The axis of an operand of a product that holds tokens: not summed over and not shared with the other."""
    if op.name != "einsum":
        return operand.ndim - 2
    equation = next(each for each in op.args if isinstance(each, str)).replace(" ", "").replace("...", "")
    left, _, right = equation.partition("->")
    both = left.split(",")
    place = 0 if factors(op)[0][0] is operand else 1
    only = [letter for letter in both[place] if letter in right and letter not in both[1 - place]]
    return operand.ndim - len(both[place]) + both[place].index(only[-1]) if only else None


def query_of_one_token(case: Case) -> Remarks:
    """A query is made of one token and of the whole of it: heads are cut within a token, behind the projection."""
    site, start = case.sites[0], case.start
    query = site.query[0]
    axis = query.ndim - 2 if site.mix is site.scores else _token_axis(site.scores, query)
    if axis is None or not query.requires_grad:
        raise NotAsked("the queries' tokens are not on an axis of their own")
    row = query.select(axis, query.shape[axis] // 2)
    row = row[(0,) * (row.ndim - 1)]
    reach = case.tokens(pull(row, case.anatomy.start[0]))
    if any(True for _ in norm_over_features(case)):
        raise NotAsked("a norm mixes tokens before")
    if any(True for _ in tokens_see_tokens(case)):
        raise NotAsked("attention does not run over the tokens of one image")
    reached = reach[0].abs().sum(-1) > 1e-9 * float(reach.abs().max())
    tokens = reached.nonzero().flatten().tolist()
    final = query.select(axis, 0).flatten(0, -2)[-1] if query.ndim > 2 else row
    last = case.tokens(pull(final, case.anatomy.start[0]))
    if len(last) > 1 and len(query) == len(last) and last[:-1].any():
        mistake = "MultiHeadSelfAttention: heads read before the batch"
        yield wrong("the last image's query is made of another image's tokens", mistake, site.scores)
        return
    if (reach[1:] != 0).any():
        yield wrong("a query is made of tokens of several images", "split_heads: heads before the batch", site.scores)
        return
    if len(tokens) > 1:
        yield wrong(
            f"one query of one head is made of {len(tokens)} tokens ({tokens[:5]})",
            "MultiHeadSelfAttention: heads split by view",
            site.scores,
        )
        return
    if query.shape[axis] == start.shape[1] and tokens != [query.shape[axis] // 2]:
        yield wrong(
            f"query {query.shape[axis] // 2} of a head comes from token {tokens}",
            "MultiHeadSelfAttention: heads split by view",
            site.scores,
        )
        return
    if slices := _share_of_token(case, site, row):
        yield wrong(slices, "MultiHeadSelfAttention: heads see slices of the input", site.scores)
    if site.mix is not site.scores:
        yield from _key_of_one_token(case, site)


def _key_of_one_token(case: Case, site: Site) -> Remarks:
    key = site.key[0]
    axis = key.ndim - 1 if site.scores.name != "einsum" else _token_axis(site.scores, key)
    if axis is None or not key.requires_grad or key.shape[axis] != case.start.shape[1]:
        return
    row = key.select(axis, 1)
    reach = case.tokens(pull(row[(0,) * (row.ndim - 1)], case.anatomy.start[0]))[0].abs().sum(-1)
    tokens = (reach > 1e-9 * reach.max()).nonzero().flatten().tolist()
    if len(tokens) > 1:
        mistake = "scaled_dot_product_attention: key reshaped where transposed"
        yield wrong(f"key 1 is made of {len(tokens)} tokens ({tokens[:5]})", mistake, site.scores)


def _share_of_token(case: Case, site: Site, row: Tensor) -> str:
    """That a query reads a part of its token's numbers, or nothing."""
    ways = [
        op
        for op in case.watch.ops
        if site.query[1] and (site.query[1] is op or site.query[1].needs(op)) and is_linear(op)
    ]
    if not ways or not case.anatomy.start[1] or not ways[-1].needs(case.anatomy.start[1]):
        return ""
    read = next(each for each in ways[-1].reads if each[1] is not None and each[1].data)
    normed = source(*read).tensor
    if normed.shape[-1] != case.start.shape[-1]:
        return ""
    numbers = int((pull(row, normed).flatten(0, -2) != 0).any(0).sum())
    return (
        f"a query of one head depends on {numbers} of {normed.shape[-1]} numbers of its token"
        if numbers <= normed.shape[-1] // 2
        else ""
    )


def norm_over_features(case: Case) -> Remarks:
    """Before attention no token depends on another: norms take their statistics over a token's numbers alone."""
    site = case.sites[0]
    made, start = site.query[1], case.anatomy.start[1]
    if made is None or start is None or not made.needs(start):
        raise NotAsked("queries are not made from the stream")
    norms = [op for op in between(made, start, case.watch.ops) if _ends_norm(op, case)]
    if not norms:
        return
    normed = case.tokens(norms[-1].out)
    if normed.shape[1] != case.start.shape[1]:
        raise NotAsked("the tokens before attention are not those of the stream")
    reach = case.tokens(pull(normed[0, normed.shape[1] // 2], case.anatomy.start[0]))
    mixing = (reach[0].abs().sum(-1) > 1e-9 * float(reach.abs().max())).sum()
    images = len(reach) > 1 and bool(reach[1:].any())
    if int(mixing) > 1:
        mistake = "layer_norm: batch norm" if images else "layer_norm: statistics over the tokens"
        yield wrong(
            f"before attention a token depends on {int(mixing)} tokens: the norm's statistics run over tokens, too",
            mistake,
            norms[-1],
        )
    elif images:
        yield wrong(
            "before attention a token depends on other images: the norm's statistics run over the batch",
            "layer_norm: statistics over the first axis",
            norms[-1],
        )


def _ends_norm(op: Op, case: Case) -> bool:
    """Whether an operation is the last one before the first linear map behind the stream."""
    return (
        op.name not in MOVES
        and op.out.numel() == case.start.numel()
        and not any(is_linear(each) for each in between(op, case.anatomy.start[1], case.watch.ops))
    )


def heads_merged_within_token(case: Case) -> Remarks:
    """What the heads find for a token goes back to that token."""
    site, step = case.sites[0], case.anatomy.steps[0] if case.anatomy.steps else None
    mixed = site.mix.out
    if step is None or not mixed.requires_grad:
        raise NotAsked("no sum with what attention gives was found")
    axis = mixed.ndim - 2 if site.mix.name != "einsum" else _output_axis(site)
    branch = case.tokens(step.branch[0])
    if axis is None or mixed.shape[axis] != branch.shape[1]:
        raise NotAsked("the tokens of what attention gives are not on an axis of their own")
    reach = pull(branch[0, 1], mixed)
    others = [each for each in range(mixed.ndim) if each != axis]
    rows = (reach.abs().sum(others) > 1e-9 * float(reach.abs().max())).nonzero().flatten().tolist()
    if mixed.ndim == 4 and len(mixed) == len(case.images) and reach[1:].any():
        yield wrong(
            "what attention finds for one image lands in another",
            "MultiHeadSelfAttention: heads merged before the batch",
            site.mix,
        )
    elif rows != [1]:
        yield wrong(
            f"token 1 behind attention is made of what was found for the tokens {rows[:6]}",
            "MultiHeadSelfAttention: heads merged by view",
            site.mix,
        )


def _output_axis(site: Site) -> int | None:
    equation = next(each for each in site.mix.args if isinstance(each, str)).replace(" ", "").replace("...", "")
    left, _, right = equation.partition("->")
    both = left.split(",")
    place = 0 if site.weights and factors(site.mix)[0][0] is site.weights[0] else 1
    only = [letter for letter in right if letter in both[place] and letter not in both[1 - place]]
    return site.mix.out.ndim - len(right) + right.index(only[-1]) if only else None


def output_projected(case: Case) -> Remarks:
    """An output projection mixes what the heads find."""
    for step in case.anatomy.steps:
        inside = case.anatomy.sites_of(step)
        if not inside or step.branch[1] is None:
            continue
        last = inside[-1].mix
        heads = len(inside) if len(inside) > 1 else last.out.shape[-3] if last.out.ndim > 3 else 1
        if heads > 1 and not any(is_linear(op) and op.needs(last) and op is not last for op in step.inside):
            yield unusual(
                f"no weights stand between the {heads} heads and the sum",
                "MultiHeadSelfAttention: no projection",
                step.sum,
            )
            return


def heads_apart(case: Case) -> Remarks:
    """There are several heads, each with weights of its own, and no head reads another's scores."""
    site = case.sites[0]
    query = site.query[0]
    inside = case.anatomy.sites_of(case.anatomy.steps[0]) if case.anatomy.steps else []
    if site.mix is site.scores or site.weights is None:
        heads = query.shape[-3] if query.ndim > 3 else 1
    else:
        heads = query.shape[1] if query.ndim > 3 else 1
    batch = len(case.images)
    if (
        heads == 1
        and len(inside) <= 1
        and not (query.ndim == 3 and query.shape[0] % batch == 0 and query.shape[0] > batch)
    ):
        yield unusual(
            f"attention has one head, {query.shape[-1]} wide",
            "MultiHeadSelfAttention: one head for everything",
            site.scores,
        )
    if heads > 1 and query.ndim == 4:
        each = query.detach().transpose(0, 1) if query.shape[0] == batch else None
        if each is not None and all(close(one, each[0], 1e-5) for one in each[1:]):
            yield wrong(
                "all heads have the same queries", "MultiHeadSelfAttention: same weights for every head", site.scores
            )
        weights = site.weights[0] if site.weights else query
        if (
            weights.ndim == 4
            and site.weights
            and weights.shape[1] == heads
            and close(weights, weights[:, :1].expand_as(weights), 1e-5)
        ):
            yield wrong(
                "all heads have the same weights", "MultiHeadSelfAttention: same weights for every head", site.mix
            )
        if site.weights is not None and site.weights[0].ndim == 4 and site.weights[0].shape[1] == heads:
            reach = pull(site.weights[0][0, 0], query)
            if reach[0, 1:].any() and close(
                site.weights[0].sum(site.axis), torch.ones_like(site.weights[0].sum(site.axis))
            ):
                yield unusual(
                    "a head's weights depend on the queries of other heads",
                    "MultiHeadSelfAttention: heads talk to each other",
                    site.mix,
                )


PROPERTIES = (
    norm_over_features,
    query_key_value_apart,
    tokens_see_tokens,
    query_of_one_token,
    heads_apart,
    heads_merged_within_token,
    output_projected,
)
