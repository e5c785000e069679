"""What checks of many exercises expect, each claim once; and where a module goes wrong, part by part."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import (
    Describe,
    are_close,
    expect_equal,
    expect_tensor,
    find_first_difference,
    get_tolerance,
)
from exercise_kit.engine.errors import find_invariant_text
from exercise_kit.engine.records import iterate_tensors
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Undecided
from exercise_kit.quoting import quote_first_line
from exercise_kit.reasons import Reason
from exercise_kit.worker.observe import draw_cotangent, sum_weighted

if TYPE_CHECKING:
    from exercise_kit.engine.exercise import CheckFunction
    from exercise_kit.engine.probes import Probe
    from exercise_kit.engine.student import StudentModule


def expect_gradients_of_inputs(
    actual: Sequence[Tensor | None], expected: Sequence[Tensor | None], names: Sequence[str], axes: Sequence[str] = ()
) -> None:
    """Fail unless every input has the gradient that it has in a right answer, up to rounding of the largest.

    Args:
        actual: the gradients that the student's code gives, as ``input_gradients`` has them.
        expected: those of a right answer; None for an input that has none.
        names: of the inputs.
        axes: a name for every axis of the inputs.
    """
    look = "Which line leaves torch's graph: detach, .data, .item(), no_grad, a detour through numpy or torch.tensor?"
    for gradient, right, name in zip(actual, expected, names, strict=True):
        if right is None:
            continue
        if gradient is None:
            raise Failure(f"no gradient reaches {name}", "one for every number in it", look)
        scale = max(1.0, float(right.abs().max()))
        follows = f"Is the result itself right? If it is: {look[0].lower()}{look[1:]}"  # other numbers, other gradients
        expect_equal(gradient / scale, right / scale, f"the gradient of {name}", axes, look=follows)


def compute_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The gradient that ``input_gradients`` would find for ``x``, of an oracle."""
    leaf = x.detach().clone().requires_grad_()
    output = function(leaf)
    return torch.autograd.grad(sum_weighted(output, draw_cotangent(output)), leaf)[0]


def expect_same_twice(student: Student, run: Callable[[], Any], *shape: int) -> None:
    """Fail when two runs of the student's code on the same input differ, whatever the numbers are.

    Args:
        student: whose code runs.
        run: runs it and gives its tensor.
        shape: of that tensor.
    """
    first, second = (expect_tensor(run(), shape, f"the result of {student.name}") for _ in range(2))
    same = are_close(first, second)
    # the numbers themselves would be others for every place that a dropout can have
    student.note_only(("same twice", same))
    if not same:
        look = "Which line of yours draws random numbers, and who asked for it?"
        raise Failure("the same input gives two different results", "one and the same", look)


def expect_inputs_unchanged(student: Student) -> None:
    """Fail when a call has changed one of its input tensors, or has given no tensor, so that nothing was done."""
    answered = any(True for _ in iterate_tensors(student.record[-1:]))
    student.note(("changed inputs", tuple(student.changed_inputs)))
    if student.changed_inputs:
        raise Failure(
            f"{student.name} changed its input of shape {student.changed_inputs[0]}",
            "the same numbers in it after the call as before",
            "Which operation works in place: `+=`, a name that ends in an underscore, an assignment into a slice?",
            Reason.CHANGED,
        )
    if not answered:
        seen = f"{student.name} gave no tensor, so this check cannot see whether it leaves its input unchanged"
        look = "What does your `return` line give back?"
        raise Failure(seen, "an answer, made without a change to the input", look, Reason.KIND)


def expect_independent_results(student: Student, inputs: Sequence[Any], others: Sequence[Any]) -> None:
    """Fail when a later call changes an earlier result, or when writing into a result changes later results.

    Args:
        student: whose first function is called with ``inputs``, with ``others``, and with ``inputs`` again.
        inputs: tensors and plain values, for which the function gives right tensors.
        others: of the same kinds; best of the same shapes.
    """
    notes = student.run_fixture("in_a_row", inputs=tuple(inputs), others=tuple(others))
    first, kept, again = (list(iterate_tensors(notes[name])) for name in ("first", "kept", "again"))
    settings = tuple(map(str, notes["settings"]))
    student.note_instead(
        ("results of their own", _have_same_numbers(first, kept), _have_same_numbers(first, again), settings)
    )
    if settings:
        seen, look = f"a call of {student.name} changed {settings[0]}", "Which line sets something for good?"
        raise Failure(seen, "torch's settings as they were before the call", look)
    wanted, look = "a result of its own for every call", "Which tensor of yours outlives the call that made it?"
    if not _have_same_numbers(first, kept):
        raise Failure(f"the first result of {student.name} changed while it was called once more", wanted, look)
    if not _have_same_numbers(first, again):
        seen = f"after the caller wrote into the first result, {student.name} gave another one for the same input"
        raise Failure(seen, wanted, look)


def expect_modes_kept(student: Student, arguments: Sequence[Any], *inputs: Any) -> None:
    """Fail when the forward of a module puts itself or one of its parts into training or evaluation mode.

    Args:
        student: whose first class is built, with ``arguments``.
        arguments: of the class.
        inputs: of forward.
    """
    changed = student.run_fixture("modes", arguments=tuple(arguments), inputs=inputs)["changed"]
    student.note_instead(("modes changed by forward", bool(changed)))
    if changed:
        seen = f"forward changes the mode of {f'`{changed[0]}`' if changed[0] else 'the module itself'}"
        look = "Who decides whether a model trains: its forward, or the loop around it?"
        raise Failure(seen, "every part in training or evaluation, as the caller has put it", look)


def _have_same_numbers(first: Sequence[Tensor], second: Sequence[Tensor]) -> bool:
    same_shapes = [each.shape for each in first] == [each.shape for each in second]
    return same_shapes and all(map(are_close, first, second))


def expect_device_of_input(
    student: Student,
    *inputs: Any,
    arguments: tuple[Any, ...] | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Fail when the student's code makes a tensor on the CPU where its inputs lie on another device.

    It is called with ``inputs`` on the CPU, and then on torch's meta device, which every machine has and which holds
    no numbers: see :mod:`exercise_kit.engine.training_fixtures`.

    Args:
        student: whose first function is called.
        inputs: tensors, modules, lists of them and plain values.
        arguments: of a class: the module that it makes of them is moved to the device, and called.
        options: by keyword.

    Raises:
        Failure: tensors of two devices met, it raised an exception of its own, or the result is not where the inputs
            are.
        Undecided: the code ended in an exception there since it looks at numbers, on the CPU too.
    """
    if arguments is None:
        student.call(student.name, *inputs)
    else:
        recorded = len(student.record)
        student.build(*arguments)(*inputs, **(options or {}))
        student.forget(len(student.record) - recorded)  # random first weights give everybody other numbers
    fields = {"inputs": inputs, "options": options, "arguments": arguments}
    notes = student.run_fixture("device", **{name: each for name, each in fields.items() if each is not None})
    expect_no_device_mismatch(student, notes)


def expect_no_device_mismatch(student: Student, notes: Mapping[str, Any]) -> None:
    """Fail unless all went well on the other device, by the notes of a training fixture that stand last on record.

    Raises:
        Failure, Undecided: see :func:`expect_device_of_input`.
    """
    mixed, left, raised = notes["mixed"] is True, "cpu" in notes["devices"], notes["raised"]
    stopped = bool(raised and not mixed and notes["read"] is not True)
    student.note_instead(("stopped there",) if stopped else ("on the CPU", mixed or left))
    look = "Which line makes a new tensor, and on which device does it make it?"
    if mixed:
        seen = f"with its input on another device, say a GPU, {student.name} used a tensor that was on the CPU"
        raise Failure(seen, "every tensor on the device of the input", look)
    if stopped:
        seen = f"with its input on another device, say a GPU, {student.name} raised {quote_first_line(raised)}"
        raise Failure(seen, "the same as on the CPU", "Which line asks on which device it is?", Reason.DEVICE)
    if raised:
        raise Undecided(
            f"{student.name} reads numbers of its input, so only a real GPU could show whether it computes there"
        )
    if left:
        seen = f"with its input on another device, say a GPU, {student.name} gave a tensor on the CPU"
        raise Failure(seen, "a result on the device of the input", look)


def expect_input_gradients(
    student: Student,
    inputs: tuple[Any, ...],
    names: Sequence[str],
    reference: Callable[..., Any],
    axes: Sequence[str] = (),
) -> None:
    """Fail unless the gradients that reach the first inputs are those of a right implementation.

    Args:
        student: whose first function is called.
        inputs: as they are given to both; those that are named are float tensors.
        names: of the first inputs, for messages.
        reference: the right implementation.
        axes: a name for every axis of the inputs.
    """
    found = student.input_gradients(*inputs)[: len(names)]
    wanted = Student({"right": reference}).input_gradients(*inputs)[: len(names)]
    expect_gradients_of_inputs(found, wanted, [f"the {name}" for name in names], axes)


def expect_value_error(
    student: Student, inputs: tuple[Any, ...], numbers: Sequence[int], described: str, side: str = ""
) -> None:
    """Fail unless a call raises ValueError with every one of ``numbers`` in its message.

    Args:
        student: whose first function is called with ``inputs``.
        inputs: those that are wrong.
        numbers: that the message has to hold; of one below 0 the digits.
        described: the inputs, for messages.
        side: "height" or "width", where the first number is one: the message may not give it to the other.
    """
    error = student.catch_error(*inputs)
    wanted = f"a ValueError that names {' and '.join(str(number) for number in numbers)}"
    look = "The exercise's text says which error to raise; test for it before you compute."
    if error is None:
        returned = student.record[-1:] == [("returned", "ValueError")]
        did = "returned a ValueError on" if returned else "accepted"
        raise Failure(
            f"{student.name} {did} {described}",
            wanted,
            "What does `raise` do that `return` does not?" if returned else look,
            Reason.ACCEPTED,
        )
    if not error.is_a("ValueError"):
        raise Failure(
            f"{student.name} raised {error}, on {described}", wanted, look, Reason.RAISED, find_invariant_text(error)
        )
    named = set(re.findall(r"\d+", error.words))
    student.note(("numbers named", tuple(str(abs(number)) in named for number in numbers)))
    if missing := [str(number) for number in numbers if str(abs(number)) not in named]:
        text = quote_first_line(error.words) or "no text"
        if error.line and not error.is_raised_by_student:  # Python's or torch's own, about something else
            seen, look = f"{student.name} raised ValueError with {text}, at {error.line}, on {described}", _NOT_MEANT
            raise Failure(seen, wanted, look, Reason.RAISED, find_invariant_text(error))
        lacks = " and ".join(missing)
        others = " and ".join(sorted(named - {str(abs(number)) for number in numbers}, key=int))
        look = f"That message does not say {lacks}. How does an f-string put a number there?"
        if others:
            look = f"That message says {others}, and not {lacks}. Where does each of its numbers come from?"
        raise Failure(f"{student.name} raised ValueError with {text} on {described}", wanted, look, Reason.RAISED)
    if side and _names_wrong_side(error.words, side, numbers[0]):
        seen = f"{student.name} raised ValueError with {quote_first_line(error.words)} on {described}"
        raise Failure(seen, f"{side} {numbers[0]}", "Which of the two sides does not fit?", Reason.RAISED)


def ignore_wrong_numbers(claim: CheckFunction) -> CheckFunction:
    """Make what grading asks ``first`` of a refusal: a claim, or that nothing but the numbers of an answer are wrong.

    So a refusal that was written counts where a formula is wrong. An answer that refuses everything, or that gives one
    and the same number wherever it is asked, does not do the exercise, and earns nothing for it.
    """

    @functools.wraps(claim)
    def ask(student: Student, probe: Probe) -> None:
        try:
            claim(student, probe)
        except Failure as failure:
            computes = any(each.numel() and each.min() < each.max() for each in iterate_tensors(student.record))
            if failure.reason != Reason.DIFFERENT or not computes:
                raise

    return ask


_NOT_MEANT = "That error is about another line. Does your own test come before it?"


def _names_wrong_side(message: str, side: str, number: int) -> bool:
    """Say whether a message says "width 30" where the height is 30, and says nothing of the height."""
    other = {"height": "width", "width": "height"}[side]
    return side not in message.lower() and re.search(rf"\b{other}\W{{0,3}}{number}\b", message.lower()) is not None


RANDOM = "it gives other numbers when it runs again on the same input", "one and the same result in every run"


def make_wrong_part_describer(
    module: StudentModule,
    reference: StudentModule | Mapping[str, Tensor],
    names: Sequence[str],
    *inputs: Any,
    axes: Sequence[str] = (),
    **options: Any,
) -> Describe:
    """A ``describe`` for :func:`~exercise_kit.engine.compare.expect_equal` that says where wrong numbers come from.

    It runs the student's module once more, and only where the numbers are wrong; where that run gives other numbers
    than the first, it says so instead.

    Args:
        module: the student's.
        reference: one with the same parts and the same weights; or what has to enter and leave the parts, as
            :meth:`~exercise_kit.engine.student.StudentModule.parts` gives it, in the order of a right forward.
        names: of the parts, as "norm1".
        inputs: of the forward whose result is wrong.
        axes: names of the axes of what enters and leaves the parts, where they have that many.
        options: of that forward.
    """

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        found = module.parts((*names, ""), *inputs, **options)
        if not found:
            return None
        if has_changed_numbers(found.get(":out"), actual):
            return RANDOM
        wanted = reference if isinstance(reference, Mapping) else reference.parts(names, *inputs, **options)
        last = ""
        for key in wanted:
            there = found.get(key)
            if there is None or there.shape != wanted[key].shape:  # not called, or fed in another layout
                continue
            if not are_close(there, wanted[key]):
                return _describe_first_wrong_part(last, key, there, wanted[key], axes)
            last = key
        return _describe_wrong_result(last, actual, expected, axes) if last else None

    return describe


def has_changed_numbers(second_result: object, first_result: Tensor) -> bool:
    """Say whether a second run has given other numbers than ``first_result``, of the same shape."""
    return (
        isinstance(second_result, Tensor)
        and second_result.shape == first_result.shape
        and not are_close(second_result, first_result)
    )


def _describe_first_wrong_part(
    last: str, key: str, actual: Tensor, correct: Tensor, axes: Sequence[str]
) -> tuple[str, str]:
    before = f"{_describe_part_key(last)} is still right and " if last else ""
    seen, expected = _describe_difference(actual, correct, axes)
    return f"{before}{_describe_part_key(key)} is wrong{'' if last else ' already'}: {seen}", expected


def _describe_wrong_result(last: str, actual: Tensor, expected: Tensor, axes: Sequence[str]) -> tuple[str, str]:
    seen, wanted = _describe_difference(actual, expected, axes)
    return f"{_describe_part_key(last)} is still right, and goes wrong behind that: {seen}", wanted


def _describe_difference(actual: Tensor, expected: Tensor, axes: Sequence[str]) -> tuple[str, str]:
    names = axes if len(axes) == expected.ndim else ()
    return find_first_difference(actual.cpu(), expected.cpu(), get_tolerance(actual, expected), names)


def _describe_part_key(key: str) -> str:
    name, _, way = key.rpartition(":")
    return f"what enters `{name}`" if way == "in" else f"what `{name}` gives"
