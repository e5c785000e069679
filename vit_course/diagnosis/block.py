"""The encoder's blocks: a stream of tokens, to which branches are added; first attention, then an MLP."""

from __future__ import annotations

from itertools import pairwise

import torch

from vit_course.diagnosis.anatomy import Step, find_last_linears
from vit_course.diagnosis.answers import Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case
from vit_course.diagnosis.watch import ADDS, Edit, Op, trace_source

_BLOCK = "EncoderBlock: "


def residuals_there(case: Case) -> Remarks:
    """Each branch is added to the stream that it was made from."""
    anatomy = case.anatomy
    if not anatomy.steps:
        seen = "what attention gives is never added to what it was made from"
        yield report_wrong(seen, f"{_BLOCK}{_name_lost_residual(case)}", anatomy.sites[0].mix)
        return
    for step in anatomy.steps:
        if step.relation == "older":
            seen = "a branch is added to an earlier stream, and what was added in between is lost"
            yield report_wrong(seen, f"{_BLOCK}second residual from the input", step.sum)
            return
        if step.relation == "changed" and trace_source(*step.skip).op is not step.before[1]:
            yield report_unusual("a branch is added to a changed stream", at=step.sum)
            return
    if anatomy.stray:
        seen = "the stream ends before the last block: a branch takes its place and is not added to it"
        yield report_wrong(seen, f"{_BLOCK}only attention is added", anatomy.stray)


def _name_lost_residual(case: Case) -> str:
    mix = case.anatomy.sites[0].mix
    for op in case.watch.ops[mix.number :]:
        if op.name in ADDS and len(op.reads) == 2:
            (first, one), (second, other) = op.reads
            if one is None or other is None or not (one.needs(mix) and other.needs(mix)):
                continue
            if first.data_ptr() == second.data_ptr():
                return "branch added to itself"
            if first.shape == second.shape and (one.needs(other) or other.needs(one)):
                return "only the mlp is added"
    return "no residual"


def residual_once(case: Case) -> Remarks:
    """With its branches silent the stream passes a block unchanged."""
    steps = case.residual_steps
    if doubled := next((op for op in case.watch.ops if _adds_tensor_to_itself(op, case.embedded_tokens.numel())), None):
        seen = "a tensor is added to itself: a branch, or the stream, counts twice"
        yield report_wrong(seen, f"{_BLOCK}branch added to itself", doubled)
        return
    for number, step in enumerate(steps):
        if step.twice:
            both = {step, steps[number - 1]} if number else set()
            yield report_wrong(
                "the stream is added to itself beside a branch", _name_inner_residual(case, both), step.sum
            )
            return
    edits: dict[int, Edit] = {op.number: torch.zeros_like for step in steps for op in find_last_linears(step)}
    with torch.no_grad():
        silent, _ = case.subject.watch(case.images, edits)
    for step in steps:
        slope = _measure_residual_gain(step, silent.ops)
        if abs(slope - 2) < 0.25 or abs(slope) < 0.2:
            seen = f"with its branch silent a block multiplies the stream by {slope:.2f}"
            yield report_wrong(seen, _name_inner_residual(case, {step}), step.sum)
            return


def _adds_tensor_to_itself(op: Op, size: int) -> bool:
    if op.name not in ADDS or len(op.reads) != 2 or not op.data or op.out.numel() < size:
        return False
    first, second = (trace_source(*read, scales=False) for read in op.reads)
    is_same = first.op is not None and first.op is second.op and first.tensor is second.tensor and first.op.data
    return bool(is_same) and op.reads[0][0].data_ptr() == op.reads[1][0].data_ptr()


def _name_inner_residual(case: Case, steps: set[Step]) -> str:
    attends = any(case.anatomy.find_sites_within(each) for each in steps)
    return "MultiHeadSelfAttention: residual inside" if attends else "Mlp: residual inside the mlp"


def _measure_residual_gain(step: Step, ops: list[Op]) -> float:
    """By what the stream is multiplied on its way through a sum; 1 where that cannot be asked."""
    if step.sum.number >= len(ops) or step.relation != "same" or step.before[1] is None:
        return 1.0
    after, before = ops[step.sum.number].out, ops[step.before[1].number].out
    if after.shape != before.shape or not before.any():
        return 1.0
    return float((after * before).sum() / (before * before).sum())


def attention_then_mlp(case: Case) -> Remarks:
    """A block is attention, then an MLP that reads the stream behind it."""
    steps = case.residual_steps
    kinds = "".join("A" if case.anatomy.find_sites_within(step) else "M" for step in steps)
    if "M" not in kinds and len(kinds) > 1:
        seen = f"{len(kinds)} branches hold attention, none an MLP"
        yield report_wrong(seen, f"{_BLOCK}attention twice", steps[1].sum)
    elif kinds[-1] == "A" and "M" in kinds and kinds.count("A") > 1:
        seen = "the last branch of the model is attention: the MLP comes first"
        yield report_unusual(seen, f"{_BLOCK}mlp before attention", steps[-1].sum)
    for early, late in pairwise(steps):
        made = late.branch[1]
        if made is None or late.relation != "same" or made.needs(early.sum) or late.twice:
            continue
        mixes = case.anatomy.find_sites_within(early)
        if mixes and made.needs(mixes[0].mix):
            seen = "the MLP reads what attention gives alone, without the stream"
            yield report_wrong(seen, f"{_BLOCK}mlp reads attention alone", late.sum)
        else:
            seen = "both branches read the block's input (parallel blocks)"
            yield report_unusual(seen, f"{_BLOCK}both branches from the input", late.sum)
        return


PROPERTIES = (residuals_there, residual_once, attention_then_mlp)
