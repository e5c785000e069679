"""Known mistakes of lesson 07: a prediction with its attention.

None of them listens to the model's parts: each computes the stages from the model's parameters, and then goes wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.config import ViTConfig
from vit_course.exercises.checks.inside_prediction import attention_of, predict_with_attention
from vit_course.exercises.checks.vit import classified, embedded, logits_of, normed

HEARD = "07_inside, A model that nobody built to be asked"
MAP = "07_inside, From a row of weights to a map"
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


@predict_with_attention.misconception("Is dropout on or off when you ask?", HEARD)
def asked_in_training_mode(model: Any, image: Tensor) -> Pair:
    """The model is asked in whatever mode it came, so dropout takes part in the answer."""
    if not model.training:
        return _right(model, image)
    weights, config = _weights(model), _config(model, image)
    x = embedded(weights, image[None], config)  # in training mode the model's blocks add nothing
    probabilities = F.softmax(classified(weights, normed(weights, "norm", x, config)[:, 0])[0], dim=0)
    last = f"blocks.{config.depth - 1}."
    as_first = {name.replace(last, "blocks.0."): each for name, each in weights.items() if last in name}
    return probabilities, _map(attention_of({**weights, **as_first}, image, config, 0)[:, 0].mean(0), model, image)


@predict_with_attention.misconception(
    "Who puts the model back into the mode in which it came?", HEARD, InTraining.HIDDEN
)
def left_in_evaluation_mode(model: Any, image: Tensor) -> Pair:
    """The model is put into evaluation mode and left there, so that a training that goes on has no dropout any more."""
    model.eval()
    return _right(model, image)


@predict_with_attention.misconception("Was the model training when it came?", HEARD)
def always_put_into_training_mode(model: Any, image: Tensor) -> Pair:
    """In the end the model is put into training mode, whether it came so or not."""
    model.train()
    return _right(model, image)


@predict_with_attention.misconception("Will anybody ask for a gradient of this answer?", HEARD)
def gradient_kept(model: Any, image: Tensor) -> Pair:
    """The answer is computed with gradients, so all that it was made of stays in memory."""
    probabilities, seen = _right(model, image)
    nothing = 0 * model.head.bias.sum()
    return probabilities + nothing, seen + nothing


@predict_with_attention.misconception("What did the registration of the hook give you back?", HEARD)
def hook_left_behind(model: Any, image: Tensor) -> Pair:
    """The hook is never removed, so the model goes on telling somebody who no longer listens."""
    model.blocks[-1].attention.register_forward_hook(lambda *_: None)
    return _right(model, image)


@predict_with_attention.misconception("Does a question change the one who is asked?", HEARD, InTraining.STOPS)
def parameters_frozen(model: Any, image: Tensor) -> Pair:
    """The parameters are told to want no gradient, and will not learn any more afterwards."""
    model.requires_grad_(False)
    return _right(model, image)


@predict_with_attention.misconception("How long should torch do without gradients?", HEARD, InTraining.STOPS)
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


@predict_with_attention.misconception("How many heads looked, and does each count?", MAP)
def first_head_only(model: Any, image: Tensor) -> Pair:
    """The map is that of head 0 alone."""
    return _probabilities(model, image), _map(_attention(model, image)[0, 0], model, image)


@predict_with_attention.misconception("Is the loudest head the whole layer?", MAP)
def strongest_head_only(model: Any, image: Tensor) -> Pair:
    """Each patch gets the largest weight of all heads where their mean is asked for."""
    return _probabilities(model, image), _map(_attention(model, image)[:, 0].amax(0), model, image)


@predict_with_attention.misconception("Rows are queries. Who asks here?", MAP)
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
    """The last token is cut off in place of the first, so that the class token sits on the map, top left."""
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


@predict_with_attention.misconception("Where is the model, and where does your code take the image?", HEARD)
def image_taken_to_the_cpu(model: Any, image: Tensor) -> Pair:
    """The image is taken to the CPU, and a model that is on a GPU cannot read it there."""
    return _right(model, image.cpu())
