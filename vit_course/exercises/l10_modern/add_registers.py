"""`add_registers`: tokens that belong to no place, between the class token and the patches.

The oracle writes into an empty tensor. The known mistakes concatenate.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_input_gradients, expect_left_alone
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify.patchify.claims import on_the_cpu
from vit_course.exercises.l10_modern import LESSON

AXES = ("image", "token", "dimension")
LOOK = "Write down which token stands at which index before and after the call."

add_registers = Exercise("add_registers", LESSON, in_training=InTraining.HIDDEN)


def with_registers(tokens: Tensor, registers: Tensor) -> Tensor:
    """The oracle."""
    batch, count, embed_dim = tokens.shape
    result = tokens.new_empty(batch, count + registers.shape[1], embed_dim)
    behind = 1 + registers.shape[1]
    result[:, 0], result[:, 1:behind], result[:, behind:] = tokens[:, 0], registers[0], tokens[:, 1:]
    return result


def drawn(probe: Probe, batch: int = 3, num_patches: int = 6, num_registers: int = 4, embed_dim: int = 5) -> tuple[
    Tensor, Tensor
]:  # fmt: skip
    """Tokens and registers, all of order 1."""
    return probe.normal(batch, 1 + num_patches, embed_dim), probe.normal(1, num_registers, embed_dim)


@add_registers.check(guard=True)
def there_are_so_many_more_tokens(student: Student, probe: Probe) -> None:
    """There are num_registers more tokens than before, in every image."""
    for sizes in ((3, 6, 4, 5), (1, 2, 1, 3), (4, 3, 6, 2)):
        tokens, registers = drawn(probe, *sizes)
        wanted = with_registers(tokens, registers).shape
        expect_tensor(student(tokens, registers), wanted, f"add_registers of tokens {tuple(tokens.shape)}")


@add_registers.check(needs=there_are_so_many_more_tokens)
def the_class_token_stays_first(student: Student, probe: Probe) -> None:
    """The class token is still at index 0, where the head looks for it."""
    expect_class_token(student, *drawn(probe))


def expect_class_token(student: Student, tokens: Tensor, registers: Tensor) -> None:
    """Fail unless token 0 is the class token in every image."""
    wanted = with_registers(tokens, registers)
    found = expect_tensor(student(tokens, registers), wanted.shape, "what add_registers gives")
    if not close(found[:, 0], tokens[:, 0].to(found.dtype)):
        kinds = {"a register": registers[0], "a patch": tokens[0, 1:]}
        here = [name for name, each in kinds.items() if any(close(found[0, 0], one) for one in each.to(found.dtype))]
        seen = f"token 0 is {here[0] if here else 'neither the class token, nor a register, nor a patch'}"
        raise Failure(seen, "the class token", "Which token does the head read?")


@add_registers.check(needs=there_are_so_many_more_tokens)
def registers_come_behind_it_and_patches_last(student: Student, probe: Probe) -> None:
    """After it come the registers and then the patches, each in its order, in every image."""
    for sizes in ((3, 6, 4, 5), (4, 4, 4, 4), (1, 2, 1, 3)):
        tokens, registers = drawn(probe, *sizes)
        name = f"add_registers of tokens {tuple(tokens.shape)} and registers {tuple(registers.shape)}"
        expect_equal(student(tokens, registers), with_registers(tokens, registers), name, AXES, look=LOOK)


@add_registers.check(needs=registers_come_behind_it_and_patches_last)
def everything_can_be_learned(student: Student, probe: Probe) -> None:
    """Tokens and registers get their gradients; a register gets the sum of those from all images."""
    expect_input_gradients(student, drawn(probe), ("tokens", "registers"), with_registers, AXES)


@add_registers.check(needs=registers_come_behind_it_and_patches_last, worth=0.5)
def tokens_keep_their_dtype(student: Student, probe: Probe) -> None:
    """Tokens of float64 stay in float64."""
    inputs = tuple(each.double() for each in drawn(probe))
    expect_equal(student(*inputs), with_registers(*inputs), "add_registers of double tokens", AXES, look=LOOK)


@add_registers.check(needs=there_are_so_many_more_tokens, worth=0.5, guard=True)
def what_went_in_is_left_alone(student: Student, probe: Probe) -> None:
    """The tokens and registers that go in are not changed."""
    student(*drawn(probe))
    expect_left_alone(student)


@add_registers.check(needs=there_are_so_many_more_tokens, worth=0.5, guard=True)
def it_computes_where_the_tokens_are(student: Student, probe: Probe) -> None:
    """The result is on the device of the tokens."""
    expect_device_of_input(student, *drawn(probe))


add_registers.example("""
>>> tokens = torch.tensor([[[1.0], [2.0], [3.0]]])  # a class token and two patches
>>> add_registers(tokens, torch.tensor([[[8.0], [9.0]]])).flatten().tolist()
[1.0, 8.0, 9.0, 2.0, 3.0]
""")


REGISTERS = "10_modern, Tokens without a place"


def _parts(tokens: Tensor, registers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Class token, registers for every image, patches."""
    first, patches = tokens.tensor_split((1,), dim=1)
    return first, registers.repeat(tokens.shape[0], 1, 1), patches


@add_registers.misconception("Which token does the head read, and where is it now?", REGISTERS)
def registers_first(tokens: Tensor, registers: Tensor) -> Tensor:
    """The registers stand in front of the class token, so the head reads a register."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([ours, first, patches])


@add_registers.misconception("Between which two kinds of token do the registers belong?", REGISTERS)
def registers_last(tokens: Tensor, registers: Tensor) -> Tensor:
    """The registers come after the patches."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([first, patches, ours])


@add_registers.misconception("How many tokens were there before, and how many are there now?", REGISTERS)
def registers_in_place_of_patches(tokens: Tensor, registers: Tensor) -> Tensor:
    """The registers take the places of the first patches, which are lost."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([first, ours, patches[:, ours.shape[1] :]])


@add_registers.misconception("How many tokens were there before, and how many are there now?", REGISTERS)
def registers_added_to_the_patches(tokens: Tensor, registers: Tensor) -> Tensor:
    """The mean of the registers is added to every patch, and no new token is made."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([first, patches + ours.mean(dim=1, keepdim=True)])


@add_registers.misconception("Where in your result is the class token?", REGISTERS)
def class_token_lost(tokens: Tensor, registers: Tensor) -> Tensor:
    """The class token is cut off and never put back."""
    _, ours, patches = _parts(tokens, registers)
    return torch.hstack([ours, patches])


@add_registers.misconception("Which image gets the registers?", REGISTERS)
def registers_for_the_first_image_only(tokens: Tensor, registers: Tensor) -> Tensor:
    """Only the first image has the registers; the others have zeros there."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([first, torch.cat([ours[:1], torch.zeros_like(ours[1:])]), patches])


@add_registers.misconception("Are the registers of your result all different?", REGISTERS)
def one_register_for_all(tokens: Tensor, registers: Tensor) -> Tensor:
    """The first register is repeated, and the others are never used."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([first, ours[:, :1].expand_as(ours), patches])


@add_registers.misconception("Which numbers are in the registers of your result?", REGISTERS)
def registers_of_zeros(tokens: Tensor, registers: Tensor) -> Tensor:
    """Zeros stand where the registers belong, so nothing can be learned in them."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([first, torch.zeros_like(ours), patches])


@add_registers.misconception("In which order do the patches come out?", REGISTERS)
def patches_in_front_of_the_class_token(tokens: Tensor, registers: Tensor) -> Tensor:
    """The patches come first, then the registers, and the class token last."""
    first, ours, patches = _parts(tokens, registers)
    return torch.hstack([patches, ours, first])


@add_registers.misconception("Can a gradient flow from your result back to the registers?", REGISTERS)
def registers_cut_from_their_gradient(tokens: Tensor, registers: Tensor) -> Tensor:
    """The registers are copied as bare numbers, so they can never learn."""
    return with_registers(tokens, registers.detach())


@add_registers.misconception("Can a gradient flow from your result back to the tokens?", REGISTERS, InTraining.WORSE)
def tokens_cut_from_their_gradient(tokens: Tensor, registers: Tensor) -> Tensor:
    """The tokens are copied as bare numbers, so the layers before them can never learn."""
    return with_registers(tokens.detach(), registers)


@add_registers.misconception("Along which axis do the tokens of one image lie?", REGISTERS, InTraining.STOPS)
def registers_joined_to_the_batch(tokens: Tensor, registers: Tensor) -> Tensor:
    """The registers are concatenated along the batch, as if they were more images."""
    length = min(tokens.shape[1], registers.shape[1])
    return torch.cat([tokens[:, :length], registers[:, :length]], dim=0)


@add_registers.misconception("Which dtype does your new tensor get, and which had the tokens?", REGISTERS)
def always_float32(tokens: Tensor, registers: Tensor) -> Tensor:
    """The result is float32, whatever the dtype of the tokens."""
    return with_registers(tokens, registers).float()


@add_registers.misconception("Whose tensor is the one that you write into?", REGISTERS)
def tokens_changed_in_place(tokens: Tensor, registers: Tensor) -> Tensor:
    """A register is written into the given tokens, where it replaces a patch."""
    result = with_registers(tokens, registers)
    tokens.data[:, 1] = registers.data[:, 0]
    return result


@add_registers.misconception(
    "On which device does your new tensor lie, and on which the tokens?", REGISTERS, InTraining.STOPS
)
def made_on_the_cpu(tokens: Tensor, registers: Tensor) -> Tensor:
    """The result is put together in a new tensor on the CPU, wherever the tokens are."""
    return on_the_cpu(with_registers(tokens, registers))
