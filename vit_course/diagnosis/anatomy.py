"""Where in a pass attention happens, and the sums around it: the stream of tokens and its branches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from torch import Tensor

from vit_course.diagnosis.answers import NotAsked
from vit_course.diagnosis.watch import (
    ADDS,
    FUSED,
    LINEARS,
    MOVES,
    NORMS,
    PRODUCTS,
    STATISTICS,
    TIMES,
    Op,
    is_independent_of_images,
    list_ops_between,
    trace_source,
)

Read = tuple[Tensor, Op | None]


@dataclass(eq=False)
class Site:
    """One place of attention.

    Attributes: ``mix``, which gives weighted means of values; ``scores``, the product of queries and keys, both
    ``mix`` where torch's fused function does it all; ``weights`` as they meet the values, and the ``axis`` of them that
    is summed over (None in the fused function).
    """

    mix: Op
    scores: Op
    query: Read
    key: Read
    value: Read
    weights: Read | None = None
    axis: int = -1
    ops: list[Op] = field(default_factory=list, repr=False)

    @property
    def softmax(self) -> Op | None:
        """The softmax between scores and weights, where torch's is used."""
        if self.weights is None or self.weights[1] is None:
            return None
        ways = [self.scores, *list_ops_between(self.weights[1], self.scores, self.ops)]
        return next((op for op in ways if "softmax" in op.name), None)


def find_attention_sites(ops: list[Op]) -> list[Site]:
    """Every place of attention, in order."""
    found = []
    for op in ops:
        if op.name == FUSED and len(op.reads) >= 3:
            query, key, value = op.reads[:3]
            found.append(Site(op, op, query, key, value, ops=ops))
        elif op.name in PRODUCTS and not any(is_independent_of_images(*each) for each in list_factors(op)):
            for weights, value in (list_factors(op), list_factors(op)[::-1]):
                scores = _find_score_product(weights)
                if scores is not None and scores is not op:
                    axis = find_contracted_axis(op, weights[0])
                    query, key = list_factors(scores)
                    found.append(Site(op, scores, query, key, value, weights, axis, ops))
                    break
    return found


def list_factors(op: Op) -> list[Read]:
    """The two tensors that a product multiplies."""
    return op.reads[-2:] if len(op.reads) > 2 else op.reads


def _find_score_product(weights: Read) -> Op | None:
    """The product of two tensors from the images that became ``weights`` number by number, None where there is none."""
    waiting, seen = [weights], set()
    while waiting:
        _, op = waiting.pop()
        if op is None or op in seen or not op.data:
            continue
        seen.add(op)
        if op.name in PRODUCTS and not any(is_independent_of_images(*each) for each in list_factors(op)):
            return op if len(list_factors(op)) == 2 else None
        count = op.out.numel()
        same = [
            each
            for each in op.reads
            if (op.name in MOVES or each[0].numel() == count) and each[1] is not None and each[1].data
        ]
        of_pairs = op.out.ndim > 3 and len(set(op.out.shape)) < op.out.ndim  # heads may mix what they say of pairs
        if (op.name in LINEARS | NORMS and not of_pairs) or (op.name in ADDS and len(same) > 1):
            continue
        waiting += same
    return None


def _read_einsum_letters(op: Op) -> tuple[str, str, str]:
    """An einsum's letters: of its two operands, and of its result."""
    equation = next(each for each in op.args if isinstance(each, str)).replace(" ", "").replace("...", "")
    left, _, right = equation.partition("->")
    first, _, second = left.partition(",")
    return first, second, right


def find_contracted_axis(op: Op, operand: Tensor) -> int:
    """The axis of an operand that a product sums over."""
    is_left = list_factors(op)[0][0] is operand
    if op.name != "einsum":
        return operand.ndim - 1 if is_left else operand.ndim - 2
    *both, right = _read_einsum_letters(op)
    letters = both[0 if is_left else 1]
    summed = [place - len(letters) for place, each in enumerate(letters) if each not in right]
    return operand.ndim + summed[-1] if summed else operand.ndim - 1


def find_token_axis(op: Op, operand: Tensor) -> int | None:
    """The axis of an operand of a product that is neither summed over nor shared with the other: that of its tokens."""
    if op.name != "einsum":
        return operand.ndim - 2
    *both, right = _read_einsum_letters(op)
    mine, other = both if list_factors(op)[0][0] is operand else both[::-1]
    only = [letter for letter in mine if letter in right and letter not in other]
    return operand.ndim - len(mine) + mine.index(only[-1]) if only else None


def find_token_axis_of_result(site: Site) -> int | None:
    """The axis of what attention gives on which its tokens stand."""
    mixed = site.mix.out
    if site.mix.name != "einsum":
        return mixed.ndim - 2
    *both, right = _read_einsum_letters(site.mix)
    mine, other = both if site.weights and list_factors(site.mix)[0][0] is site.weights[0] else both[::-1]
    only = [letter for letter in right if letter in mine and letter not in other]
    return mixed.ndim - len(right) + right.index(only[-1]) if only else None


@dataclass(eq=False)
class Step:
    """One sum on the stream.

    Attributes: ``sum``; ``before``, the stream that it starts from; ``skip`` and ``branch``, its two terms;
    ``relation`` of the skip to the stream: "same", "norm" (of it), "changed", "older" (an earlier stream).
    """

    sum: Op
    before: Read
    skip: Read
    branch: Read
    relation: str
    twice: bool = False
    ops: list[Op] = field(default_factory=list, repr=False)

    @property
    def branch_ops(self) -> list[Op]:
        """The branch's operations, from the stream to the sum."""
        start, end = self.before[1], self.branch[1]
        if end is None or start is None:
            return []
        return list_ops_between(end, start, self.ops)

    @property
    def branch_linears(self) -> list[Op]:
        """Of these, the linear maps by weights."""
        return [op for op in self.branch_ops if is_learned_linear_map(op)]


def is_learned_linear_map(op: Op) -> bool:
    """Say whether an operation maps data by a weight of the model's."""
    return op.name in LINEARS and op.data and any(is_independent_of_images(*each) for each in op.reads)


@dataclass(eq=False)
class Anatomy:
    """What was found: ``sites`` of attention, ``steps`` of the stream, ``start`` (tokens before the first block)."""

    ops: list[Op]
    sites: list[Site]
    steps: list[Step]
    start: Read
    stray: Op | None = None  # a sum after attention that belongs to no stream

    @property
    def end(self) -> Op:
        """The last sum."""
        return self.steps[-1].sum

    def find_sites_within(self, step: Step) -> list[Site]:
        """The places of attention inside a branch."""
        inside = set(step.branch_ops)
        return [each for each in self.sites if each.mix in inside]


def find_attention_and_stream(ops: list[Op]) -> Anatomy:
    """Attention and stream of a pass.

    Raises:
        NotAsked: there is no attention, or no sum of what it gives with what it was made from.
    """
    found = find_attention_sites(ops)
    if not found:
        raise NotAsked("no attention was found (queries times keys), so this does not look like a Vision Transformer")
    sums = [op for op in ops if _is_sum_of_activations(op)]
    # values that are added to what attention gives stand behind their projection, and are no stream
    first = _find_first_residual_sum(sums, found, ops, True) or _find_first_residual_sum(sums, found, ops, False)
    if first is None:
        return Anatomy(ops, found, [], found[0].query)
    steps, streams = [first], [first.before]
    pending: list[Op] = []
    for op in sums[sums.index(first.sum) + 1 :]:
        stream: Read = (steps[-1].sum.out, steps[-1].sum)
        step = _read_sum_as_step(op, stream, streams, ops)
        if step is None:
            pending += [op] if op.needs(steps[-1].sum) else []
            continue
        streams.append(stream)
        steps.append(step)
        pending = []
    size = first.sum.out.numel()  # of all tokens: pooling by attention has a stream of its own
    stray = next((op for op in pending if op.out.numel() == size and _starts_new_stream(op, steps[-1].sum, ops)), None)
    return Anatomy(ops, found, steps, first.before, stray)


def _is_sum_of_activations(op: Op) -> bool:
    whole = [each for each in op.reads if each[0].numel() == op.out.numel() and not is_independent_of_images(*each)]
    return op.name in ADDS and op.out.ndim >= 2 and len(whole) == 2


def _find_first_residual_sum(sums: list[Op], found: list[Site], ops: list[Op], projected: bool) -> Step | None:
    """The first sum of what attention gives with what its queries are made from, by a projection or in any way."""
    mix, scores = found[0].mix, found[0].scores
    for op in sums:
        late = [each for each in op.reads if each[1] is not None and each[1].needs(mix)]
        early = [each for each in op.reads if each[1] is None or not each[1].needs(mix)]
        if len(late) != 1 or len(early) != 1:
            continue
        stream, relation = trace_source(*early[0], scales=False), "same"
        if stream.op is not None and stream.op.name in NORMS and not scores.needs(stream.op):
            stream, relation = trace_source(*stream.op.reads[0], scales=False), "norm"
        if stream.op is None or not scores.needs(stream.op):
            continue
        if not projected or any(is_learned_linear_map(each) for each in list_ops_between(scores, stream.op, ops)):
            return Step(op, (stream.tensor, stream.op), early[0], late[0], relation, ops=ops)
    return None


def _starts_new_stream(op: Op, stream: Op, ops: list[Op]) -> bool:
    """Say whether a sum is a residual, on tokens to which no straight way leads from the stream before."""
    for skip, branch in (op.reads[:2], op.reads[1::-1]):
        here = trace_source(*skip, scales=False).op
        if here is not None and branch[1] is not None and branch[1].needs(here) and here.needs(stream):
            return not _are_linked_linearly(stream, here, ops)
    return False


def _are_linked_linearly(early: Op, late: Op, ops: list[Op]) -> bool:
    """Say whether sums, moves and weights alone lead from one operation to another."""
    reached = {early}
    for op in ops[early.number + 1 : late.number + 1]:
        plain = op.name in MOVES | ADDS | LINEARS | TIMES or op.name in ("sum", "stack", "cat", "einsum")
        if plain and any(maker in reached for _, maker in op.reads) and not _is_product_of_reached(op, reached):
            reached.add(op)
    return late in reached


def _is_product_of_reached(op: Op, reached: set[Op]) -> bool:
    """Say whether an operation is a product of two things from the stream."""
    return op.name in PRODUCTS and sum(maker in reached for _, maker in op.reads) > 1


def _read_sum_as_step(op: Op, stream: Read, streams: list[Read], ops: list[Op]) -> Step | None:
    """A sum as a step from ``stream``, None where it is none."""
    relations = [_classify_relation_to_stream(each, stream, streams, ops) for each in op.reads[:2]]
    for skip, branch in ((0, 1), (1, 0)):
        on, beside = relations[skip], relations[branch]
        twice = on == "same" and beside in ("older", "same")
        if on in ("same", "norm", "changed") and (beside in ("branch", "other", "older") or twice):
            return Step(op, stream, op.reads[skip], op.reads[branch], on, twice, ops)
        if on == "older" and beside == "branch":
            return Step(op, stream, op.reads[skip], op.reads[branch], "older", ops=ops)
    return None


def _classify_relation_to_stream(read: Read, stream: Read, streams: list[Read], ops: list[Op]) -> str:
    """Return how a term of a sum comes from the stream."""
    found = trace_source(*read, scales=False)
    if found.op is stream[1]:
        return "same"
    if any(found.op is op for _, op in streams):
        return "older"
    made, start = read[1], cast(Op, stream[1])
    if made is None or not made.needs(start):
        return "other"
    ways = list_ops_between(made, start, ops)
    if all(
        op.name in MOVES or (op.name in ADDS and any(is_independent_of_images(*each) for each in op.reads))
        for op in ways
    ):
        return "same"  # with positions added once more
    if any(is_learned_linear_map(op) or op.name in PRODUCTS or op.name == FUSED for op in ways):
        return "branch"
    return "norm" if any(op.name in STATISTICS for op in ways) else "changed"


def find_last_linears(step: Step) -> list[Op]:
    """The linear maps behind which a branch has no other."""
    linears = step.branch_linears
    return [op for op in linears if not any(late is not op and late.needs(op) for late in linears)]


def find_first_linears(step: Step) -> list[Op]:
    """The linear maps before which a branch has no other."""
    linears = step.branch_linears
    return [op for op in linears if not any(early is not op and op.needs(early) for early in linears)]


def ends_with_norm(step: Step) -> bool:
    """Say whether a branch ends with a norm."""
    lasts = find_last_linears(step)
    if not lasts or step.branch[1] is None:
        return False
    return any(op.name in STATISTICS for op in list_ops_between(step.branch[1], lasts[-1], step.ops))
