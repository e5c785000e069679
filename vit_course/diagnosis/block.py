"""The encoder's blocks: a stream of tokens, and branches that read a normed copy of it and are added to it."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F

from vit_course.diagnosis.anatomy import Step, first_linears, last_linears, norm_behind
from vit_course.diagnosis.answers import Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.watch import ADDS, LINEARS, NORMS, Edit, Op, between, degree, source


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
    steps = case.steps
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
    edits: dict[int, Edit] = {op.number: torch.zeros_like for step in steps for op in last_linears(step)}
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


def attention_then_mlp(case: Case) -> Remarks:
    """A block is attention, then an MLP that reads the stream behind it."""
    steps = case.steps
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
    for step in case.steps:
        if case.anatomy.sites_of(step) or step.branch[1] is None:
            continue
        linears, firsts, lasts = step.linears, first_linears(step), last_linears(step)
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
    for step in case.steps:
        lasts, branch = last_linears(step), step.branch[0]
        if not lasts or norm_behind(step):
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
    for step in case.steps:
        firsts, start = first_linears(step), step.before[1]
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
    attention_then_mlp,
    activation_between,
    nothing_behind_branch,
    activation_before_mlp,
)
