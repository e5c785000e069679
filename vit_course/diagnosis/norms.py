"""The norms of the blocks: where they stand, and what they compute."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.diagnosis.anatomy import Step, first_linears, norm_behind
from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.heads import norm_over_features
from vit_course.diagnosis.watch import NORMS, STATISTICS, Edit, Op, between, source


def norm_before_branch(case: Case) -> Remarks:
    """Each branch reads a normed copy of the stream, and the stream itself is not normed."""
    steps = case.steps
    if any(step.twice for step in steps):
        raise NotAsked("the stream is added to itself")
    on_stream = [step for step in steps if step.relation == "norm"]
    raw = [step for step in steps if not _reads_norm(step, case)]
    if on_stream:
        yield from _post_norm(case, on_stream, raw)
        return
    behind = [step for step in steps if norm_behind(step)]
    if raw and len(behind) >= len(steps) / 2:
        yield unusual(
            "branches read the stream as it is, and what they give is normed before the sum",
            "EncoderBlock: norm on the branch output",
            behind[0].sum,
        )
    elif raw:
        kinds = {bool(case.anatomy.sites_of(step)) for step in raw}
        which = "attention reads" if kinds == {True} else "the MLP reads" if kinds == {False} else "branches read"
        name = {"attention reads": "norm1 forgotten", "the MLP reads": "norm2 forgotten"}.get(which, "norms never used")
        say = wrong if len(raw) < len(steps) or not case.anatomy else unusual
        yield say(
            f"{which} the stream as it is in {len(raw)} of {len(steps)} branches: no norm",
            f"EncoderBlock: {name}",
            (first_linears(raw[0]) or [raw[0].sum])[0],
        )


def _post_norm(case: Case, on_stream: list[Step], raw: list[Step]) -> Remarks:
    steps = case.anatomy.steps
    at = on_stream[0].sum
    later = steps[1:]
    if len(on_stream) >= len(later) and all(step in on_stream for step in later):
        again = [step for step in later if _norms_on_way(step) > 1]
        if again and len(again) > len(later) / 2:
            yield unusual(
                "each branch reads a norm of a stream that is normed itself",
                "EncoderBlock: second norm on the stream",
                at,
            )
        else:
            early = case.anatomy.start[1]
            mistake = "residual from the normed stream" if early is not None and early.name in NORMS else "post norm"
            yield unusual("norms stand on the stream, behind each sum (post-norm)", f"EncoderBlock: {mistake}", at)
        return
    attends = any(case.anatomy.sites_of(step) for step in on_stream)
    mistake = "EncoderBlock: residual from the normed stream" if attends else "EncoderBlock: second norm on the stream"
    yield wrong(f"{len(on_stream)} of {len(steps)} sums start from a normed stream, the others do not", mistake, at)


def _norms_on_way(step: Step) -> int:
    """Norms between the stream and the first linear map of a branch."""
    first = first_linears(step)
    start = step.before[1]
    if not first or start is None:
        return 0
    return sum(op.name in NORMS for op in between(first[0], start, step.ops))


def _reads_norm(step: Step, case: Case) -> bool:
    """Whether a norm stands between the stream and the branch's first linear maps (or before the stream itself)."""
    start = step.before[1]
    firsts = first_linears(step) or ([step.branch[1]] if step.branch[1] else [])
    if start is None or not firsts or (step.branch[1] is not None and not step.branch[1].needs(start)):
        return True
    if start.name in NORMS:
        return True
    ways = [op for first in firsts[:1] for op in between(first, start, step.ops)]
    return any(op.name in STATISTICS or op.name in ("pow", "__pow__") for op in ways)


def norm_is_layer_norm(case: Case) -> Remarks:
    """A norm takes the mean from each token, divides by the standard deviation, then weighs and shifts each number."""
    step = case.steps[0]
    normed = _normed(step)
    if normed is None or step.relation == "norm":
        raise NotAsked("attention reads the stream as it is")
    out, op = normed
    if op.name == "layer_norm":
        if (eps := _eps_of(op)) > 1.1e-4:
            yield unusual(f"the norm's eps is {eps:.2g}", "layer_norm: eps of its own", op)
        return
    if op.name in NORMS:
        yield unusual(f"the norm is torch's {op.name}", "layer_norm: batch norm" if op.name == "batch_norm" else "", op)
        return
    yield from _own_norm(case, step, out, op)


def _own_norm(case: Case, step: Step, out: Tensor, op: Op) -> Remarks:
    stream, found = case.tokens(step.before[0]).detach(), case.tokens(out).detach()
    if found.shape != stream.shape:
        raise NotAsked("the normed tokens have another shape than the stream")
    if any(True for _ in norm_over_features(case)):
        raise NotAsked("the norm takes its statistics over more than a token's numbers")
    spread = float(stream.std())
    doubled, shifted, still = (
        _again(case, step, op, change) for change in (lambda x: x * 4, lambda x: x + spread, torch.zeros_like)
    )
    if still.isnan().any():
        yield wrong(
            "a token whose numbers are all alike is normed to nan: there is no eps", "layer_norm: eps left out", op
        )
    size = float((found - found.mean((0, 1))).norm())
    if (grown := float((doubled - found).norm()) / size) > 0.1:
        yield wrong(
            f"a stream four times as large is normed to tokens that differ by {grown:.0%}",
            "layer_norm: divided by the variance",
            op,
        )
        return
    flat, target, width = stream.flatten(0, 1), found.flatten(0, 1), stream.shape[-1]
    if float((shifted - found).norm()) / size > 0.1:
        rooted = flat * flat.square().mean(-1, keepdim=True).add(1e-6).rsqrt()
        is_rms = _fit(rooted, target)[2] < 1e-2
        ratio = F.layer_norm(flat, (width,), eps=1e-6) + flat.mean(-1, keepdim=True) / flat.std(
            -1, correction=0, keepdim=True
        )
        name = (
            "layer_norm: mean left in"
            if is_rms and _fit(ratio, target)[2] > 1e-2
            else "layer_norm: divided but not centered"
        )
        yield unusual("the norm leaves each token's mean in" + (", as RMSNorm" if is_rms else ""), name, op)
        return
    fits = [_fit(F.layer_norm(flat, (width,), eps=eps), target) for eps in (1e-12, 1e-6, 1e-5)]
    weight, bias, miss = min(fits, key=lambda fit: fit[2])
    if miss > 2e-2:
        yield wrong(f"the norm differs from any LayerNorm by {miss:.0%}", "layer_norm: deviations never squared", op)
    else:
        yield from _size_of_norm(case, weight, bias, width, op)


def _again(case: Case, step: Step, op: Op, change: Edit) -> Tensor:
    """The normed tokens where the stream is another one."""
    start = step.before[1]
    if start is None:
        raise NotAsked("nothing made the stream")
    with torch.no_grad():
        watch, _ = case.subject.watch(case.images, {start.number: change})
    if op.number >= len(watch.ops) or watch.ops[op.number].name != op.name:
        raise NotAsked("the pass takes another way on another stream")
    return case.tokens(watch.ops[op.number].out)


def _size_of_norm(case: Case, weight: Tensor, bias: Tensor, width: int, op: Op) -> Remarks:
    given = [each.detach() for each in case.subject.model.parameters() if each.numel() == width]
    ratios = {
        float((weight / each.flatten()).median())
        for each in given
        if close(weight / weight.norm(), each.flatten() / each.norm(), 1e-3)
    }
    near = min(ratios, key=lambda each: abs(each - 1), default=1.0)
    if abs(near - 1) > 1e-3:
        is_bessel = abs(near - ((width - 1) / width) ** 0.5) < 1e-3
        mistake = "layer_norm: divided by one less" if is_bessel else "layer_norm: squares summed not averaged"
        yield (unusual if is_bessel else wrong)(
            f"the norm's numbers are {near:.4g} times those of a LayerNorm", mistake, op
        )
    elif (
        any(close(weight, each.flatten(), 1e-3) for each in given)
        and not any(close(bias, each.flatten(), 5e-3) for each in given)
        and bias.std() > 1e-3
    ):
        yield wrong("what the norm adds is weighed, too", "layer_norm: bias added before the weight", op)


def _fit(plain: Tensor, target: Tensor) -> tuple[Tensor, Tensor, float]:
    """For each feature, the weight and bias that make ``target`` of ``plain``, and what is left, as a share."""
    middle, aim = plain.mean(0), target.mean(0)
    weight = ((plain - middle) * (target - aim)).sum(0) / (plain - middle).square().sum(0).clamp(min=1e-12)
    bias = aim - weight * middle
    left = target - (weight * plain + bias)
    return weight, bias, float(left.norm() / (target - aim).norm().clamp(min=1e-12))


def _normed(step: Step) -> tuple[Tensor, Op] | None:
    """The normed copy of the stream that the first linear map of a branch reads."""
    firsts, start = first_linears(step), step.before[1]
    if not firsts or start is None:
        return None
    read = next((each for each in firsts[0].reads if each[1] is not None and each[1].data), None)
    made = source(*read, scales=False) if read else None
    if made is None or made.op is None or made.op is start or not made.op.needs(start):
        return None
    return made.tensor, made.op


def _eps_of(op: Op) -> float:
    given = [each for each in (*op.args, *op.kwargs.values()) if isinstance(each, float)]
    return given[-1] if given else 1e-5


PROPERTIES = (
    norm_before_branch,
    norm_is_layer_norm,
)
