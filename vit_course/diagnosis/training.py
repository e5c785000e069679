"""How the model stands before it is trained: where its weights start, what is frozen, what dropout drops."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case
from vit_course.diagnosis.parameters import find_gradient_leaves, join_some_names
from vit_course.diagnosis.subject import copy_model, find_logits
from vit_course.diagnosis.watch import FUSED, Op


def blocks_start_apart(case: Case) -> Remarks:
    """No two weights start with the same numbers."""
    seen: dict[tuple[object, ...], str] = {}
    copies = []
    for name, each in case.subject.start.named_parameters():
        if each.ndim < 2 or each.numel() < 8 or float(each.detach().std()) < 1e-8:
            continue
        key = (each.shape, float(each.detach().double().sum()), float(each.detach().flatten()[1]))
        if key in seen:
            copies.append((seen[key], name))
        seen.setdefault(key, name)
    if copies:
        words = f"{len(copies)} weights start as copies of others: `{copies[0][1]}` is a copy of `{copies[0][0]}`"
        words += "; torch's nn.TransformerEncoder does this, since it copies one layer"
        yield report_unusual(words, module=copies[0][1].rpartition(".")[0])


def all_learn(case: Case) -> Remarks:
    """No parameter is frozen."""
    frozen = [name for name, each in case.subject.original.named_parameters() if not each.requires_grad]
    if frozen:
        verb = "does" if len(frozen) == 1 else "do"
        seen = f"{join_some_names(frozen)} {verb} not learn: requires_grad is False"
        yield report_unusual(seen, module=frozen[0].rpartition(".")[0])


def dropout_used(case: Case) -> Remarks:
    """Dropout that is built drops something in training, and never logits."""
    model = copy_model(case.subject.model).train()
    named = {name: each for name, each in model.named_modules() if isinstance(each, nn.modules.dropout._DropoutNd)}
    drops = {name: each for name, each in named.items() if each.p > 0}
    called = _find_running_dropouts(case, model, drops)
    live = {id(each) for each in find_gradient_leaves(case.watched_logits)}
    idle = [
        name
        for name in drops
        if name not in called and not _has_unused_home_module(model, case.subject.model, name, live)
    ]
    if idle:
        verb = "is" if len(idle) == 1 else "are"
        yield report_wrong(f"{join_some_names(idle)} {verb} built and never called", module=idle[0])
    ends = [name for name, each in drops.items() if name in called and _ends_with_dropout(model, each, case)]
    if ends:
        yield report_wrong(f"`{ends[0]}` drops logits in training", module=ends[0])


def _find_running_dropouts(case: Case, model: nn.Module, drops: Mapping[str, nn.Module]) -> set[str]:
    """The dropouts that run in training, as modules or by their rate in a function of the module that holds them."""
    inner: set[str] = set()
    hooks = [each.register_forward_pre_hook(lambda *_, name=name: inner.add(name)) for name, each in drops.items()]
    watch, _ = case.subject.watch(case.images, model=model)
    for hook in hooks:
        hook.remove()
    rates = {op.module for op in watch.ops if _is_dropout(op)}
    return inner | {name for name in drops if name.rpartition(".")[0] in rates or name in rates}


def _is_dropout(op: Op) -> bool:
    if op.name == FUSED:
        return bool(op.kwargs.get("dropout_p") or (len(op.args) > 4 and op.args[4]))
    return "dropout" in op.name


def _ends_with_dropout(model: nn.Module, drop: nn.Module, case: Case) -> bool:
    """Say whether the logits are what a dropout gives."""
    kept: list[Tensor] = []
    hook = drop.register_forward_hook(lambda _, __, out: kept.append(out))
    found = find_logits(model(case.images))
    hook.remove()
    same = bool(kept) and kept[-1].shape == case.logits.shape
    return same and (kept[-1] is found or kept[-1].data_ptr() == found.data_ptr())


def _has_unused_home_module(model: nn.Module, asked: nn.Module, name: str, live: set[int]) -> bool:
    home = name.rpartition(".")[0]
    if isinstance(model.get_submodule(home), nn.MultiheadAttention):
        return True
    inside = [id(each) for each in asked.get_submodule(home).parameters()] if home else []
    return bool(inside) and not any(each in live for each in inside)


def start_near_chance(case: Case) -> Remarks:
    """Before training the loss is near that of a guess, the logarithm of the number of classes."""
    if case.logits.ndim != 2 or case.logits.shape[1] < 2:
        raise NotAsked("the logits are not one row for each image")
    with torch.no_grad():
        logits = case.subject.run(case.images, case.subject.start)
    count = logits.shape[1]
    loss = float(-F.log_softmax(logits, -1).mean())
    if loss > 1.5 * math.log(count) + 1:
        yield report_unusual(f"the loss starts at {loss:.2f}; a guess among {count} classes has {math.log(count):.2f}")


PROPERTIES = (blocks_start_apart, all_learn, dropout_used, start_near_chance)
