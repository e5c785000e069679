"""The MLP: two Linears, an activation between them and none before or behind."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from vit_course.diagnosis.anatomy import Step, ends_with_norm, find_first_linears, find_last_linears
from vit_course.diagnosis.answers import Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.watch import ADDS, BENDS, NORMS, Op, list_ops_between, measure_homogeneity_degree

_CUTS = ("relu", "relu_", "leaky_relu", "clamp", "clamp_min")  # which are of degree 1, as linear maps are
_KNOWN = {
    "ReLU": (F.relu, "Mlp: relu for gelu"),
    "the tanh form of GELU": (lambda x: F.gelu(x, approximate="tanh"), "Mlp: the tanh form"),
    "SiLU": (F.silu, "Mlp: silu for gelu"),
    "QuickGELU": (lambda x: x * torch.sigmoid(1.702 * x), "Mlp: sigmoid for the gate"),
    "a sigmoid": (torch.sigmoid, "Mlp: sigmoid for the gate"),
    "tanh": (torch.tanh, ""),
    "ELU": (F.elu, ""),
    "Leaky ReLU": (F.leaky_relu, ""),
}


def activation_between(case: Case) -> Remarks:
    """An MLP is two Linears with an activation between them."""
    for step in case.residual_steps:
        linears, firsts, lasts = step.branch_linears, find_first_linears(step), find_last_linears(step)
        if case.anatomy.find_sites_within(step) or step.branch[1] is None or not linears:
            continue
        seen, at = "", lasts[0]
        if len(linears) > 1 and not any(
            _has_activation_between(first, last, step) for first in firsts for last in lasts
        ):
            seen = "no activation stands between the MLP's two Linears, which together are one linear map"
        elif len(linears) == 1 and not any(
            op.name in BENDS for op in list_ops_between(step.branch[1], linears[0], step.ops)
        ):
            seen = "a branch is one Linear, with no hidden layer and no activation"
        if seen:
            yield report_wrong(seen, "Mlp: no activation", at)
        elif len(linears) > 1:
            yield from _remark_on_activation(firsts[0], lasts[0], step)
        return


def _has_activation_between(first: Op, last: Op, step: Step) -> bool:
    if first is last:
        return True
    read = next(each for each in last.reads if each[1] is not None and each[1].data)
    bent = abs(measure_homogeneity_degree(read[0], first.out) - 1) > 1e-3
    return bent or any(op.name in _CUTS for op in list_ops_between(last, first, step.ops))


def _remark_on_activation(first: Op, last: Op, step: Step) -> Remarks:
    hidden = first.out.detach().flatten()
    read = next(each for each in last.reads if each[1] is not None and each[1].data)[0].detach().flatten()
    if hidden.numel() != read.numel():
        return  # a gate: half of the numbers weigh the other half
    if are_close(read, F.gelu(hidden), 2e-5) or any(op.name in NORMS for op in list_ops_between(last, first, step.ops)):
        return
    for name, (function, mistake) in _KNOWN.items():
        if are_close(read, function(hidden), 2e-5):
            yield report_unusual(f"the activation is {name}, not GELU", mistake, last)
            return
    yield report_unusual("the activation between the Linears is none of the known ones", at=last)


def nothing_behind_branch(case: Case) -> Remarks:
    """A branch ends with its last Linear: no activation stands between it and the residual sum."""
    for step in case.residual_steps:
        lasts, branch = find_last_linears(step), step.branch[0]
        if len(lasts) != 1 or ends_with_norm(step) or _has_other_sum_after(step, lasts[0]):
            continue
        learns = branch.requires_grad and lasts[0].out.requires_grad
        positive = bool((branch >= 0).all())
        if positive or (learns and abs(measure_homogeneity_degree(branch, lasts[0].out) - 1) > 1e-2):
            seen = "an activation follows the last Linear of a branch" + ("; it adds no negative number" * positive)
            mistake = "" if case.anatomy.find_sites_within(step) else "Mlp: activation after the last layer"
            yield report_wrong(seen, mistake, step.sum)
            return


def _has_other_sum_after(step: Step, last: Op) -> bool:
    """Say whether something else of the images' is added behind the last Linear, such as the values themselves."""
    sums = [op for op in list_ops_between(step.branch[1], last, step.ops) if op.name in ADDS]
    return any(made is not None and made.data and not made.needs(last) for op in sums for _, made in op.reads)


def nothing_before_branch(case: Case) -> Remarks:
    """A branch's first Linear reads the normed tokens as they are."""
    for step in case.residual_steps:
        firsts, start = find_first_linears(step), step.before[1]
        bent = (
            [op for op in list_ops_between(firsts[0], start, step.ops) if op.name in BENDS] if firsts and start else []
        )
        if bent:
            seen = f"{bent[0].name} stands before the first Linear of a branch"
            yield report_unusual(seen, "Mlp: activation before the first layer", bent[0])
            return


PROPERTIES = (activation_between, nothing_behind_branch, nothing_before_branch)
