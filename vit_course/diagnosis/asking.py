"""Every property asked of one model, one after the other, whatever another one ends in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from exercise_kit.engine.verdict import CheckResult
from vit_course.diagnosis import (
    attention,
    block,
    head,
    heads,
    learning,
    mlp,
    norms,
    parameters,
    patches,
    positions,
    projections,
    sizes,
    training,
    waves,
    whole,
)
from vit_course.diagnosis.answers import (
    Answer,
    Diagnosis,
    Finding,
    NotAsked,
    Remarks,
    describe_error,
    find_raising_line,
)
from vit_course.diagnosis.case import Case
from vit_course.diagnosis.subject import Subject, preserve_global_state

Property = Callable[[Any], Remarks]
_VIT = (patches, positions, waves, sizes, projections, heads, attention, norms, block, mlp, head)
OF_ANY_MODEL: tuple[Property, ...] = (*whole.PROPERTIES, *parameters.PROPERTIES, *training.PROPERTIES)
OF_A_VIT: tuple[Property, ...] = tuple(chain.from_iterable(module.PROPERTIES for module in _VIT))
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
    """Say what is wrong with a Vision Transformer, whoever wrote it, by what it does.

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
    _check_arguments(model, images)
    with preserve_global_state():
        findings = list(_ask_all_properties(model, images[:_AT_ONCE], after_each))
        lesson = learning.Lesson(model, images, labels, optimizer, loss)
        if labels is not None or optimizer is not None:
            findings += [found for each in learning.PROPERTIES for found in ask_property(each, lesson)]
    return Diagnosis(type(model).__name__, tuple(_make_check_results(findings)), findings=tuple(findings))


def _make_check_results(findings: list[Finding]) -> Iterable[CheckResult]:
    """Lines of the report; what could not be asked for the same reason folds under the first of them."""
    leaders: dict[str, str] = {}
    for each in findings:
        leader = leaders.setdefault(each.seen, each.asked) if each.answer == Answer.NOT_ASKED else ""
        yield each.as_result("" if leader == each.asked else leader)


def _check_arguments(model: object, images: object) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a tensor, not {type(images).__name__}")
    if images.ndim != 4 or not len(images):
        raise ValueError(f"images must be (n, channels, height, width), not {tuple(images.shape)}")


def _ask_all_properties(model: nn.Module, images: Tensor, after_each: Callable[[], None]) -> Iterable[Finding]:
    if len(images) == 1:
        images = torch.cat([images, images.flip(-1) * 0.7 + 0.1 * torch.randn_like(images)])
    try:
        case: Case | None = Case(Subject(model, images))
    except Exception as error:
        case, stopped = _retry_with_one_image(model, images, error)
        yield stopped
    if case is None:
        return
    if not case.is_vit:
        claim = "The model is a Vision Transformer: tokens attend to tokens."
        seen = "no attention was found (a product of queries and keys); only what any classifier has was asked"
        yield Finding("attention_there", claim, Answer.NOT_ASKED, seen)
    for each in OF_ANY_MODEL + OF_A_VIT * case.is_vit:
        yield from ask_property(each, case)
        after_each()


def _retry_with_one_image(model: nn.Module, images: Tensor, error: Exception) -> tuple[Case | None, Finding]:
    """Return what can still be asked of a model that a batch stops, and what is to be said of that."""
    claim, (file, line) = "The model runs on the images.", find_raising_line(error)
    try:
        case = Case(Subject(model, images[:1]))
    except Exception:
        seen = f"the model raises {describe_error(error)}"
        return None, Finding("runs", claim, Answer.NOT_ASKED, seen, file=file, line=line)
    seen = f"a batch of {len(images)} raises {describe_error(error)}; one image alone runs"
    mistake = ("add_class_token", "class token not expanded") if "Sizes of tensors must match" in seen else None
    return case, Finding("runs", claim, Answer.WRONG, seen, mistake, file=file, line=line)


def ask_property(asked: Property, of: Any) -> list[Finding]:
    """One property's findings: what it remarks, that it could not be asked, or that it holds."""
    name, claim = asked.__name__, (asked.__doc__ or "").strip()
    found: list[Finding] = []
    try:
        for each in asked(of):
            found.append(Finding(name, claim, each.answer, each.seen, each.mistake, each.module, *each.where))
    except NotAsked as reason:
        return found or [Finding(name, claim, Answer.NOT_ASKED, str(reason))]
    except Exception as error:  # whatever a strange model does to a question, the others are asked
        file, line = find_raising_line(error)
        seen = f"the model raises {describe_error(error)} when it is asked"
        return found or [Finding(name, claim, Answer.NOT_ASKED, seen, file=file, line=line)]
    return found or [Finding(name, claim, Answer.HOLDS)]
