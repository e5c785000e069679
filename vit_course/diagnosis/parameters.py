"""What learns: registered, used, reached by the gradient, and each weight at one place."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.subject import copy_model, find_logits
from vit_course.diagnosis.watch import ADDS, LINEARS, NORMS, TIMES, Op, trace_source


def registered(case: Case) -> Remarks:
    """Every tensor that learns is a parameter of the model, which an optimizer is given and a checkpoint keeps."""
    _refuse_scripted_modules(case)
    own, ops = case.name_parameters_by_id(), case.watch.ops
    strange = [
        each
        for each in find_gradient_leaves(case.watched_logits)
        if id(each) not in own and each is not case.pixels_with_gradient
    ]
    if strange:
        at = next((op for op in ops if any(tensor is strange[0] for tensor, _ in op.reads)), None)
        made = at is not None and any(op.out is strange[0] for op in ops)
        mistake = "EncoderBlock: layers made in forward"
        mistake = mistake if made else "VisionTransformer: tensors that are no parameters"
        shape = "×".join(map(str, strange[0].shape)) or "one number"
        yield report_wrong(f"{len(strange)} tensors that learn are no parameters, such as one of {shape}", mistake, at)
    draws = ("randn", "rand", "normal_", "trunc_normal_", "uniform_", "zeros")
    drawn = [op for op in ops if op.name in draws]
    if not case.is_deterministic and drawn:
        yield report_wrong("numbers are drawn anew in every pass", "VisionTransformer: class token drawn", drawn[0])


def _refuse_scripted_modules(case: Case) -> None:
    if any(isinstance(module, torch.jit.ScriptModule) for module in case.subject.model.modules()):
        raise NotAsked("a scripted module shows no parameters at work")


def find_gradient_leaves(result: Tensor) -> list[Tensor]:
    """The tensors that a gradient of ``result`` ends in."""
    found, seen, waiting = [], set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting += [each for each, _ in node.next_functions]
    return found


def used(case: Case) -> Remarks:
    """Every parameter changes the logits, and gets a gradient."""
    _refuse_scripted_modules(case)
    reached = {id(each) for each in find_gradient_leaves(case.watched_logits)}
    named = {name: each for name, each in case.subject.model.named_parameters() if each.requires_grad}
    idle = {name: each for name, each in named.items() if id(each) not in reached}
    if idle and (elsewhere := _find_parameters_used_in_training(case)):
        idle = {name: each for name, each in idle.items() if name not in elsewhere}
    cut = [name for name, each in idle.items() if _changes_logits(case, each)]
    if cut:
        seen = f"no gradient comes back to {join_some_names(cut)}, though the logits depend on it"
        yield report_wrong(
            seen,
            _name_cut_parameters_mistake(case, cut) if case.is_vit else "",
            find_gradient_cut(case.watch.ops),
            cut[0],
        )
    if still := _list_parameters_without_influence(case, named, reached):
        positions = "VisionTransformer: positions never added" * _is_position_table(named[still[0]])
        verb = "does" if len(still) == 1 else "do"
        seen = f"{join_some_names(still)} {verb} not change the logits, whatever the numbers in it"
        yield report_wrong(seen, positions, module=still[0].rpartition(".")[0])
    rest = [name for name in idle if name not in cut]
    vectors = [
        name for name in rest if named[name].numel() == max(named[name].shape, default=1) and named[name].ndim > 1
    ]
    if whole := [name for name in rest if name not in vectors]:
        verb = "does" if len(whole) == 1 else "do"
        seen = f"{join_some_names(whole)} {verb} not change the logits"
        mistake = _name_unused_parameters_mistake(case, whole, named) if case.is_vit else ""
        yield report_wrong(seen, mistake, module=whole[0].rpartition(".")[0])
    if vectors:
        verb = "does" if len(vectors) == 1 else "do"
        seen = f"{join_some_names(vectors)} {verb} not change the logits: a token that is never put in"
        yield report_unusual(seen, "add_class_token: a class token of zeros" * case.is_vit, module=vectors[0])


def _list_parameters_without_influence(case: Case, named: dict[str, nn.Parameter], reached: set[int]) -> list[str]:
    """Tables and weights that a gradient reaches, of zeros or of rounding errors alone.

    A vector is left out: adding one to all keys changes no softmax, in the best of models.
    """
    if (
        not case.is_deterministic
        or not case.watched_logits.requires_grad
        or are_close(case.logits, case.random_image_logits, 1e-6)
    ):
        return []
    wide = {name: each for name, each in named.items() if id(each) in reached and each.ndim > 1 and each.numel()}
    weights = torch.randn(case.watched_logits.shape, generator=torch.Generator().manual_seed(2)).to(case.watched_logits)
    slopes = torch.autograd.grad((case.watched_logits * weights).sum(), list(wide.values()), retain_graph=True)
    sizes = {
        name: float(slope.norm() * each.detach().norm())
        for (name, each), slope in zip(wide.items(), slopes, strict=True)
    }
    least = 1e-5 * max(sizes.values(), default=0.0)
    return [name for name, size in sizes.items() if size <= least and not _moves_logits_in_float64(case, name)]


def _moves_logits_in_float64(case: Case, name: str) -> bool:
    """Say whether other numbers in a parameter move the logits by more than float64 rounds them."""
    model, images = copy_model(case.subject.model).double(), case.images.double()
    parameter = dict(model.named_parameters())[name]
    try:
        with torch.no_grad():
            before = case.subject.run(images, model)
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(6)).to(parameter))
            return not are_close(case.subject.run(images, model), before, 1e-10)
    except Exception:  # it computes in float32 alone
        return True


def _name_cut_parameters_mistake(case: Case, cut: list[str]) -> str:
    named = dict(case.subject.model.named_parameters())
    width, count = case.embedded_tokens.shape[-1], case.embedded_tokens.shape[1]
    if len(cut) == 1 and named[cut[0]].numel() == width and named[cut[0]].ndim > 1:
        return "VisionTransformer: class token cut from the graph"
    if len(cut) == 1 and named[cut[0]].numel() in (count * width, (count - 1) * width):
        return "add_class_token: positions cut from their gradient"
    homes = {name.rpartition(".")[0] for name in cut}
    steps = case.anatomy.steps
    if case.anatomy.start[1] is None or not homes & {op.module for step in steps for op in step.branch_ops}:
        return "add_class_token: tokens cut from their gradient"
    mlp = {op.module for step in steps if not case.anatomy.find_sites_within(step) for op in step.branch_linears}
    return "Mlp: first layer detached" if homes <= mlp else "EncoderBlock: tokens out of the graph"


def _name_unused_parameters_mistake(case: Case, names: list[str], named: dict[str, nn.Parameter]) -> str:
    homes = {name.rpartition(".")[0] for name in names}
    starts = dict(case.subject.start.named_parameters())
    if homes <= {op.module for op in case.watch.ops} and all(named[name].ndim == 1 for name in names):
        ones, zeros = ([name for name in names if bool((starts[name] == number).all())] for number in (1, 0))
        if len(ones) + len(zeros) == len(names):
            what = "weight and bias never used" if ones and zeros else f"{'weight' if ones else 'bias'} left out"
            return f"layer_norm: {what}"
    if "" not in homes and all(isinstance(case.subject.model.get_submodule(home), nn.LayerNorm) for home in homes):
        return "EncoderBlock: norms never used" if len(homes) > 1 else "VisionTransformer: no final norm"
    if any(_is_position_table(named[name]) for name in names):
        return "VisionTransformer: positions never added"
    blocks = len(homes) > 4
    return "VisionTransformer: blocks without effect" if blocks else "MultiHeadSelfAttention: projection not used"


def _is_position_table(tensor: Tensor) -> bool:
    return tensor.ndim > 2 and tensor.shape[-2] > 1 and tensor.shape[0] == 1


def _find_parameters_used_in_training(case: Case) -> set[str]:
    model = copy_model(case.subject.model).train()
    try:
        outputs = model(case.images)
    except Exception:
        return set()
    reached = {id(each) for one in _iterate_tensors(outputs) for each in find_gradient_leaves(one)}
    return {name for name, each in model.named_parameters() if id(each) in reached}


def _iterate_tensors(output: object) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, dict | list | tuple):
        for each in output.values() if isinstance(output, dict) else output:
            yield from _iterate_tensors(each)


def _changes_logits(case: Case, parameter: Tensor) -> bool:
    """Say whether other numbers in a parameter give other logits."""
    kept = parameter.detach().clone()
    other = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(6)).to(parameter)
    with torch.no_grad():
        parameter.data.add_(other * 0.5)
        logits = case.subject.run(case.images)
        parameter.data.copy_(kept)
    return case.is_deterministic and not are_close(logits, case.logits, 1e-5)


def find_gradient_cut(ops: list[Op]) -> Op | None:
    """The first operation at which the gradient ends."""
    for op in ops:
        learns = any(each.requires_grad for each, _ in op.reads if each.is_floating_point())
        if learns and op.out.is_floating_point() and not op.out.requires_grad:
            return op
    return None


def gradient_whole(case: Case) -> Remarks:
    """Backpropagation gives the derivative of what the pass computes: nothing on the way is cut from it."""
    if not case.is_deterministic:
        raise NotAsked("the logits are not the same twice")
    model, images = copy_model(case.subject.model).double(), case.images.double()
    with torch.no_grad():
        watch, _ = case.subject.watch(images, model=model)
    if any(op.data and op.out.dtype == torch.float32 for op in watch.ops):
        raise NotAsked("a part computes in float32, which is too coarse for it")
    true, claimed = _measure_and_compute_slope(model, images)
    if abs(true - claimed) > 1e-3 * max(abs(true), abs(claimed), 1e-6):
        at = find_gradient_cut(case.watch.ops)
        seen = (
            f"a small step in the parameters moves the logits by {true:.4g} a unit; their gradient says {claimed:.4g}"
        )
        yield report_wrong(seen, _name_gradient_cut_mistake(case, at) if case.is_vit else "", at)


def _name_gradient_cut_mistake(case: Case, at: Op | None) -> str:
    start = case.anatomy.start[1]
    if any(site.weights is not None and not site.weights[0].requires_grad for site in case.attention_sites):
        return "MultiHeadSelfAttention: weights without gradient"
    early = at is not None and start is not None and not at.needs(start)
    return "" if early else "EncoderBlock: stream out of the graph"


def _measure_and_compute_slope(model: nn.Module, images: Tensor) -> tuple[float, float]:
    """Return how fast a sum of the logits grows along one way through the parameters: measured, and by the gradient."""
    parameters = [each for each in model.parameters() if each.requires_grad]
    generator = torch.Generator().manual_seed(7)
    ways = [torch.randn(each.shape, generator=generator).to(each) for each in parameters]
    for way, each in zip(ways, parameters, strict=True):
        way *= each.detach().std().clamp(min=0.01) if each.numel() > 1 else 0.0

    def sum_weighted_logits() -> Tensor:
        logits = find_logits(model(images)).double()
        return (logits * torch.randn(logits.shape, generator=torch.Generator().manual_seed(8)).to(logits)).sum()

    slopes = torch.autograd.grad(sum_weighted_logits(), parameters, allow_unused=True)
    claimed = sum(float((slope * way).sum()) for slope, way in zip(slopes, ways, strict=True) if slope is not None)
    step, values = 1e-5, []
    with torch.no_grad():
        for sign in (1, -2):
            for each, way in zip(parameters, ways, strict=True):
                each.add_(way, alpha=sign * step)
            values.append(float(sum_weighted_logits()))
    return (values[0] - values[1]) / (2 * step), claimed


def one_place_each(case: Case) -> Remarks:
    """Each weight works at one depth: no Linear, norm or block is used again on what it gave before."""
    names = case.name_parameters_by_id()
    uses: dict[str, list[Op]] = {}
    for op in case.watch.ops:
        if op.data and op.name not in ADDS:
            given = {id(trace_source(*read, scales=False).tensor) for read in op.reads}
            for key in given & names.keys():
                uses.setdefault(names[key], []).append(op)
    again = {
        name: ops for name, ops in uses.items() if any(_applies_weights_to_result_of(late, ops[0]) for late in ops[1:])
    }
    if not again:
        return
    homes = list(dict.fromkeys(name.rpartition(".")[0] for name in again))
    first = next(iter(again.values()))
    verb = "works" if len(homes) == 1 else "work"
    seen = f"{join_some_names(homes)} {verb} {len(first)} times, each time on what came of the time before"
    if sum(ops[0].name in LINEARS for ops in again.values()) >= 4:
        seen += ": a model with fewer weights than its depth suggests"
        yield report_unusual(seen, "VisionTransformer: one block used depth times", first[1], homes[0])
    else:
        yield report_wrong(seen, "EncoderBlock: norm1 used twice", first[1], homes[0])


def _applies_weights_to_result_of(late: Op, early: Op) -> bool:
    return late is not early and late.needs(early) and late.name in LINEARS | NORMS | TIMES


def join_some_names(names: list[str]) -> str:
    """ "`a`, `b`, `c` and 2 more"."""
    shown = ", ".join(f"`{each or 'the model'}`" for each in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


PROPERTIES = (registered, used, gradient_whole, one_place_each)
