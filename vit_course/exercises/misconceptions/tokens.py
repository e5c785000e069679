"""Known mistakes of lesson 02, second part: the class token."""

from __future__ import annotations

import torch
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.tokens import add_class_token, with_class_token
from vit_course.exercises.misconceptions.patches import on_the_cpu

CLASS = "02_positions, A token that belongs to no patch"


def _count(tokens: Tensor, positions: Tensor) -> None:
    if positions.shape[1] != tokens.shape[1] + 1:
        raise ValueError(f"{positions.shape[1]} rows of positions for 1 + {tokens.shape[1]} tokens")


def _without_positions(tokens: Tensor, class_token: Tensor) -> Tensor:
    """The class token in front of each image's tokens."""
    return with_class_token(tokens, class_token, tokens.new_zeros(1, tokens.shape[1] + 1, tokens.shape[2]))


@add_class_token.misconception("Which index will the model read at the end?", CLASS)
def class_token_last(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token stands behind the patches, where nobody will look for it."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token).roll(-1, dims=1) + positions


@add_class_token.misconception("How many images are in tokens, and how many in class_token?", CLASS)
def class_token_not_expanded(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """One class token is concatenated with a whole batch, which torch refuses unless the batch has one image."""
    _count(tokens, positions)
    if len(tokens) > 1:
        torch.cat([class_token, tokens], dim=1)  # raises
    return with_class_token(tokens, class_token, positions)


@add_class_token.misconception("Which images have a class token now?", CLASS)
def class_token_for_the_first_image_only(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The first image gets the class token, and all others get zeros."""
    _count(tokens, positions)
    joined = _without_positions(tokens, class_token)
    joined[1:, 0] = 0
    return joined + positions


@add_class_token.misconception("Which of the three inputs have you not used?", CLASS)
def a_class_token_of_zeros(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """A new token of zeros is put in front, and the one that was given is not used."""
    _count(tokens, positions)
    return _without_positions(tokens, torch.zeros_like(class_token)) + positions


@add_class_token.misconception("Is the class token a token of its own, or a part of the others?", CLASS)
def class_token_added_to_the_patches(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is added to every patch, and no token joins them."""
    _count(tokens, positions)
    return torch.stack([torch.stack([patch + class_token[0, 0] for patch in image]) for image in tokens])


@add_class_token.misconception("Does the class token get a position too?", CLASS)
def positions_before_the_class_token(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions go to the patches before the class token joins, which is left without one."""
    _count(tokens, positions)
    result = with_class_token(tokens, class_token, positions)
    result[:, 0] = class_token[:, 0]
    return result


@add_class_token.misconception("Whose position is row 0?", CLASS)
def positions_one_row_off(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The patches get rows 0, 1, 2 and so on, though row 0 belongs to the class token."""
    _count(tokens, positions)
    result = with_class_token(tokens, class_token, positions.roll(1, dims=1))
    result[:, 0] = class_token[:, 0]
    return result


@add_class_token.misconception("How many rows of positions do you add, and to how many tokens?", CLASS)
def one_position_for_all(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Row 0 of positions is added to every token, so all of them stand in the same place."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token) + positions[:, :1]


@add_class_token.misconception("Which of the three inputs have you not used?", CLASS)
def positions_forgotten(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token joins the patches, and no position is added."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token)


@add_class_token.misconception("With which operation do positions join the tokens?", CLASS)
def positions_multiplied(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The tokens are multiplied by their positions."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token) * positions


@add_class_token.misconception("How long should a token be afterwards?", CLASS)
def positions_concatenated(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are put beside the tokens, which makes every token twice as long."""
    _count(tokens, positions)
    joined = _without_positions(tokens, class_token)
    return torch.cat([joined, positions.expand(joined.shape)], dim=2)


@add_class_token.misconception("Along which axis do the tokens of one image lie?", CLASS)
def class_token_joined_to_the_batch(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is concatenated along the batch, as if it were one more image."""
    _count(tokens, positions)
    return torch.cat([class_token, tokens], dim=0)


@add_class_token.misconception("How many tokens are there when you add, and how many rows of positions?", CLASS)
def positions_added_too_early(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """All rows of positions are added to the patches alone, before the class token joins, and one row is left over."""
    _count(tokens, positions)
    return tokens + positions


@add_class_token.misconception("Does the class token in your result still know its parameter?", CLASS)
def class_token_cut_from_its_gradient(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is copied as bare numbers, so it can never learn."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token.detach(), positions)


@add_class_token.misconception("Does the table in your result still know its parameter?", CLASS)
def positions_cut_from_their_gradient(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are copied as bare numbers, so they can never learn."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token, positions.detach())


@add_class_token.misconception("Which dtype does your new tensor get, and which had the tokens?", CLASS)
def tokens_as_float32(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The result is written into a new float32 tensor, whatever the dtype of the tokens."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token, positions).float()


@add_class_token.misconception("Is the tensor that you add to yours, or the caller's?", CLASS)
def tokens_changed_in_place(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are added into the tokens that were given, so the caller's tokens are spoilt."""
    _count(tokens, positions)
    result = with_class_token(tokens, class_token, positions)
    tokens.data.add_(positions.data[:, 1:])
    return result


@add_class_token.misconception("What does broadcasting make of a table with a single row?", CLASS)
def positions_never_counted(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Nothing counts the rows of positions, and a single row is spread over all tokens in silence."""
    rows = torch.broadcast_shapes((tokens.shape[1] + 1,), (positions.shape[1],))[0]
    return with_class_token(tokens, class_token, positions.expand(1, rows, -1))


@add_class_token.misconception(
    "On which device does your new tensor lie, and on which the tokens?", CLASS, InTraining.UNSEEN
)
def tensor_made_on_the_cpu(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The result is put together in a new tensor on the CPU, wherever the tokens are."""
    _count(tokens, positions)
    return on_the_cpu(_without_positions(tokens, class_token) + positions)


@add_class_token.misconception("How many axes has a batch of one image?", CLASS, InTraining.UNSEEN)
def batch_of_one_squeezed(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image is a batch no more."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token, positions).squeeze()


@add_class_token.misconception("Do the tokens in your result still know where they came from?", CLASS, InTraining.WORSE)
def tokens_cut_from_their_gradient(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The tokens are copied as bare numbers, so the patch embedding in front of them can never learn."""
    _count(tokens, positions)
    return with_class_token(tokens.detach(), class_token, positions)


@add_class_token.misconception(
    "What becomes of a table that has more rows than there are tokens?", CLASS, InTraining.UNSEEN
)
def surplus_positions_cut_off(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """As many rows of positions are taken as there are tokens, and any others are dropped in silence."""
    needed = tokens.shape[1] + 1
    if positions.shape[1] < needed:
        raise ValueError(f"{positions.shape[1]} rows of positions for {needed} tokens")
    return with_class_token(tokens, class_token, positions[:, :needed])
