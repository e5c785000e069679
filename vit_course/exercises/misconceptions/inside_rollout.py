"""Known mistakes of lesson 07: attention rollout. Each follows all paths through the layers, and goes wrong before."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vit_course.exercises.checks.inside_rollout import attention_rollout, followed, half_itself, right_rollout

ROLLOUT = "07_inside, All layers at once"


def _itself(layer: Tensor) -> Tensor:
    return torch.eye(layer.shape[-1], dtype=layer.dtype).expand(len(layer), -1, -1)


def _layers(weights: Sequence[Tensor]) -> Sequence[Tensor]:
    """The same; ValueError where there are none, which is another mistake than those below."""
    if len(weights) == 0:
        raise ValueError("no layer")
    return weights


def _shared_out(step: Tensor) -> Tensor:
    return torch.nn.functional.normalize(step, p=1.0, dim=-1)


@attention_rollout.misconception("What does a block add its attention to?", ROLLOUT)
def identity_forgotten(weights: Sequence[Tensor]) -> Tensor:
    """The mean attention of the layers is multiplied as it is, as if no residual stream carried the token itself on."""
    return followed([layer.mean(1) for layer in _layers(weights)])


@attention_rollout.misconception("What does a row sum to once the token itself has been added?", ROLLOUT)
def rows_not_shared_out_again(weights: Sequence[Tensor]) -> Tensor:
    """The identity is added and the rows, which sum to 2 now, are left so, which doubles everything in each layer."""
    return followed([layer.mean(1) + _itself(layer) for layer in _layers(weights)])


@attention_rollout.misconception("Which layer speaks last, and on which side of the product does it stand?", ROLLOUT)
def earlier_layers_on_the_left(weights: Sequence[Tensor]) -> Tensor:
    """The product runs the wrong way round, as if the last layer came first."""
    return followed([half_itself(layer) for layer in reversed(_layers(weights))])


@attention_rollout.misconception("Is the loudest head the whole layer?", ROLLOUT)
def strongest_head_only(weights: Sequence[Tensor]) -> Tensor:
    """The largest weight of all heads is taken where their mean is asked for."""
    return followed([_shared_out(layer.amax(1) + _itself(layer)) for layer in _layers(weights)])


@attention_rollout.misconception("How much does the token itself weigh beside the heads of its layer?", ROLLOUT)
def heads_summed(weights: Sequence[Tensor]) -> Tensor:
    """The heads are summed where their mean is asked for, so the token itself counts no more than one head."""
    return followed([_shared_out(layer.sum(1) + _itself(layer)) for layer in _layers(weights)])


@attention_rollout.misconception("Do two layers stand side by side, or does one read what the other wrote?", ROLLOUT)
def layers_averaged(weights: Sequence[Tensor]) -> Tensor:
    """The layers' tables are averaged, but each layer reads what the one before it has mixed."""
    return torch.stack([half_itself(layer) for layer in _layers(weights)]).mean(0)


@attention_rollout.misconception("Who mixed the tokens that the last layer looks at?", ROLLOUT)
def last_layer_only(weights: Sequence[Tensor]) -> Tensor:
    """The last layer alone is looked at."""
    return half_itself(_layers(weights)[-1])


@attention_rollout.misconception("Which of Python's operators multiplies tables row by column?", ROLLOUT)
def multiplied_place_by_place(weights: Sequence[Tensor]) -> Tensor:
    """The layers' tables are multiplied number by number; mixing what was mixed is a product of matrices."""
    return torch.stack([half_itself(layer) for layer in _layers(weights)]).prod(0)


@attention_rollout.misconception("How many residuals does the stream pass on its way through the model?", ROLLOUT)
def identity_once_at_the_end(weights: Sequence[Tensor]) -> Tensor:
    """The identity is added once, to the product; every layer has a residual of its own."""
    return torch.lerp(_itself(_layers(weights)[0]), followed([layer.mean(1) for layer in _layers(weights)]), 0.5)


@attention_rollout.misconception("Is the first layer a layer like the others?", ROLLOUT)
def first_layer_without_itself(weights: Sequence[Tensor]) -> Tensor:
    """The first layer starts the product as it is; only the later ones get their identity."""
    return followed([_layers(weights)[0].mean(1), *map(half_itself, weights[1:])])


@attention_rollout.misconception(
    "Who shares out its attention, the token in the row or the one in the column?", ROLLOUT
)
def columns_sum_to_one(weights: Sequence[Tensor]) -> Tensor:
    """The columns are made to sum to 1 in each layer, but the rows are what a token is made of."""
    return followed([_shared_out((layer.mean(1) + _itself(layer)).mT).mT for layer in _layers(weights)])


@attention_rollout.misconception("What are the four axes of the weights, and which of them are heads?", ROLLOUT)
def averaged_over_the_images(weights: Sequence[Tensor]) -> Tensor:
    """The mean runs over the images and the heads are kept; it should run over the heads."""
    return followed([half_itself(layer.transpose(0, 1)) for layer in _layers(weights)])


@attention_rollout.misconception("How many images came in, and how many went out?", ROLLOUT)
def first_image_only(weights: Sequence[Tensor]) -> Tensor:
    """The answer is that of the first image, and the batch axis is gone."""
    return right_rollout(_layers(weights))[0]


@attention_rollout.misconception("Does `+=` make a new tensor?", ROLLOUT)
def written_into_the_weights(weights: Sequence[Tensor]) -> Tensor:
    """The identity is added to the caller's weights in place."""
    rollout = right_rollout(_layers(weights))
    for layer in weights:
        layer += torch.eye(layer.shape[-1], dtype=layer.dtype)
    return rollout


@attention_rollout.misconception("Which dtype, and which device, does a table of ones have that nobody told?", ROLLOUT)
def identity_of_another_dtype(weights: Sequence[Tensor]) -> Tensor:
    """The identity is made in float32 whatever the weights are, so that half precision is lost on the way."""
    return right_rollout(_layers(weights)) * torch.ones(1)


@attention_rollout.misconception("What can be said about a model without a layer?", ROLLOUT)
def no_layer_left_to_python(weights: Sequence[Tensor]) -> Tensor:
    """Nothing is tested, so an empty list ends in an IndexError that does not say what is wrong."""
    rollout = weights[0]
    return right_rollout(weights).to(rollout.dtype)


@attention_rollout.misconception("On which device is a table of ones that nobody has sent anywhere?", ROLLOUT)
def identity_on_the_cpu(weights: Sequence[Tensor]) -> Tensor:
    """The identity is made on the CPU, wherever the weights are, and on a GPU the two cannot be added."""
    tables = [(layer.mean(1) + torch.eye(layer.shape[-1], dtype=layer.dtype)) / 2 for layer in _layers(weights)]
    return followed(tables)


@attention_rollout.misconception("Which axes does squeeze() drop when there is one image?", ROLLOUT)
def batch_of_one_squeezed(weights: Sequence[Tensor]) -> Tensor:
    """squeeze() drops every axis of size 1, and with a single image the batch is one."""
    return right_rollout(_layers(weights)).squeeze(0)
