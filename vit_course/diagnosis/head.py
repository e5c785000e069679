"""What the head reads: which tokens, behind which norm."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.watch import NORMS, compute_gradient

_MODEL = "VisionTransformer: "


def final_norm(case: Case) -> Remarks:
    """Between the last block and the head stands a norm: the logits do not grow with the stream."""
    if not case.anatomy.steps or not case.watched_logits.requires_grad:
        raise NotAsked("no stream was found")
    last, start = case.anatomy.end, case.anatomy.start[1]
    with torch.no_grad():
        _, grown = case.subject.watch(case.images, {last.number: lambda stream: stream * 3})
    if case.is_reproducible and not are_close(grown, case.logits, 2e-2):
        far = float((grown - case.logits).norm() / case.logits.norm())
        same = all(step.relation == "same" for step in case.anatomy.steps)
        name = "norm before the blocks" if start is not None and start.name in NORMS and same else "no final norm"
        seen = f"three times the stream changes the logits by {far:.0%}: no norm stands before the head"
        say = report_unusual if len(_find_tokens_read_by_head(case)) > 1 else report_wrong
        yield say(seen, f"{_MODEL}{name}", last)


def _compute_token_gradients(case: Case) -> Tensor:
    """Of the first image's logits, for the stream behind the last block (batch, tokens, width)."""
    return case.view_as_tokens(compute_gradient(case.watched_logits[:1], case.anatomy.end.out))


def _find_tokens_read_by_head(case: Case) -> list[int]:
    if case.view_as_tokens(case.anatomy.end.out).shape[1] != case.embedded_tokens.shape[1]:
        raise NotAsked("the number of tokens changes on the way")
    sizes = _compute_token_gradients(case)[0].abs().sum(-1)
    return [int(each) for each in (sizes > 1e-6 * sizes.max()).nonzero().flatten()]


def head_reads_class_token(case: Case) -> Remarks:
    """The head reads the class token, or the mean of all patches where there is none."""
    count, special, reads, last = (
        case.embedded_tokens.shape[1],
        case.special_token_indices,
        _find_tokens_read_by_head(case),
        case.anatomy.end,
    )
    if not reads:
        raise NotAsked("the logits do not depend on the last residual sum that was found")
    if len(reads) <= 2:
        known = [each for each in reads if each in special or each in case.patch_token_indices]
        if not set(known) & set(special) and known == reads:
            name = "last token pooled" if reads[-1] == count - 1 else "first patch pooled"
            seen = f"the head reads token {reads[0]} of {count}, which is a patch"
            yield report_wrong(
                seen + (f"; the class token is {special[0]}" if special else ""), f"{_MODEL}{name}", last
            )
    elif special and len(reads) == count > len(special):
        yield from _remark_on_reading_all_tokens(case)


def _remark_on_reading_all_tokens(case: Case) -> Remarks:
    """All tokens are read, though there is a class token."""
    special, last, slope = case.special_token_indices, case.anatomy.end, _compute_token_gradients(case)[0]
    numbers, sizes = case.view_as_tokens(last.out).detach()[0], slope.norm(dim=-1)
    others = [row for row in range(len(slope)) if row not in special]
    even = float(sizes[special].max()) < 3 * float(sizes[others].max())
    along = ((slope * numbers).sum(-1).abs() / (sizes * numbers.norm(dim=-1)).clamp(min=1e-12))[others]
    if not even and float(along.median()) < 1e-3:
        return  # each token behind a norm of its own: the class token beside the mean of the patches
    if even and _are_tokens_weighed_alike(slope):
        yield report_unusual(
            "the head reads the mean of all tokens, the class token, too", f"{_MODEL}mean of all tokens", last
        )
    elif even:
        yield report_unusual(
            "the head reads all tokens, each with its own weights", f"{_MODEL}all tokens into the head", last
        )
    else:
        seen = "behind the last block the class token depends on other tokens: a norm takes its statistics over tokens"
        yield report_wrong(seen, f"{_MODEL}final norm over the tokens", last)


def _are_tokens_weighed_alike(slope: Tensor) -> bool:
    """Say whether all tokens count alike: their slopes, without what a norm takes off, are near in direction."""
    units = slope / slope.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return float((units @ units.mean(0)).mean()) > 0.6


PROPERTIES = (final_norm, head_reads_class_token)
