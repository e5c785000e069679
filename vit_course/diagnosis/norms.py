"""The norms of the blocks: where they stand, and what they compute."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.diagnosis.anatomy import Step, ends_with_norm, find_first_linears
from vit_course.diagnosis.answers import NotAsked, Remark, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.heads import norm_over_features
from vit_course.diagnosis.watch import NORMS, STATISTICS, Edit, Op, list_ops_between, trace_source

_BLOCK = "EncoderBlock: "
# by whether the branches that read the stream as it is hold attention; None: some do
_RAW = {
    True: ("attention reads", "norm1 forgotten"),
    False: ("the MLP reads", "norm2 forgotten"),
    None: ("branches read", "norms never used"),
}


def norm_before_branch(case: Case) -> Remarks:
    """Each branch reads a normed copy of the stream, and the stream itself is not normed."""
    steps = case.residual_steps
    if any(step.twice for step in steps):
        raise NotAsked("the stream is added to itself")
    raw = [step for step in steps if not _reads_normed_stream(step)]
    if on_stream := [step for step in steps if step.relation == "norm"]:
        yield _remark_on_post_norm(case, on_stream)
        return
    behind = [step for step in steps if ends_with_norm(step)]
    if raw and len(behind) >= len(steps) / 2:
        seen = "branches read the stream as it is, and what they give is normed before it is added"
        yield report_unusual(seen, f"{_BLOCK}norm on the branch output", behind[0].sum)
    elif raw:
        kinds = {bool(case.anatomy.find_sites_within(step)) for step in raw}
        which, name = _RAW[kinds.pop() if len(kinds) == 1 else None]
        say = report_wrong if len(raw) < len(steps) else report_unusual
        seen = f"{which} the stream as it is in {len(raw)} of {len(steps)} branches: no norm stands there"
        yield say(seen, f"{_BLOCK}{name}", (find_first_linears(raw[0]) or [raw[0].sum])[0])


def _remark_on_post_norm(case: Case, on_stream: list[Step]) -> Remark:
    """Return what is said of a model in which sums start from a normed stream."""
    steps, at = case.anatomy.steps, on_stream[0].sum
    later = steps[1:]
    if steps[0] not in on_stream and all(step in on_stream for step in later):
        if sum(_count_norms_before_branch(step) > 1 for step in later) > len(later) / 2:
            seen = "each branch reads a norm of a stream that is normed itself"
            return report_unusual(seen, f"{_BLOCK}second norm on the stream", at)
        early = case.anatomy.start[1]
        name = "residual from the normed stream" if early is not None and early.name in NORMS else "post norm"
        return report_unusual("norms stand on the stream, behind each sum (post-norm)", f"{_BLOCK}{name}", at)
    attends = any(case.anatomy.find_sites_within(step) for step in on_stream)
    name = "residual from the normed stream" if attends else "second norm on the stream"
    seen = f"{len(on_stream)} of {len(steps)} sums start from a normed stream, the others do not"
    return report_wrong(seen, f"{_BLOCK}{name}", at)


def _count_norms_before_branch(step: Step) -> int:
    """Norms between the stream and the first linear map of a branch."""
    first = find_first_linears(step)
    start = step.before[1]
    if not first or start is None:
        return 0
    return sum(op.name in NORMS for op in list_ops_between(first[0], start, step.ops))


def _reads_normed_stream(step: Step) -> bool:
    """Say whether a norm stands between the stream and the branch's first linear map (or before the stream itself)."""
    start, end = step.before[1], step.branch[1]
    first = next(iter(find_first_linears(step)), end)
    if start is None or first is None or start.name in NORMS or (end is not None and not end.needs(start)):
        return True
    return any(
        op.name in STATISTICS or op.name in ("pow", "__pow__") for op in list_ops_between(first, start, step.ops)
    )


def norm_is_layer_norm(case: Case) -> Remarks:
    """A norm takes the mean from each token, divides by the standard deviation, then weighs and shifts each number."""
    step = case.residual_steps[0]
    normed = _find_normed_stream(step)
    if normed is None or step.relation == "norm":
        raise NotAsked("attention reads the stream as it is")
    out, op = normed
    if op.name == "layer_norm":
        given = [each for each in (*op.args, *op.kwargs.values()) if isinstance(each, float)]
        if given and given[-1] > 1.1e-4:
            yield report_unusual(f"the norm's eps is {given[-1]:.2g}", "layer_norm: eps of its own", op)
    elif op.name in NORMS:
        yield report_unusual(f"the norm is torch's {op.name}", "layer_norm: batch norm" * (op.name == "batch_norm"), op)
    else:
        yield from _remark_on_handwritten_norm(case, step, out, op)


def _remark_on_handwritten_norm(case: Case, step: Step, out: Tensor, op: Op) -> Remarks:
    """Yield what is said of a norm that is written by hand."""
    stream, found = case.view_as_tokens(step.before[0]).detach(), case.view_as_tokens(out).detach()
    if found.shape != stream.shape:
        raise NotAsked("the normed tokens have another shape than the stream")
    if any(True for _ in norm_over_features(case)):
        raise NotAsked("the norm takes its statistics over more than a token's numbers")
    spread, size = float(stream.std()), float((found - found.mean((0, 1))).norm())
    changes: tuple[Edit, ...] = (lambda x: x * 4, lambda x: x + spread, torch.zeros_like)
    grown, shifted, still = (_run_on_edited_stream(case, step, op, change) for change in changes)
    if still.isnan().any():
        seen = "a token of equal numbers is normed to nan: there is no eps"
        yield report_wrong(seen, "layer_norm: eps left out", op)
    flat, target, width = stream.flatten(0, 1), found.flatten(0, 1), stream.shape[-1]
    if (far := float((grown - found).norm()) / size) > 0.1:
        seen = f"a stream four times as large is normed to tokens that differ by {far:.0%}"
        yield report_wrong(seen, "layer_norm: divided by the variance", op)
    elif float((shifted - found).norm()) / size > 0.1:
        yield _remark_on_uncentered_norm(flat, target, op)
    else:
        fits = [_fit_weight_and_bias(F.layer_norm(flat, (width,), eps=eps), target) for eps in (1e-12, 1e-6, 1e-5)]
        weight, bias, miss = min(fits, key=lambda fit: fit[2])
        if miss > 2e-2:
            seen = f"the norm differs from any LayerNorm by {miss:.0%}"
            yield report_wrong(seen, "layer_norm: deviations never squared", op)
        else:
            yield from _remark_on_norm_parameters(case, weight, bias, op)


def _remark_on_uncentered_norm(flat: Tensor, target: Tensor, op: Op) -> Remark:
    mean, spread = flat.mean(-1, keepdim=True), flat.std(-1, correction=0, keepdim=True)
    is_rms = _fit_weight_and_bias(flat * flat.square().mean(-1, keepdim=True).add(1e-6).rsqrt(), target)[2] < 1e-2
    ratio = F.layer_norm(flat, flat.shape[-1:], eps=1e-6) + mean / spread
    name = "mean left in" if is_rms and _fit_weight_and_bias(ratio, target)[2] > 1e-2 else "divided but not centered"
    return report_unusual(f"the norm leaves each token's mean in{', as RMSNorm' * is_rms}", f"layer_norm: {name}", op)


def _run_on_edited_stream(case: Case, step: Step, op: Op, change: Edit) -> Tensor:
    """The normed tokens where the stream is another one."""
    start = step.before[1]
    if start is None:
        raise NotAsked("nothing made the stream")
    with torch.no_grad():
        watch, _ = case.subject.watch(case.images, {start.number: change})
    if op.number >= len(watch.ops) or watch.ops[op.number].name != op.name:
        raise NotAsked("the pass takes another way on another stream")
    return case.view_as_tokens(watch.ops[op.number].out)


def _remark_on_norm_parameters(case: Case, weight: Tensor, bias: Tensor, op: Op) -> Remarks:
    """Yield how the weight and bias that a norm seems to have differ from parameters that are there."""
    width = len(weight)
    given = [each.detach().flatten() for each in case.subject.model.parameters() if each.numel() == width]
    same = [each for each in given if are_close(weight / weight.norm(), each / each.norm(), 1e-3)]
    near = min((float((weight / each).median()) for each in same), key=lambda each: abs(each - 1), default=1.0)
    if abs(near - 1) > 1e-3:
        is_bessel = abs(near - ((width - 1) / width) ** 0.5) < 1e-3
        say, name = (
            (report_unusual, "divided by one less") if is_bessel else (report_wrong, "squares summed not averaged")
        )
        yield say(f"the norm's numbers are {near:.4g} times those of a LayerNorm", f"layer_norm: {name}", op)
        return
    weighed, shifted = (any(are_close(one, each, by) for each in given) for one, by in ((weight, 1e-3), (bias, 5e-3)))
    if weighed and not shifted and bias.std() > 1e-3:
        yield report_wrong("the weight multiplies the bias, too", "layer_norm: bias added before the weight", op)


def _fit_weight_and_bias(plain: Tensor, target: Tensor) -> tuple[Tensor, Tensor, float]:
    """For each feature, the weight and bias that make ``target`` of ``plain``, and what is left, as a share."""
    middle, aim = plain.mean(0), target.mean(0)
    weight = ((plain - middle) * (target - aim)).sum(0) / (plain - middle).square().sum(0).clamp(min=1e-12)
    bias = aim - weight * middle
    left = target - (weight * plain + bias)
    return weight, bias, float(left.norm() / (target - aim).norm().clamp(min=1e-12))


def _find_normed_stream(step: Step) -> tuple[Tensor, Op] | None:
    """The normed copy of the stream that the first linear map of a branch reads."""
    firsts, start = find_first_linears(step), step.before[1]
    if not firsts or start is None:
        return None
    read = next((each for each in firsts[0].reads if each[1] is not None and each[1].data), None)
    made = trace_source(*read, scales=False) if read else None
    if made is None or made.op is None or made.op is start or not made.op.needs(start):
        return None
    return made.tensor, made.op


PROPERTIES = (norm_before_branch, norm_is_layer_norm)
