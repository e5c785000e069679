"""Every property asked of one model, one after the other, whatever another one ends in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from exercise_kit.engine.verdict import CheckResult
from vit_course.diagnosis import attention, block, head, heads, learning, norms, parameters, patches, positions, whole
from vit_course.diagnosis.answers import Answer, Diagnosis, Finding, NotAsked, Remark, Remarks
from vit_course.diagnosis.case import Case
from vit_course.diagnosis.subject import Subject, undisturbed

Property = Callable[[Any], Remarks]
OF_A_MODEL: tuple[Property, ...] = tuple(
    each
    for module in (whole, parameters, patches, positions, heads, attention, norms, block, head)
    for each in module.PROPERTIES
)
_AT_ONCE = 3  # images; more say no more


def diagnose(
    model: nn.Module,
    images: Tensor,
    *,
    labels: Tensor | None = None,
    optimizer: Optimizer | None = None,
    loss: learning.Loss | None = None,
    after_each: Callable[[], None] = lambda: None,
) -> Diagnosis:
    """What is wrong with a Vision Transformer, whoever wrote it, by what it does.

    The model is copied: nothing of it, of its mode, of its hooks or of any random state is changed.

    Args:
        model: from images to logits: a tensor, the first of a tuple, or an object or dict with ``logits``.
        images: (n, channels, height, width), as the model takes them, on its device; two or three are enough.
        labels: (n,), class numbers; with them one step of learning is asked, too, and whether images can be learned.
        optimizer: made for this model.
        loss: from logits and labels to a number; else cross-entropy.
        after_each: called after each property of the model, for whoever shows progress.

    Returns:
        a report that shows itself, each property *wrong*, *unusual*, *not asked* or *holds*.

    Raises:
        TypeError: ``model`` is no module, or ``images`` are no tensor.
        ValueError: ``images`` have not four axes, or there is none.
    """
    _checked(model, images)
    with undisturbed():
        findings = list(_findings(model, images[:_AT_ONCE], after_each))
        lesson = learning.Lesson(model, images, labels, optimizer, loss)
        if labels is not None or optimizer is not None:
            findings += [found for each in learning.PROPERTIES for found in ask(each, lesson)]
    return Diagnosis(type(model).__name__, tuple(_results(findings)), findings=tuple(findings))


def _results(findings: list[Finding]) -> Iterable[CheckResult]:
    """Lines of the report; what could not be asked for the same reason folds under the first of them."""
    leaders: dict[str, str] = {}
    for each in findings:
        leader = leaders.setdefault(each.seen, each.asked) if each.answer == Answer.NOT_ASKED else ""
        yield each.as_result("" if leader == each.asked else leader)


def _checked(model: object, images: object) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a tensor, not {type(images).__name__}")
    if images.ndim != 4 or not len(images):
        raise ValueError(f"images must be (n, channels, height, width), not {tuple(images.shape)}")


def _findings(model: nn.Module, images: Tensor, after_each: Callable[[], None]) -> Iterable[Finding]:
    if len(images) == 1:
        images = torch.cat([images, images.flip(-1) * 0.7 + 0.1 * torch.randn_like(images)])
    try:
        case: Case | None = Case(Subject(model, images))
        alone: Finding | None = None
    except Exception as error:
        case, alone = _case_of_one(model, images, error)
    if alone:
        yield alone
    if case is not None:
        for each in OF_A_MODEL:
            yield from ask(each, case)
            after_each()


def _case_of_one(model: nn.Module, images: Tensor, error: Exception) -> tuple[Case | None, Finding]:
    """What can still be asked of a model that a batch stops, and what is to be said of that."""
    claim, file, line = "The model runs on the images.", *_line(whole.line_of(error))
    try:
        case = Case(Subject(model, images[:1]))
    except Exception:
        seen = f"the model raises {whole.told(error)}"
        return None, Finding("runs", claim, Answer.NOT_ASKED, seen, file=file, line=line)
    seen = f"a batch of {len(images)} raises {whole.told(error)}; one image alone runs"
    mistake = ("add_class_token", "class token not expanded") if "Sizes of tensors must match" in seen else None
    return case, Finding("runs", claim, Answer.WRONG, seen, mistake, file=file, line=line)


def _line(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return (file, int(line)) if line.isdigit() else ("", 0)


def ask(asked: Property, of: Any) -> list[Finding]:
    """One property's findings: what it remarks, that it could not be asked, or that it holds."""
    name, claim = asked.__name__, (asked.__doc__ or "").strip()
    found: list[Finding] = []
    try:
        for each in asked(of):
            found.append(_finding(name, claim, each))
    except NotAsked as reason:
        return found or [Finding(name, claim, Answer.NOT_ASKED, str(reason))]
    except Exception as error:  # whatever a strange model does to a question, the others are asked
        file, line = _line(whole.line_of(error))
        seen = f"asking raised {whole.told(error)}"
        return found or [Finding(name, claim, Answer.NOT_ASKED, seen, file=file, line=line)]
    return found or [Finding(name, claim, Answer.HOLDS)]


def _finding(name: str, claim: str, remark: Remark) -> Finding:
    where = remark.at.where if remark.at else None
    module = remark.at.module if remark.at else remark.module
    if ".py:" in module:
        module, where = "", _line(module)
    file, line = where or ("", 0)
    return Finding(name, claim, remark.answer, remark.seen, remark.mistake, module, file, line)
