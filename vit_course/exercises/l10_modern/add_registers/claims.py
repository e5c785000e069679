"""`add_registers`: tokens that belong to no place, between the class token and the patches.

The oracle writes into an empty tensor.
"""

from __future__ import annotations

from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor, format_shape
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_input_gradients, expect_inputs_unchanged
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l10_modern import LESSON

AXES = ("image", "token", "dimension")
LOOK = "Write down which token stands at which index before and after the call."

add_registers = Exercise("add_registers", LESSON, in_training=InTraining.HIDDEN)


def compute_expected_tokens(tokens: Tensor, registers: Tensor) -> Tensor:
    """The oracle."""
    batch, count, embed_dim = tokens.shape
    result = tokens.new_empty(batch, count + registers.shape[1], embed_dim)
    behind = 1 + registers.shape[1]
    result[:, 0], result[:, 1:behind], result[:, behind:] = tokens[:, 0], registers[0], tokens[:, 1:]
    return result


def draw_tokens_and_registers(
    probe: Probe, batch: int, num_patches: int, num_registers: int, embed_dim: int
) -> tuple[Tensor, Tensor]:
    """Tokens and registers, all of order 1."""
    return probe.normal(batch, 1 + num_patches, embed_dim), probe.normal(1, num_registers, embed_dim)


def draw_inputs(probe: Probe) -> tuple[Tensor, Tensor]:
    """Tokens and registers of sizes that grading draws."""
    return draw_tokens_and_registers(probe, *probe.sizes(4, shown=(3, 6, 4, 5)))


@add_registers.check(guard=True)
def there_are_so_many_more_tokens(student: Student, probe: Probe) -> None:
    """There are num_registers more tokens than before, in every image."""
    for sizes in ((3, 6, 4, 5), (1, 2, 1, 3), (4, 3, 6, 2)):
        tokens, registers = draw_tokens_and_registers(probe, *sizes)
        wanted = compute_expected_tokens(tokens, registers).shape
        expect_tensor(student(tokens, registers), wanted, f"add_registers of tokens {tuple(tokens.shape)}")


@add_registers.check(needs=there_are_so_many_more_tokens, points=0.2)
def the_class_token_stays_first(student: Student, probe: Probe) -> None:
    """The class token is still at index 0, where the head looks for it."""
    tokens, registers = draw_inputs(probe)
    wanted = compute_expected_tokens(tokens, registers)
    found = expect_tensor(student(tokens, registers), wanted.shape, "what add_registers gives")
    if not are_close(found[:, 0], tokens[:, 0].to(found.dtype)):
        kinds = {"a register": registers[0], "a patch": tokens[0, 1:]}
        here = [
            name for name, each in kinds.items() if any(are_close(found[0, 0], one) for one in each.to(found.dtype))
        ]
        seen = f"token 0 is {here[0] if here else 'neither the class token, nor a register, nor a patch'}"
        raise Failure(seen, "the class token", "Which token does the head read?")


@add_registers.check(needs=there_are_so_many_more_tokens, points=0.87)
def registers_come_behind_it_and_patches_last(student: Student, probe: Probe) -> None:
    """After it come the registers and then the patches, each in its order, in every image."""
    batch, patches, registers = probe.sizes(3, low=3, shown=(3, 6, 4))
    for sizes in (
        (batch, patches, registers, 2),
        (1, patches, 1, 3),
        (batch, 1, registers, 1),
        (batch,) * 4,
        (1, patches, 1, 3),
    ):
        _expect_right_tokens(student, *draw_tokens_and_registers(probe, *sizes))


def _expect_right_tokens(student: Student, tokens: Tensor, registers: Tensor, kind: str = "tokens") -> None:
    name = f"add_registers of {kind} {format_shape(tokens)} and registers {format_shape(registers)}"
    expect_equal(student(tokens, registers), compute_expected_tokens(tokens, registers), name, AXES, look=LOOK)


@add_registers.check(needs=registers_come_behind_it_and_patches_last, points=0.68)
def everything_can_be_learned(student: Student, probe: Probe) -> None:
    """Tokens and registers get their gradients; a register gets the sum of those from all images."""
    expect_input_gradients(student, draw_inputs(probe), ("tokens", "registers"), compute_expected_tokens, AXES)


@add_registers.check(needs=registers_come_behind_it_and_patches_last, worth=0.5, points=0.1)
def dtype_and_layout_do_not_matter(student: Student, probe: Probe) -> None:
    """Tokens of float64 stay in float64, and any memory layout will do."""
    tokens, registers = draw_inputs(probe)
    _expect_right_tokens(student, tokens.double(), registers.double(), "double tokens")
    _expect_right_tokens(student, probe.normal(*reversed(tokens.shape)).permute(2, 1, 0), registers)


@add_registers.check(needs=there_are_so_many_more_tokens, worth=0.5, guard=True)
def what_went_in_is_left_alone(student: Student, probe: Probe) -> None:
    """The tokens and registers that go in are not changed."""
    student(*draw_inputs(probe))
    expect_inputs_unchanged(student)


@add_registers.check(
    needs=registers_come_behind_it_and_patches_last,
    worth=0.5,
    guard=True,
    points=0.05,
    first=registers_come_behind_it_and_patches_last,
)
def it_computes_where_the_tokens_are(student: Student, probe: Probe) -> None:
    """The result is on the device of the tokens."""
    expect_device_of_input(student, *draw_inputs(probe))


add_registers.example(
    """
>>> tokens = torch.tensor([[[1.0], [2.0], [3.0]]])  # a class token and two patches
>>> add_registers(tokens, torch.tensor([[[8.0], [9.0]]])).flatten().tolist()
[1.0, 8.0, 9.0, 2.0, 3.0]
""",
    points=0.05,
    first=registers_come_behind_it_and_patches_last,
)


read_mistakes(add_registers, __name__)
