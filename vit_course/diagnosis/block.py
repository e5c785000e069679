"""The encoder's blocks: a stream of tokens, and branches that read a normed copy of it and are added to it."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.diagnosis.anatomy import Step
from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.attention import norm_over_features
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.watch import ADDS, LINEARS, NORMS, STATISTICS, Edit, Op, between, degree, source


def _steps(case: Case) -> list[Step]:
    if not case.anatomy.steps:
        raise NotAsked("no sum on the tokens was found, and so no stream")
    return case.anatomy.steps


def residuals_there(case: Case) -> Remarks:
    """Each branch is added to the stream that it was made from."""
    anatomy = case.anatomy
    if not anatomy.steps:
        yield wrong(
            "what attention gives is never added to what it was made from", _lost_mistake(case), anatomy.sites[0].mix
        )
        return
    for step in anatomy.steps:
        if step.relation == "older":
            yield wrong(
                "a branch is added to an earlier stream, and what was added in between is lost",
                "EncoderBlock: second residual from the input",
                step.sum,
            )
            return
        if step.relation == "changed" and not _is_scaled(step):
            yield unusual("a branch is added to a changed stream", at=step.sum)
            return
    if anatomy.stray:
        yield wrong(
            "the stream ends before the last block: a branch took its place and was not added to it",
            "EncoderBlock: only attention is added",
            anatomy.stray,
        )


def _lost_mistake(case: Case) -> str:
    mix = case.anatomy.sites[0].mix
    for op in case.watch.ops[mix.number :]:
        if op.name in ADDS and len(op.reads) == 2:
            (first, one), (second, other) = op.reads
            if one is None or other is None or not (one.needs(mix) and other.needs(mix)):
                continue
            if first.data_ptr() == second.data_ptr():
                return "EncoderBlock: branch added to itself"
            if first.shape == second.shape and (one.needs(other) or other.needs(one)):
                return "EncoderBlock: only the mlp is added"
    return "EncoderBlock: no residual"


def _is_scaled(step: Step) -> bool:
    return source(*step.skip).op is step.before[1]


def residual_once(case: Case) -> Remarks:
    """With its branches silent the stream passes a block unchanged."""
    steps = _steps(case)
    for op in case.watch.ops:
        if op.name in ADDS and len(op.reads) == 2 and op.data and op.out.numel() >= case.start.numel():
            first, second = (source(*read, scales=False) for read in op.reads)
            if (
                first.op is not None
                and first.op is second.op
                and first.tensor is second.tensor
                and first.op.data
                and op.reads[0][0].data_ptr() == op.reads[1][0].data_ptr()
            ):
                yield wrong(
                    "a tensor is added to itself: a branch, or the stream, counts twice",
                    "EncoderBlock: branch added to itself",
                    op,
                )
                return
    edits: dict[int, Edit] = {op.number: torch.zeros_like for step in steps for op in _last_linears(step)}
    for step in steps:
        if step.twice:
            early = steps[max(0, steps.index(step) - 1)]
            attends = any(case.anatomy.sites_of(each) for each in (step, early)) and early is not step
            mistake = "MultiHeadSelfAttention: residual inside" if attends else "Mlp: residual inside the mlp"
            yield wrong("the stream is added to itself beside a branch", mistake, step.sum)
            return
    with torch.no_grad():
        silent, _ = case.subject.watch(case.images, edits)
    for step in steps:
        if step.sum.number >= len(silent.ops) or step.relation != "same" or step.before[1] is None:
            continue
        after, before = silent.ops[step.sum.number].out, silent.ops[step.before[1].number].out
        if after.shape != before.shape or not before.any():
            continue
        slope = float((after * before).sum() / (before * before).sum())
        if abs(slope - 2) < 0.25 or abs(slope) < 0.2:
            mistake = (
                "MultiHeadSelfAttention: residual inside"
                if case.anatomy.sites_of(step)
                else "Mlp: residual inside the mlp"
            )
            yield wrong(f"with its branch silent the stream is multiplied by {slope:.2f} in a block", mistake, step.sum)
            return


def _last_linears(step: Step) -> list[Op]:
    linears = step.linears
    return [op for op in linears if not any(late is not op and late.needs(op) for late in linears)]


def _first_linears(step: Step) -> list[Op]:
    linears = step.linears
    return [op for op in linears if not any(early is not op and op.needs(early) for early in linears)]


def norm_before_branch(case: Case) -> Remarks:
    """Each branch reads a normed copy of the stream, and the stream itself is not normed."""
    steps = _steps(case)
    if any(step.twice for step in steps):
        raise NotAsked("the stream is added to itself")
    on_stream = [step for step in steps if step.relation == "norm"]
    raw = [step for step in steps if not _reads_norm(step, case)]
    if on_stream:
        yield from _post_norm(case, on_stream, raw)
        return
    behind = [step for step in steps if _norm_behind(step)]
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
            (_first_linears(raw[0]) or [raw[0].sum])[0],
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
    first = _first_linears(step)
    start = step.before[1]
    if not first or start is None:
        return 0
    return sum(op.name in NORMS for op in between(first[0], start, step.ops))


def _reads_norm(step: Step, case: Case) -> bool:
    """Whether a norm stands between the stream and the branch's first linear maps (or before the stream itself)."""
    start = step.before[1]
    firsts = _first_linears(step) or ([step.branch[1]] if step.branch[1] else [])
    if start is None or not firsts or (step.branch[1] is not None and not step.branch[1].needs(start)):
        return True
    if start.name in NORMS:
        return True
    ways = [op for first in firsts[:1] for op in between(first, start, step.ops)]
    return any(op.name in STATISTICS or op.name in ("pow", "__pow__") for op in ways)


def _norm_behind(step: Step) -> bool:
    lasts = _last_linears(step)
    if not lasts or step.branch[1] is None:
        return False
    return any(op.name in STATISTICS for op in between(step.branch[1], lasts[-1], step.ops))


def norm_is_layer_norm(case: Case) -> Remarks:
    """A norm takes the mean from each token, divides by the standard deviation, then weighs and shifts each number."""
    step = _steps(case)[0]
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
    firsts, start = _first_linears(step), step.before[1]
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


def attention_then_mlp(case: Case) -> Remarks:
    """A block is attention, then an MLP that reads the stream behind it."""
    steps = _steps(case)
    kinds = "".join("A" if case.anatomy.sites_of(step) else "M" for step in steps)
    if "M" not in kinds and len(kinds) > 1:
        yield wrong(f"{len(kinds)} branches hold attention, none an MLP", "EncoderBlock: attention twice", steps[1].sum)
    elif kinds[-1] == "A" and "M" in kinds and kinds.count("A") > 1:
        yield unusual(
            "the last branch of the model is attention: the MLP comes first",
            "EncoderBlock: mlp before attention",
            steps[-1].sum,
        )
    for early, late in pairwise(steps):
        made = late.branch[1]
        if made is not None and late.relation == "same" and not made.needs(early.sum) and not late.twice:
            mixes = case.anatomy.sites_of(early)
            if mixes and made.needs(mixes[0].mix):
                yield wrong(
                    "the MLP reads what attention gave alone, without the stream",
                    "EncoderBlock: mlp reads attention alone",
                    late.sum,
                )
                return
            yield unusual(
                "both branches read the block's input (parallel blocks)",
                "EncoderBlock: both branches from the input",
                late.sum,
            )
            return


def activation_between(case: Case) -> Remarks:
    """An MLP is two Linears with an activation between them, and none behind."""
    for step in _steps(case):
        if case.anatomy.sites_of(step) or step.branch[1] is None:
            continue
        linears, firsts, lasts = step.linears, _first_linears(step), _last_linears(step)
        if not linears:
            continue
        if len(linears) == 1 and not _bends(step, linears[0]):
            yield wrong(
                "a branch is one Linear, with no hidden layer and no activation", "Mlp: no activation", linears[0]
            )
            return
        if len(linears) > 1 and not any(_bend_between(first, last, step) for first in firsts for last in lasts):
            yield wrong(
                "no activation stands between the two Linears of the MLP, which are one linear map together",
                "Mlp: no activation",
                lasts[0],
            )
            return
        if len(linears) > 1:
            yield from _kind_of_activation(firsts[0], lasts[0], step)
        return


def _bend_between(first: Op, last: Op, step: Step) -> bool:
    if first is last:
        return True
    read = next(each for each in last.reads if each[1] is not None and each[1].data)
    grown = degree(read[0], first.out)
    return abs(grown - 1) > 1e-3 or any(
        op.name in ("relu", "relu_", "leaky_relu", "clamp", "clamp_min") for op in between(last, first, step.ops)
    )


def _bends(step: Step, linear: Op) -> bool:
    return any(
        op.name in ("gelu", "relu", "silu", "tanh", "sigmoid") for op in between(step.branch[1], linear, step.ops)
    )


_KNOWN = {
    "exact GELU": (F.gelu, ""),
    "the tanh form of GELU": (lambda x: F.gelu(x, approximate="tanh"), "Mlp: the tanh form"),
    "ReLU": (F.relu, "Mlp: relu for gelu"),
    "SiLU": (F.silu, "Mlp: silu for gelu"),
    "QuickGELU": (lambda x: x * torch.sigmoid(1.702 * x), "Mlp: sigmoid for the gate"),
    "a sigmoid": (torch.sigmoid, "Mlp: sigmoid for the gate"),
    "tanh": (torch.tanh, ""),
    "ELU": (F.elu, ""),
    "Leaky ReLU": (F.leaky_relu, ""),
}


def _kind_of_activation(first: Op, last: Op, step: Step) -> Remarks:
    hidden = first.out.detach()
    read = next(each for each in last.reads if each[1] is not None and each[1].data)[0].detach()
    if hidden.numel() != read.numel():
        return  # a gate: half of the numbers weigh the other half
    hidden, read = hidden.flatten(), read.flatten()
    for name, (function, mistake) in _KNOWN.items():
        if close(read, function(hidden), 2e-5):
            if name != "exact GELU":
                yield unusual(f"the activation is {name}, not GELU", mistake, last)
            return
    if any(op.name in NORMS for op in between(last, first, step.ops)):
        return
    yield unusual("the activation between the Linears is none of the known ones", at=last)


def nothing_behind_branch(case: Case) -> Remarks:
    """A branch ends with its last Linear: no activation stands between it and the sum."""
    for step in _steps(case):
        lasts, branch = _last_linears(step), step.branch[0]
        if not lasts or _norm_behind(step):
            continue
        grown = degree(branch, lasts[-1].out) if branch.requires_grad and lasts[-1].out.requires_grad else 1.0
        positive = bool((branch >= 0).all())
        if len(lasts) == 1 and (abs(grown - 1) > 1e-2 or positive):
            mlp = not case.anatomy.sites_of(step)
            yield wrong(
                "an activation follows the last Linear of a branch, so that what it adds is bent"
                + (" and never negative" if positive else ""),
                "Mlp: activation after the last layer" if mlp else "",
                step.sum,
            )
            return


def activation_before_mlp(case: Case) -> Remarks:
    """The MLP's first Linear reads the normed tokens as they are."""
    for step in _steps(case):
        firsts, start = _first_linears(step), step.before[1]
        if not firsts or start is None:
            continue
        bent = [
            op
            for op in between(firsts[0], start, step.ops)
            if op.name in ("gelu", "relu", "silu", "sigmoid", "tanh") and op.name not in LINEARS
        ]
        if bent:
            yield unusual(
                f"{bent[0].name} stands before the first Linear of a branch",
                "Mlp: activation before the first layer",
                bent[0],
            )
            return


PROPERTIES = (
    residuals_there,
    residual_once,
    norm_before_branch,
    norm_is_layer_norm,
    attention_then_mlp,
    activation_between,
    nothing_behind_branch,
    activation_before_mlp,
)
