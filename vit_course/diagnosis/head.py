"""What the head reads: which tokens, behind which norm."""

from __future__ import annotations

import torch

from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.watch import NORMS, pull


def final_norm(case: Case) -> Remarks:
    """Between the last block and the head stands a norm: the logits do not grow with the stream."""
    if not case.anatomy.steps or not case.answers.requires_grad:
        raise NotAsked("no stream was found")
    last = case.anatomy.end
    with torch.no_grad():
        _, grown = case.subject.watch(case.images, {last.number: lambda stream: stream * 3})
    if case.repeats and not close(grown, case.logits, 2e-2):
        far = float((grown - case.logits).norm() / case.logits.norm())
        reads = _read_tokens(case)
        mean = len(reads) > 1
        say = unusual if mean else wrong
        start = case.anatomy.start[1]
        early = (
            start is not None and start.name in NORMS and all(step.relation == "same" for step in case.anatomy.steps)
        )
        name = "norm before the blocks" if early else "no final norm"
        seen = (
            f"three times the last block's output gives logits that differ by {far:.0%}: no norm stands before the head"
        )
        yield say(seen, f"VisionTransformer: {name}", last)


def _read_tokens(case: Case) -> list[int]:
    last = case.tokens(case.anatomy.end.out)
    slope = case.tokens(pull(case.answers[:1], case.anatomy.end.out))
    if last.shape[1] != case.start.shape[1]:
        raise NotAsked("the number of tokens changes on the way")
    sizes = slope[0].abs().sum(-1)
    return (sizes > 1e-6 * sizes.max()).nonzero().flatten().tolist()


def head_reads_class_token(case: Case) -> Remarks:
    """The head reads the class token, or the mean of all patches where there is none."""
    count, special = case.start.shape[1], case.special
    last = case.tokens(case.anatomy.end.out).detach()
    reads = _read_tokens(case)
    slope = case.tokens(pull(case.answers[:1], case.anatomy.end.out))[0]
    if len(reads) <= 2:
        known = [each for each in reads if each in special or each in case.patches]
        if not any(each in special for each in known) and len(known) == len(reads):
            name = "last token pooled" if reads[-1] == count - 1 else "first patch pooled"
            yield wrong(
                f"the head reads token {reads[0]} of {count}, which is a patch"
                + (f"; the token without pixels is {special[0]}" if special else ""),
                f"VisionTransformer: {name}",
                case.anatomy.end,
            )
        return
    if special and len(reads) == count and len(special) < count:
        sizes = slope.norm(dim=-1)
        others = [row for row in range(count) if row not in special]
        even = float(sizes[special].max()) < 3 * float(sizes[others].max())
        by_token = ((slope * last[0]).sum(-1).abs() / (sizes * last[0].norm(dim=-1)).clamp(min=1e-12))[others]
        if not even and float(by_token.median()) < 1e-3:
            return  # each token behind a norm of its own: the class token beside the mean of the patches
        if even and _weighs_alike(case, slope):
            yield unusual(
                "the head reads the mean of all tokens, the class token, too",
                "VisionTransformer: mean of all tokens",
                case.anatomy.end,
            )
        elif even:
            yield unusual(
                "the head reads all tokens, each by weights of its own",
                "VisionTransformer: all tokens into the head",
                case.anatomy.end,
            )
        else:
            yield wrong(
                "the head's token depends on other tokens behind the last block: its norm takes statistics over tokens",
                "VisionTransformer: final norm over the tokens",
                case.anatomy.end,
            )


def _weighs_alike(case: Case, slope: torch.Tensor) -> bool:
    """Whether all tokens count alike: their slopes, without what a norm takes off, are near in direction."""
    units = slope / slope.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return float((units @ units.mean(0)).mean()) > 0.6


PROPERTIES = (final_norm, head_reads_class_token)
