"""What learns: registered, used, reached by the gradient, and each weight at one place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.subject import logits_of, twin
from vit_course.diagnosis.watch import ADDS, FUSED, LINEARS, NORMS, Op, source


def registered(case: Case) -> Remarks:
    """Every tensor that learns is a parameter of the model, which an optimizer is given and a checkpoint keeps."""
    if any(isinstance(module, torch.jit.ScriptModule) for module in case.subject.model.modules()):
        raise NotAsked("a scripted module shows no parameters at work")
    own = case.names()
    strange = [each for each in _leaves(case.answers) if id(each) not in own and each is not case.pixels]
    if strange:
        at = next((op for op in case.watch.ops if any(tensor is strange[0] for tensor, _ in op.reads)), None)
        made = at is not None and any(op.out is strange[0] for op in case.watch.ops)
        mistake = (
            "EncoderBlock: layers made in forward" if made else "VisionTransformer: tensors that are no parameters"
        )
        yield wrong(
            f"{len(strange)} tensors that learn are no parameters, such as one of {_shape(strange[0])}", mistake, at
        )
    drawn = [
        op for op in case.watch.ops if op.name in ("randn", "rand", "normal_", "trunc_normal_", "uniform_", "zeros")
    ]
    if not case.steady and drawn:
        yield wrong("a part is drawn anew in every pass", "VisionTransformer: class token drawn", drawn[0])


def _leaves(result: Tensor) -> list[Tensor]:
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
    """Every parameter has an influence on the logits, and gets a gradient."""
    reached = {id(each) for each in _leaves(case.answers)}
    named = case.subject.model.named_parameters()
    idle = {name: each for name, each in named if each.requires_grad and id(each) not in reached}
    if idle and (elsewhere := _used_in_training(case)):
        idle = {name: each for name, each in idle.items() if name not in elsewhere}
    cut = [name for name, each in idle.items() if _matters(case, each)]
    if cut:
        yield wrong(
            f"no gradient comes back to {_listed(cut)}, though the logits depend on it",
            _cut_mistake(case, cut),
            _cutting(case.watch.ops),
            cut[0],
        )
    rest = [name for name in idle if name not in cut]
    vectors = [name for name in rest if idle[name].numel() == max(idle[name].shape, default=1) and idle[name].ndim > 1]
    if whole := [name for name in rest if name not in vectors]:
        yield wrong(
            f"{_listed(whole)} {'has' if len(whole) == 1 else 'have'} no influence on the logits",
            _idle_mistake(case, whole, idle),
            module=whole[0].rpartition(".")[0],
        )
    if vectors:
        yield unusual(
            f"{_listed(vectors)} {'has' if len(vectors) == 1 else 'have'} no influence: a token that is never put in",
            "add_class_token: a class token of zeros",
            module=vectors[0],
        )


def _cut_mistake(case: Case, cut: list[str]) -> str:
    named = dict(case.subject.model.named_parameters())
    width, count = case.start.shape[-1], case.start.shape[1]
    if len(cut) == 1 and named[cut[0]].numel() == width and named[cut[0]].ndim > 1:
        return "VisionTransformer: class token cut from the graph"
    if len(cut) == 1 and named[cut[0]].numel() in (count * width, (count - 1) * width):
        return "add_class_token: positions cut from their gradient"
    start = case.anatomy.start[1]
    inside = {op.module for step in case.anatomy.steps for op in step.inside}
    if start is None or not any(name.rpartition(".")[0] in inside for name in cut):
        return "add_class_token: tokens cut from their gradient"
    mlp = {op.module for step in case.anatomy.steps if not case.anatomy.sites_of(step) for op in step.linears}
    only = all(name.rpartition(".")[0] in mlp for name in cut)
    return "Mlp: first layer detached" if only else "EncoderBlock: tokens out of the graph"


def _idle_mistake(case: Case, names: list[str], idle: dict[str, nn.Parameter]) -> str:
    homes = {name.rpartition(".")[0] for name in names}
    starts = dict(case.subject.start.named_parameters())
    called = {op.module for op in case.watch.ops}
    if homes <= called and all(idle[name].ndim == 1 for name in names):
        kinds = {
            "weight" if bool((starts[name] == 1).all()) else "bias" if not starts[name].any() else "" for name in names
        }
        words = {"weight": "weight left out", "bias": "bias left out"}
        if "" not in kinds:
            return f"layer_norm: {words[kinds.pop()] if len(kinds) == 1 else 'weight and bias never used'}"
    norms = (
        [home for home in homes if isinstance(case.subject.model.get_submodule(home), nn.LayerNorm)]
        if homes != {""}
        else []
    )
    blocks = case.anatomy.steps
    if norms and len(norms) == len(homes):
        return "EncoderBlock: norms never used" if len(norms) > 1 else "VisionTransformer: no final norm"
    if any(idle[name].ndim >= 2 and idle[name].shape[-2] > 1 and idle[name].shape[0] == 1 for name in names):
        return "VisionTransformer: positions never added"
    return (
        "VisionTransformer: blocks without effect"
        if len(homes) > 4 and blocks
        else "MultiHeadSelfAttention: projection not used"
    )


def _used_in_training(case: Case) -> set[str]:
    model = twin(case.subject.model).train()
    try:
        outputs = model(case.images)
    except Exception:
        return set()
    tensors = [outputs] if isinstance(outputs, Tensor) else list(_inside(outputs))
    reached = {id(each) for one in tensors for each in _leaves(one)}
    return {name for name, each in model.named_parameters() if id(each) in reached}


def _inside(output: object) -> Iterator[Tensor]:
    values = output.values() if isinstance(output, dict) else output if isinstance(output, list | tuple) else ()
    for each in values:
        if isinstance(each, Tensor):
            yield each
        else:
            yield from _inside(each)


def _matters(case: Case, parameter: Tensor) -> bool:
    """Whether other numbers in a parameter give other logits."""
    kept = parameter.detach().clone()
    with torch.no_grad():
        parameter.data.add_(
            torch.randn(parameter.shape, generator=torch.Generator().manual_seed(6)).to(parameter) * 0.5
        )
        other = case.subject.run(case.images)
        parameter.data.copy_(kept)
    return case.steady and not close(other, case.logits, 1e-5)


def _cutting(ops: list[Op]) -> Op | None:
    """The first operation at which the gradient ends."""
    return next(
        (
            op
            for op in ops
            if op.out.is_floating_point()
            and not op.out.requires_grad
            and any(each.requires_grad for each, _ in op.reads if each.is_floating_point())
        ),
        None,
    )


def gradient_whole(case: Case) -> Remarks:
    """Backpropagation gives the derivative of what the pass computes: nothing on the way is cut from it."""
    if not case.steady:
        raise NotAsked("the logits are not the same twice")
    model, images = twin(case.subject.model).double(), case.images.double()
    with torch.no_grad():
        watch, _ = case.subject.watch(images, model=model)
    if any(op.data and op.out.dtype == torch.float32 for op in watch.ops):
        raise NotAsked("a part computes in float32, which is too coarse for it")
    parameters = [each for each in model.parameters() if each.requires_grad]
    generator = torch.Generator().manual_seed(7)
    weights = torch.randn(case.logits.shape, generator=generator).double()
    ways = [
        torch.randn(each.shape, generator=generator).to(each) * each.detach().std().clamp(min=0.01)
        if each.numel() > 1
        else torch.zeros_like(each)
        for each in parameters
    ]
    given = torch.autograd.grad(
        (logits_of(model(images)).double() * weights.to(images)).sum(), parameters, allow_unused=True
    )
    told = sum(float((slope * way).sum()) for slope, way in zip(given, ways, strict=True) if slope is not None)
    step, values = 1e-5, []
    with torch.no_grad():
        for sign in (1, -2):
            for each, way in zip(parameters, ways, strict=True):
                each.add_(way, alpha=sign * step)
            values.append(float((logits_of(model(images)).double() * weights.to(images)).sum()))
    true = (values[0] - values[1]) / (2 * step)
    if abs(true - told) > 1e-3 * max(abs(true), abs(told), 1e-6):
        dead = any(site.weights is not None and not site.weights[0].requires_grad for site in case.sites)
        mistake = (
            "MultiHeadSelfAttention: weights without gradient" if dead else "EncoderBlock: stream out of the graph"
        )
        seen = (
            f"a step along the parameters changes the logits by {true:.4g} per unit, and the gradient says {told:.4g}"
        )
        yield wrong(seen, mistake, _cutting(case.watch.ops))


def one_place_each(case: Case) -> Remarks:
    """Each weight works at one depth: no Linear, norm or block is used again on what it gave before."""
    names = case.names()
    uses: dict[int, list[Op]] = {}
    for op in case.watch.ops:
        if not op.data or (op.name in ADDS):
            continue
        for tensor, maker in op.reads:
            given = source(tensor, maker, scales=False).tensor
            if id(given) in names:
                uses.setdefault(id(given), []).append(op)
    again = {
        names[key]: ops
        for key, ops in uses.items()
        if any(late.needs(ops[0]) and late is not ops[0] and _reads_new(late, ops[0]) for late in ops[1:])
    }
    if not again:
        return
    homes = list(dict.fromkeys(name.rpartition(".")[0] for name in again))
    first = next(iter(again.values()))
    wide = [name for name, ops in again.items() if ops[0].name in LINEARS]
    seen = f"{_listed(homes)} works {len(first)} times, each time on what came of the time before"
    if wide and len(wide) >= 4:
        yield unusual(
            f"{seen}: a model with fewer weights than its depth lets think",
            "VisionTransformer: one block used depth times",
            first[1],
            homes[0],
        )
    else:
        yield wrong(seen, "EncoderBlock: norm1 used twice", first[1], homes[0])


def _reads_new(late: Op, early: Op) -> bool:
    return late.name in LINEARS | NORMS or late.name in ("mul", "__mul__", "__rmul__")


def with_biases(case: Case) -> Remarks:
    """The projections of patches, queries, keys and values, and of the MLP have a bias."""
    bare = [op for op in case.watch.ops if op.data and op.name in ("linear", "conv2d") and not _has_bias(op)]
    if bare:
        first = next(op for op in case.watch.ops if op.data and op.name in LINEARS)
        mistake = "PatchEmbedding: projection without bias" if bare[0] is first else ""
        what = "one linear map has no bias" if len(bare) == 1 else f"{len(bare)} linear maps have no bias"
        yield unusual(f"{what}; some papers leave it out", mistake, bare[0])


def _has_bias(op: Op) -> bool:
    return isinstance(op.kwargs.get("bias", op.args[2] if len(op.args) > 2 else None), Tensor)


def blocks_start_apart(case: Case) -> Remarks:
    """No two weights start with the same numbers."""
    seen: dict[tuple[object, ...], str] = {}
    twins = []
    for name, each in case.subject.start.named_parameters():
        if each.ndim < 2 or each.numel() < 8 or float(each.detach().std()) < 1e-8:
            continue
        key = (each.shape, float(each.detach().double().sum()), float(each.detach().flatten()[1]))
        if key in seen:
            twins.append((seen[key], name))
        seen.setdefault(key, name)
    if twins:
        yield unusual(
            f"{len(twins)} weights start as copies of others: `{twins[0][1]}` is a copy of `{twins[0][0]}`; torch's "
            "nn.TransformerEncoder does this, since it copies one layer",
            module=twins[0][1].rpartition(".")[0],
        )


def all_learn(case: Case) -> Remarks:
    """No parameter is frozen."""
    frozen = [name for name, each in case.subject.original.named_parameters() if not each.requires_grad]
    if frozen:
        yield unusual(
            f"{_listed(frozen)} {'does' if len(frozen) == 1 else 'do'} not learn: requires_grad is False",
            module=frozen[0].rpartition(".")[0],
        )


def dropout_used(case: Case) -> Remarks:
    """Dropout that is built drops something in training, and never logits."""
    model = twin(case.subject.model).train()
    drops = {
        name: each
        for name, each in model.named_modules()
        if isinstance(each, nn.modules.dropout._DropoutNd) and each.p > 0
    }
    called = _called(case, model, drops)
    live = {id(each) for each in _leaves(case.answers)}
    idle = [name for name in drops if name not in called and not _home_is_idle(model, case.subject.model, name, live)]
    if idle:
        yield wrong(f"{_listed(idle)} {'is' if len(idle) == 1 else 'are'} built and never called", module=idle[0])
    last = case.logits
    ends = [name for name, each in drops.items() if name in called and _ends_with(model, each, case, last.shape)]
    if ends:
        yield wrong(f"`{ends[0]}` drops logits in training", module=ends[0])


def _called(case: Case, model: nn.Module, drops: Mapping[str, nn.Module]) -> set[str]:
    """The dropouts that run in training, as modules or by their rate in a function of the module that holds them."""
    watch, _ = case.subject.watch(case.images, model=model)
    called = {op.module for op in watch.ops}
    inner: set[str] = set()
    for name, each in drops.items():
        each.register_forward_pre_hook(lambda *_, name=name: inner.add(name))
    logits_of(model(case.images.clone()))
    rates = {op.module for op in watch.ops if _drops(op)}
    return inner | {name for name in drops if name.rpartition(".")[0] in rates} | (called & drops.keys())


def _drops(op: Op) -> bool:
    if op.name == FUSED:
        return bool(op.kwargs.get("dropout_p") or (len(op.args) > 4 and op.args[4]))
    return "dropout" in op.name


def _ends_with(model: nn.Module, drop: nn.Module, case: Case, shape: torch.Size) -> bool:
    kept: list[Tensor] = []
    hook = drop.register_forward_hook(lambda _, __, out: kept.append(out))
    found = logits_of(model(case.images))
    hook.remove()
    return bool(kept) and kept[-1].shape == shape and (kept[-1] is found or kept[-1].data_ptr() == found.data_ptr())


def _home_is_idle(model: nn.Module, asked: nn.Module, name: str, live: set[int]) -> bool:
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
    classes = logits.shape[1]
    loss = float(
        torch.stack(
            [
                F.cross_entropy(logits, torch.full((len(logits),), each, device=logits.device))
                for each in range(min(classes, 50))
            ]
        ).mean()
    )
    if loss > 1.5 * math.log(classes) + 1:
        yield unusual(f"the loss starts at {loss:.2f}; a guess among {classes} classes has {math.log(classes):.2f}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{each or 'the model'}`" for each in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "one number"


PROPERTIES = (
    registered,
    used,
    gradient_whole,
    with_biases,
    one_place_each,
    blocks_start_apart,
    all_learn,
    dropout_used,
    start_near_chance,
)
