"""`predict_with_attention`: a prediction, and where the class token looked.

The oracle is torch's own functions, on weights that are loaded by name; the model itself is a SmallViT. The known
mistakes compute the stages from the model's parameters, and then go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor, listed
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_one_device
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import both_tensors, weights_of
from vit_course.exercises.l05_vit.vision_transformer import (
    TALL_MODEL,
    WIDE_MODEL,
    after_block,
    classified,
    embedded,
    logits_of,
    normed,
    parameter_shapes,
)
from vit_course.exercises.l08_inside import LESSON
from vit_course.exercises.l08_inside.mean_attention_distance import Grid

Weights = Mapping[str, Tensor]
# 4 x 5 and 5 x 3 patches; two blocks at least, so that the first is not the last
WIDE, TALL = WIDE_MODEL, replace(TALL_MODEL, num_classes=8)
MAP_AXES = ("row", "column")
APART = ("blocks.0",)
WHAT_STILL_RUNS = "Which lines of yours still run when the model raises?"


def attention_of(weights: Weights, image: Tensor, config: ViTConfig, block: int) -> Tensor:
    """Attention weights (num_heads, tokens, tokens) of one block on image (channels, height, width)."""
    x = embedded(weights, image[None], config)
    for number in range(block):
        x = after_block(weights, number, x, config)
    name = f"blocks.{block}"
    qkv, bias = weights[f"{name}.attention.qkv.weight"], weights.get(f"{name}.attention.qkv.bias")
    heads = F.linear(normed(weights, f"{name}.norm1", x, config), qkv, bias).unflatten(-1, (3, config.num_heads, -1))
    query, key, _ = heads.permute(2, 0, 3, 1, 4)
    return weights_of(query, key)[0]


def right_prediction(weights: Weights, config: ViTConfig, image: Tensor) -> tuple[Tensor, Tensor]:
    """The oracle: probabilities (num_classes,), and the map (rows, columns)."""
    probabilities = F.softmax(logits_of(weights, image[None], config)[0], dim=0)
    seen = attention_of(weights, image, config, config.depth - 1)[:, 0].mean(0)
    return probabilities, F.normalize(seen[1:], p=1.0, dim=0).unflatten(0, config.grid_size)


predict_with_attention = Exercise("predict_with_attention", LESSON, in_training=InTraining.UNSEEN)


class _Prediction:
    """One question: a model, an image, the student's answer, and all else that the fixture has noted."""

    def __init__(
        self,
        student: Student,
        probe: Probe,
        config: ViTConfig,
        *judged: str,
        training: bool = False,
        apart: Sequence[str] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.weights = {name: each.to(dtype) for name, each in probe.weights(parameter_shapes(config)).items()}
        self.image = probe.normal(config.in_channels, config.height, config.width, dtype=dtype)
        self.config = config
        fields = {"weights": self.weights, "config": config, "image": self.image, "training": training, "apart": apart}
        self.notes: dict[str, Any] = student.run_fixture("predict", "returned", *judged, **fields)
        answer = both_tensors(self.notes["returned"], student.name, "the probabilities", "the map")
        self.probabilities, self.map = answer

    def expect_shapes(self) -> None:
        expect_tensor(self.probabilities, (self.config.num_classes,), "the first tensor, the probabilities,")
        rows, columns = self.config.grid_size
        expect_tensor(self.map, (rows, columns), f"the second tensor, the map of {rows} rows and {columns} columns,")

    def expect_right(self, context: str, look: str = "") -> None:
        """Fail in words unless both tensors hold the right numbers."""
        self.expect_shapes()
        probabilities, seen = right_prediction(self.weights, self.config, self.image)
        expect_equal(self.probabilities, probabilities, f"the probabilities tensor{context}", ("class",), look=look)
        expect_equal(self.map, seen, f"the map{context}", MAP_AXES, look=look)


@predict_with_attention.check(guard=True)
def two_tensors_come_back(student: Student, probe: Probe) -> None:
    """It returns the probabilities (num_classes,) and the map (rows, columns), without a batch axis."""
    for config in (WIDE, TALL):
        _Prediction(student, probe, config).expect_shapes()


@predict_with_attention.check(needs=two_tensors_come_back)
def the_probabilities_are_the_models(student: Student, probe: Probe) -> None:
    """The probabilities are what the softmax makes of the model's logits."""
    answer = _Prediction(student, probe, WIDE)
    expected, _ = right_prediction(answer.weights, WIDE, answer.image)

    def describe(found: Tensor, _: Tensor) -> tuple[str, str] | None:
        if found.min() < 0 or found.max() > 1:
            return f"they run from {found.min():.3g} to {found.max():.3g}", "numbers from 0 to 1 that sum to 1"
        return None

    look = "What does the model give, and what makes probabilities of it, along which axis?"
    expect_equal(answer.probabilities, expected, "the probabilities tensor", ("class",), describe, look)


@predict_with_attention.check(needs=two_tensors_come_back)
def the_map_sums_to_one(student: Student, probe: Probe) -> None:
    """The map sums to one: it says how the attention to the patches, without the class token's own, is divided."""
    total = float(_Prediction(student, probe, WIDE).map.detach().sum())
    if abs(total - 1) > 1e-4:
        look = "The row of the class token sums to 1 with all its tokens. Which of them is not on the map?"
        raise Failure(f"the map sums to {total:.4g}", "1", look)


@predict_with_attention.check(needs=two_tensors_come_back)
def the_map_shows_where_the_class_token_looks(student: Student, probe: Probe) -> None:
    """The map is the class token's attention to the patches in the last block, the mean over the heads."""
    for config in (WIDE, TALL):
        answer = _Prediction(student, probe, config)
        _, seen = right_prediction(answer.weights, config, answer.image)
        rows, columns = config.grid_size
        look = "Which block, which row of the weights, which tokens of it, and in which order do patches stand?"
        expect_equal(answer.map, seen, f"the map of {rows} rows and {columns} columns", MAP_AXES, look=look)


@predict_with_attention.check(needs=two_tensors_come_back)
def the_model_is_asked_in_evaluation_mode(student: Student, probe: Probe) -> None:
    """A model that comes in training mode is run in evaluation mode."""
    look = "This model has dropout. Which call turns it off, and do both of your questions come after it?"
    _Prediction(student, probe, WIDE, training=True).expect_right(" of a model that was training", look)


@predict_with_attention.check(needs=two_tensors_come_back, guard=True)
def the_mode_is_put_back(student: Student, probe: Probe) -> None:
    """Afterward each module is in the mode that it had before, training or evaluation."""
    for training, mode, other in ((True, "training", "evaluation"), (False, "evaluation", "training")):
        answer = _Prediction(student, probe, WIDE, "modes", training=training)
        answer.expect_shapes()
        if answer.notes["modes"]:
            raise Failure(
                f"a model that came in {mode} mode is in {other} mode afterward: {listed(answer.notes['modes'], 2)}",
                f"{mode} mode, as before",
                "What do you know about the model's mode before you change it, and where do you keep it?",
            )
    for training in (True, False):
        answer = _Prediction(student, probe, WIDE, "modes", training=training, apart=APART)
        expect_own_modes(answer.notes["modes"], training)


def expect_own_modes(changed: Sequence[object], training: bool) -> None:
    """Fail when parts of a model of which ``APART`` came in another mode are ``changed``."""
    if changed:
        mode, other = ("training", "evaluation") if training else ("evaluation", "training")
        came = f"a model came in {mode} mode, and {APART[0]} of it in {other} mode; afterward other modes have"
        look = "How many modes does a model have: one, or one for each of its modules?"
        seen = f"{came} {listed([str(each) for each in changed], 2)}"
        raise Failure(seen, "each module's own mode, as before", look)


@predict_with_attention.check(needs=two_tensors_come_back, guard=True)
def no_gradient_is_kept(student: Student, probe: Probe) -> None:
    """No graph for a backward pass is kept."""
    answer = _Prediction(student, probe, WIDE, "gradients")
    kept = [name for name in ("probabilities", "map") if getattr(answer, name).requires_grad]
    student.record.append(("keeps a graph", tuple(kept)))
    if kept:
        look = "Every intermediate tensor stays in memory for it. What tells torch that no backward pass will come?"
        raise Failure(
            f"the {' and the '.join(kept)} still know how they were computed", "tensors without a graph", look
        )
    answer.expect_shapes()


@predict_with_attention.check(needs=two_tensors_come_back, guard=True)
def the_model_is_left_as_it_was(student: Student, probe: Probe) -> None:
    """Nothing is left behind in the model: no hook, no frozen or changed parameter, no other gradient."""
    answer = _Prediction(student, probe, WIDE, "hooks", "frozen", "changed", "gradients", "recording")
    answer.expect_shapes()
    left: Sequence[tuple[str, str, str]] = (
        (
            "hooks",
            "a hook is left behind on {}, or somebody else's is gone",
            "What did the registration give you, and what can that do?",
        ),
        (
            "frozen",
            "{} was frozen, or was freed",
            "How does one compute without gradients and leave a model alone?",
        ),
        ("changed", "the numbers in {} have changed", "Which line writes into the model?"),
        ("gradients", "{} has another gradient than before", "Which line clears gradients, or makes them?"),
    )
    for note, seen, look in left:
        if answer.notes[note]:
            raise Failure(seen.format(listed(answer.notes[note], 2)), "the model as it came", look)
    if not answer.notes["recording"]:
        look = "Where does your no_grad end? It has a `with`."
        raise Failure("torch records no gradients any more after the call", "gradients recorded as before", look)


@predict_with_attention.check(needs=two_tensors_come_back, guard=True)
def an_error_leaves_nothing_behind(student: Student, probe: Probe) -> None:
    """Even if the model raises an error, as for an image of another size, it is left as it was."""
    _Prediction(student, probe, WIDE).expect_shapes()
    expect_nothing_after_an_error(student, probe, WIDE)


def expect_nothing_after_an_error(student: Student, probe: Probe, config: ViTConfig) -> None:
    """Fail when something is left behind of a call that an image of another size has stopped."""
    weights = probe.weights(parameter_shapes(config))
    image = probe.normal(config.in_channels, config.height + config.patch_size, config.width)
    notes = student.run_fixture("predict_stopped", weights=weights, config=config, image=image)
    traces = left_after_an_error(notes)
    student.record[-1:] = [("left after an error", bool(traces))]
    if traces:
        seen = f"an image of another size stopped the model, and afterward {traces}"
        raise Failure(seen, "the model as it came, after an error too", WHAT_STILL_RUNS)


def left_after_an_error(notes: Mapping[str, Any]) -> str:
    """The first thing that a call which was stopped has left behind, as a clause; "" for nothing."""
    clauses = {
        "modes": "{} is in another mode",
        "hooks": "another hook is on {}",
        "frozen": "{} is frozen, or freed",
    }
    traces = [clause.format(str(notes[name][0])) for name, clause in clauses.items() if notes[name]]
    return (traces or ["" if notes["recording"] else "torch records no gradients any more"])[0]


@predict_with_attention.check(needs=two_tensors_come_back, worth=0.5, guard=True)
def it_computes_where_the_model_is(student: Student, probe: Probe) -> None:
    """A model and an image on another device are used there."""
    _Prediction(student, probe, WIDE).expect_shapes()
    weights = probe.weights(parameter_shapes(WIDE))
    image = probe.normal(WIDE.in_channels, WIDE.height, WIDE.width)
    notes = student.run_fixture("predict_elsewhere", weights=weights, config=WIDE, image=image)
    expect_one_device(student, notes | {"devices": []})  # a result for the eyes may well be on the CPU


@predict_with_attention.check(needs=the_map_shows_where_the_class_token_looks, guard=True)
def a_float64_model_answers_in_float64(student: Student, probe: Probe) -> None:
    """A float64 model gives float64 probabilities and a float64 map."""
    _Prediction(student, probe, TALL, dtype=torch.float64).expect_right(" of a float64 model")


predict_with_attention.example("""
>>> small = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2, num_heads=2, num_classes=5)
>>> probabilities, seen = predict_with_attention(VisionTransformer(small), torch.zeros(3, 8, 12))
>>> tuple(probabilities.shape), tuple(seen.shape)  # 2 rows and 3 columns of patches
((5,), (2, 3))
>>> round(probabilities.sum().item(), 4), round(seen.sum().item(), 4)
(1.0, 1.0)
""")


HEARD = "08_inside, Reading what forward does not return"
MAP = "08_inside, From a row of weights to a map"
Pair = tuple[Tensor, Tensor]


def _config(model: Any, image: Tensor) -> ViTConfig:
    num_classes, embed_dim = model.head.weight.shape
    return ViTConfig(
        (image.shape[1], image.shape[2]),
        model.patch_embedding.patch_size,
        image.shape[0],
        num_classes,
        embed_dim,
        len(model.blocks),
        model.blocks[0].attention.num_heads,
        model.blocks[0].mlp.fc1.out_features / embed_dim,
    )


def _weights(model: Any) -> Mapping[str, Tensor]:
    return {name: each.detach() for name, each in model.named_parameters()}


def _probabilities(model: Any, image: Tensor) -> Tensor:
    return F.softmax(logits_of(_weights(model), image[None], _config(model, image))[0], dim=0)


def _attention(model: Any, image: Tensor, block: int = -1) -> Tensor:
    """(num_heads, tokens, tokens) of a block, counted from the end where negative."""
    config = _config(model, image)
    return attention_of(_weights(model), image, config, block % config.depth)


def _map(row: Tensor, model: Any, image: Tensor) -> Tensor:
    """(rows, columns) of the shares of all tokens, class token first, that sum to 1 on the map."""
    return F.normalize(row[1:], p=1.0, dim=0).unflatten(0, _config(model, image).grid_size)


def _right_map(model: Any, image: Tensor) -> Tensor:
    return _map(_attention(model, image)[:, 0].mean(0), model, image)


def _right(model: Any, image: Tensor) -> Pair:
    return _probabilities(model, image), _right_map(model, image)


@predict_with_attention.misconception("What turns logits into numbers that sum to 1?", HEARD)
def softmax_forgotten(model: Any, image: Tensor) -> Pair:
    """The logits are given back where probabilities are asked for."""
    return logits_of(_weights(model), image[None], _config(model, image))[0], _right_map(model, image)


@predict_with_attention.misconception(
    "Which numbers should compete for a sum of 1, and along which axis do they lie?", HEARD
)
def softmax_over_the_batch(model: Any, image: Tensor) -> Pair:
    """The softmax runs over the batch, which holds one image, so every class gets all of the probability."""
    logits = logits_of(_weights(model), image[None], _config(model, image))
    return F.softmax(logits, dim=0)[0], _right_map(model, image)


@predict_with_attention.misconception("Is dropout on or off when you run the model?", HEARD)
def asked_in_training_mode(model: Any, image: Tensor) -> Pair:
    """The model is run in the mode in which it comes, so dropout can change the answer."""
    if not model.training:
        return _right(model, image)
    weights, config = _weights(model), _config(model, image)
    x = embedded(weights, image[None], config)  # in training mode the model's blocks add nothing
    probabilities = F.softmax(classified(weights, normed(weights, "norm", x, config)[:, 0])[0], dim=0)
    last = f"blocks.{config.depth - 1}."
    as_first = {name.replace(last, "blocks.0."): each for name, each in weights.items() if last in name}
    return probabilities, _map(attention_of({**weights, **as_first}, image, config, 0)[:, 0].mean(0), model, image)


@predict_with_attention.misconception("Which line puts the model back into its old mode?", HEARD, InTraining.HIDDEN)
def left_in_evaluation_mode(model: Any, image: Tensor) -> Pair:
    """The model is put into evaluation mode and left there, so any further training has no dropout."""
    model.eval()
    return _right(model, image)


@predict_with_attention.misconception("Was the model training when it came?", HEARD)
def always_put_into_training_mode(model: Any, image: Tensor) -> Pair:
    """At the end the model is put into training mode, whatever its mode was before."""
    model.train()
    return _right(model, image)


@predict_with_attention.misconception("How many modes does a model have: one, or one for each of its modules?", HEARD)
def one_mode_for_all_modules(model: Any, image: Tensor) -> Pair:
    """Only the model's own mode is restored, and train() gives it to all modules, also to one that had another."""
    model.train(model.training)
    return _right(model, image)


@predict_with_attention.misconception(WHAT_STILL_RUNS, HEARD)
def not_undone_after_an_error(model: Any, image: Tensor) -> Pair:
    """The lines that restore the mode and remove the hook are skipped when the model raises an error."""
    modes = {module: module.training for module in model.modules()}
    handle = model.blocks[-1].attention.register_forward_hook(lambda *_: None)
    model.eval()
    answer = _right(model, image)
    handle.remove()
    for module, mode in modes.items():
        module.training = mode
    return answer


@predict_with_attention.misconception("Is a gradient of this answer ever needed?", HEARD)
def gradient_kept(model: Any, image: Tensor) -> Pair:
    """The answer is computed with gradients, so its graph stays in memory."""
    probabilities, seen = _right(model, image)
    nothing = 0 * model.head.bias.sum()
    return probabilities + nothing, seen + nothing


@predict_with_attention.misconception("What did the registration of the hook give you back?", HEARD)
def hook_left_behind(model: Any, image: Tensor) -> Pair:
    """The hook is never removed, so it is called at every later run of the model."""
    model.blocks[-1].attention.register_forward_hook(lambda *_: None)
    return _right(model, image)


@predict_with_attention.misconception("Which line switches requires_grad on again?", HEARD, InTraining.STOPS)
def parameters_frozen(model: Any, image: Tensor) -> Pair:
    """requires_grad is switched off for the parameters, so they no longer learn afterward."""
    model.requires_grad_(False)
    return _right(model, image)


@predict_with_attention.misconception("For how long should gradients be switched off?", HEARD, InTraining.STOPS)
def gradients_off_for_good(model: Any, image: Tensor) -> Pair:
    """Gradients are turned off by set_grad_enabled and never turned on again, for the whole program."""
    torch.set_grad_enabled(False)
    return _right(model, image)


@predict_with_attention.misconception("Which of the two does the exercise name first?", HEARD)
def map_before_probabilities(model: Any, image: Tensor) -> Pair:
    """The two tensors come in the wrong order."""
    return _right(model, image)[::-1]


@predict_with_attention.misconception("How many images went in, and where is that axis on the way out?", HEARD)
def batch_axis_left(model: Any, image: Tensor) -> Pair:
    """Both tensors still have the batch axis that the model needed."""
    probabilities, seen = _right(model, image)
    return probabilities[None], seen[None]


@predict_with_attention.misconception("Which block does the head read from?", MAP)
def first_blocks_attention(model: Any, image: Tensor) -> Pair:
    """The map is that of the first block; the last one is asked for."""
    return _probabilities(model, image), _map(_attention(model, image, 0)[:, 0].mean(0), model, image)


@predict_with_attention.misconception("How many heads are there, and does each count?", MAP)
def first_head_only(model: Any, image: Tensor) -> Pair:
    """The map is that of head 0 alone."""
    return _probabilities(model, image), _map(_attention(model, image)[0, 0], model, image)


@predict_with_attention.misconception("Is the head with the largest weight the whole layer?", MAP)
def strongest_head_only(model: Any, image: Tensor) -> Pair:
    """Each patch gets the largest weight of all heads where their mean is asked for."""
    return _probabilities(model, image), _map(_attention(model, image)[:, 0].amax(0), model, image)


@predict_with_attention.misconception("Rows are queries. Which token is the query here?", MAP)
def column_in_place_of_the_row(model: Any, image: Tensor) -> Pair:
    """The map shows how much each patch looks at the class token, and not how much the class token looks at it."""
    return _probabilities(model, image), _map(_attention(model, image)[:, :, 0].mean(0), model, image)


@predict_with_attention.misconception("Rows are queries. Whose row does the head of the model depend on?", MAP)
def mean_over_all_queries(model: Any, image: Tensor) -> Pair:
    """The map is the mean over all queries; the class token's row is asked for."""
    return _probabilities(model, image), _map(_attention(model, image).mean((0, 1)), model, image)


@predict_with_attention.misconception("What does the class token's row sum to without its first entry?", MAP)
def share_of_the_class_token_lost(model: Any, image: Tensor) -> Pair:
    """The class token's own share is cut off, and the rest does not sum to 1 any more."""
    seen = _attention(model, image)[:, 0, 1:].mean(0)
    return _probabilities(model, image), seen.unflatten(0, _config(model, image).grid_size)


@predict_with_attention.misconception("At which end of the row does the class token stand?", MAP)
def class_token_on_the_map(model: Any, image: Tensor) -> Pair:
    """The last token is cut off in place of the first, so that the class token is on the map, top left."""
    return _probabilities(model, image), _map(_attention(model, image)[:, 0].mean(0).roll(1), model, image)


@predict_with_attention.misconception("Is a share of attention a probability already?", MAP)
def softmax_of_the_map(model: Any, image: Tensor) -> Pair:
    """A second softmax runs over the map, which makes it almost flat."""
    seen = _attention(model, image)[:, 0, 1:].mean(0)
    return _probabilities(model, image), F.softmax(seen, 0).unflatten(0, _config(model, image).grid_size)


@predict_with_attention.misconception("Does the brightest patch get all of the attention?", MAP)
def divided_by_the_largest(model: Any, image: Tensor) -> Pair:
    """The map is divided by its largest value, as for a picture; it should sum to 1."""
    probabilities, seen = _right(model, image)
    return probabilities, F.normalize(seen, p=torch.inf, dim=(0, 1))  # type: ignore[arg-type]  # torch takes both axes


@predict_with_attention.misconception("Patch 1 stands to the right of patch 0. Where is it on your map?", MAP)
def map_column_by_column(model: Any, image: Tensor) -> Pair:
    """The patches are laid out column by column, but they were cut row by row."""
    probabilities, seen = _right(model, image)
    rows, columns = seen.shape
    return probabilities, seen.flatten().unflatten(0, (columns, rows)).mT


@predict_with_attention.misconception("How many rows of patches has a picture that is wider than tall?", MAP)
def rows_and_columns_swapped(model: Any, image: Tensor) -> Pair:
    """The map has as many rows as it should have columns."""
    probabilities, seen = _right(model, image)
    return probabilities, seen.flatten().unflatten(0, seen.shape[::-1])


@predict_with_attention.misconception("Where is the model, and where does your code move the image?", HEARD)
def image_taken_to_the_cpu(model: Any, image: Tensor) -> Pair:
    """The image is moved to the CPU, and a model on a GPU cannot use it."""
    return _right(model, image.cpu())


def _predicted(
    model: Any,
    image: Tensor,
    *,
    likely: Callable[[Tensor], Tensor] = lambda logits: F.softmax(logits, dim=0),
    block: int = -1,
    row: Callable[[Tensor], Tensor] = lambda heads: heads[:, 0].mean(0),
    drawn: Callable[[Tensor], Tensor] = lambda row: F.normalize(row[1:], p=1.0, dim=0),
    laid: Callable[[Tensor, Grid], Tensor] = lambda patches, grid: patches.unflatten(0, grid),
    left: Callable[[Any], object] = lambda model: None,
    postprocess: Callable[[Tensor, Tensor], Any] = lambda probabilities, seen: (probabilities, seen),
) -> Any:
    left(model)
    logits = logits_of(_weights(model), image[None], _config(model, image))[0]
    seen = laid(drawn(row(_attention(model, image, block))), _config(model, image).grid_size)
    return postprocess(likely(logits), seen)


def _largest_one(row: Tensor) -> Tensor:
    return row[1:] / row[1:].max()


def _column_by_column(patches: Tensor, grid: Grid) -> Tensor:
    return patches.unflatten(0, (grid[1], grid[0])).mT


declare(
    predict_with_attention,
    Parts(
        _predicted,
        {
            softmax_forgotten: {"likely": lambda logits: logits},
            softmax_over_the_batch: {"likely": torch.ones_like},
            left_in_evaluation_mode: {"left": lambda model: model.eval()},
            always_put_into_training_mode: {"left": lambda model: model.train()},
            one_mode_for_all_modules: {"left": lambda model: model.train(model.training)},
            hook_left_behind: {"left": lambda model: model.blocks[-1].attention.register_forward_hook(lambda *_: None)},
            parameters_frozen: {"left": lambda model: model.requires_grad_(False)},
            map_before_probabilities: {"postprocess": lambda probabilities, seen: (seen, probabilities)},
            batch_axis_left: {"postprocess": lambda probabilities, seen: (probabilities[None], seen[None])},
            first_blocks_attention: {"block": 0},
            first_head_only: {"row": lambda heads: heads[0, 0]},
            strongest_head_only: {"row": lambda heads: heads[:, 0].amax(0)},
            column_in_place_of_the_row: {"row": lambda heads: heads[:, :, 0].mean(0)},
            mean_over_all_queries: {"row": lambda heads: heads.mean((0, 1))},
            share_of_the_class_token_lost: {"drawn": lambda row: row[1:]},
            class_token_on_the_map: {"drawn": lambda row: F.normalize(row[:-1], p=1.0, dim=0)},
            softmax_of_the_map: {"drawn": lambda row: F.softmax(row[1:], 0)},
            divided_by_the_largest: {"drawn": _largest_one},
            map_column_by_column: {"laid": _column_by_column},
            rows_and_columns_swapped: {"laid": lambda patches, grid: patches.unflatten(0, grid[::-1])},
        },
    ),
)
