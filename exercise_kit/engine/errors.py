"""A student's exception in words: what was raised, at which line of theirs, and where to look."""

from __future__ import annotations

import builtins
import linecache
import math
import os
import re
import sysconfig
import traceback
import types
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from exercise_kit.engine.compare import describe_argument, format_shape
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.verdict import Failure, NotWritten
from exercise_kit.quoting import convert_to_text_safely, quote_first_line
from exercise_kit.reasons import Reason

OURS = tuple(str(Path(str(files(name)))) + os.sep for name in ("exercise_kit", read_package_name()))
LIBRARIES = (
    str(Path(torch.__file__).parents[1]) + os.sep,
    sysconfig.get_paths()["purelib"] + os.sep,
    sysconfig.get_paths()["stdlib"] + os.sep,
    "<frozen ",
)
_SHAPE = re.compile(r"\[[-0-9, ]+\]")
# where Python and torch name the class of an object, and the function that was called
_CLASS = re.compile(
    r"(?<=')\w+(?=' object)|(?<=object ')\w+(?=')|^\w+(?= has no attribute `)|(?<=Module \[)\w+|(?<=state_dict for )\w+"
)
_CALLED = re.compile(r"^[\w.<>]+\(\)")
_EVERYBODYS = {*dir(builtins), *dir(torch), *dir(torch.nn), *(getattr(types, name).__name__ for name in types.__all__)}
_SCRIPTED = re.compile(r"^The following operation failed in the TorchScript .*\nbuiltins\.(\w+): (.*)", re.DOTALL)
_LONGEST = 300  # characters that tell two errors apart
_BEFORE_INIT = "What has to be the first line of a module's `__init__`?"
# what torch and Python say often, and a question that leads on
_LOOK_AT_WORDS = {
    "is invalid for input of size": "How many numbers does that shape hold, and how many does the tensor have?",
    "must match the size of tensor": "Write the two shapes one below the other, from the right. Which sizes differ?",
    "cannot be multiplied": "Which axis of the first matrix meets which axis of the second?",
    "Expected size for first two dim": "Which axis of the first matrix meets which axis of the second?",
    "Sizes of tensors must match except": "Along which axis are they joined, and do the other axes agree?",
    "view size is not compatible": "Are these numbers still neighbors in memory after the step before?",
    "a leaf Variable that requires grad": "Should the gradient know of this step?",
    "context manager protocol": "Which brackets are missing behind `with`?",
    "does not require grad": "Who has cut this tensor off from the weights, or told torch to record nothing?",
    "backward through the graph a second time": "Which part of what that line goes back through was there before?",
    "the same dtype": "Which dtypes meet on that line?",
    "scalar type": "Which dtypes meet on that line?",
    "must be tuple of Tensors, not Tensor": "Does that function take one tensor after the other, or one list of them?",
    "but found element of type float": "Which size is a float there, and which step of yours makes an integer of it?",
    "but got float": "Which of Python's two divisions gives an integer?",
    "'float' object cannot be interpreted as an integer": "Which of Python's two divisions gives an integer?",
    "be converted to": "Does that function take a whole tensor, or one number?",
    "values to unpack": "How many values are there on each side of the equals sign?",
    "duplicate dims": "Which axis is named twice there, and which one is missing?",
    "is ambiguous": "Which comparison gives a whole tensor there, where `if` wants one True or False?",
    "object is not callable": "Which name has brackets behind it there, and what does it hold? Print its type.",
    "must be Tensor, not": "What is given to that function, and which line should have made a tensor of it?",
    "NVIDIA": "Does this machine have a GPU? `.cuda()` needs one; on which device does the input lie?",
    "not compiled with CUDA": "Does this machine have a GPU? `.cuda()` needs one; on which device does the input lie?",
    "required positional argument": "Which argument does that call leave out?",
    "unexpected keyword argument": "Which names do its arguments have, as its `def` line or torch's page lists them?",
    "'NoneType' object": "Which function gives None there, since it changes something in place, or has no `return`?",
    "'int' object is not iterable": "What does that loop go through: a number, or `range` of it?",
    "indices must be integers": "An index counts places: which type has the index there?",
    "stack expects each tensor": "Print their shapes. Which of them is not like the others?",
    "can only concatenate": "Which types meet at that sign? Print both.",
    "unsupported operand": "Which types meet at that sign? Print both.",
    "Can't call numpy": "Does it have to leave torch? A gradient cannot follow it there.",
    "only for scalar outputs": "`backward` starts from one number. How do many become one?",
    "could not infer output dtype": "Which dtype do these numbers have, and which one has a mean?",
    "tensors used as indices": "Which dtype does the index have, and which dtypes count places?",
    "The expanded size": "Which sizes differ? Only a size of 1 can stretch.",
    "number of dimensions in the tensor": "How many axes does it have? The new order names every axis once.",
    "positional argument": "How many arguments does the `def` line name, and how many are given?",
    "cannot assign 'torch.": "That name holds an nn.Parameter. How do numbers get into the one that is there?",
    "cannot be used while grading": "Which line of yours calls the course's own answer, where yours is asked for?",
    "Module [ModuleList] is missing": "A ModuleList is a list. How does what one module gives get into the next?",
    "Module [ModuleDict] is missing": "A ModuleDict is a dict. Which of the modules in it do you mean?",
    'is missing the required "forward"': "Which module is called there, and does its class have a method `forward`?",
    "Module.__init__() call": _BEFORE_INIT,
    "object has no attribute '_modules'": _BEFORE_INIT,
    "object has no attribute '_parameters'": _BEFORE_INIT,
    "object has no attribute '_backward_hooks'": _BEFORE_INIT,
    "object has no attribute 'training'": _BEFORE_INIT,
    "size mismatch for": "Which two shapes does that message name, and which line of yours turns one into the other?",
}
_LOOK_AT_KIND = {
    "NameError": "Where does that name get its value: in this function, in another one, or in a cell not yet run?",
    "RecursionError": "Which function calls itself there, and when should it stop?",
    "SystemExit": "Which line ends the program? A function ends with `return`.",
    "ImportError": "Is that the module's name, and is it installed here?",
    "AttributeError": "What is the type of the thing before the dot, and does it have that name?",
    "KeyError": "Which keys are there? Print them.",
    "IndexError": "How many axes, or elements, does the thing have that is indexed there?",
    "ZeroDivisionError": "Which divisor on that line is 0 for these inputs, and what should come out then?",
    "AssertionError": "Which values does that line compare? Print both.",
}


@dataclass(frozen=True)
class Raised:
    """An exception of the student's code, described, so that it may have been raised in another process.

    Attributes:
        kinds: the names of its class and of every class that this inherits from.
        words: its text.
        line: the innermost line of the student's own code, quoted, or "".
        functions: the names of the functions that it came through, outermost first.
        tensors: the tensors that are named on that line, as "`query` (2, 5, 8)".
    """

    kinds: tuple[str, ...]
    words: str = ""
    line: str = ""
    functions: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self.kinds[0]

    def is_a(self, name: str) -> bool:
        """Say whether its class is called ``name``, or inherits from one that is."""
        return name in self.kinds

    @property
    def is_raised_by_student(self) -> bool:
        """Whether the line is a ``raise`` of the student's own, be it behind an ``if`` on that line."""
        return re.search(r"(^`|[:;] *)raise\b", self.line) is not None

    def __str__(self) -> str:
        """Its class, and its words in backticks."""
        return f"{self.kind} {quote_first_line(self.words)}".strip()


def describe_exception(error: BaseException) -> Raised:
    """Describe what can be reported of an exception that was raised here."""
    kinds, words = (
        tuple(each.__name__ for each in type(error).__mro__ if each is not object),
        convert_to_text_safely(error),
    )
    if scripted := _SCRIPTED.search(words):  # TorchScript raises an error of its own that tells of the student's
        kinds, words = (scripted[1], *kinds), scripted[2]
    functions = tuple(frame.name for frame in traceback.extract_tb(error.__traceback__))
    line, tensors = _find_student_line(error)
    return Raised(kinds, words, line, functions, tensors)


def make_failure(name: str, error: Raised, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Failure:
    """The failure for an exception out of ``name``, called with ``inputs`` and ``options``."""
    place = f", at {error.line}" if error.line else ""
    meet = f", of {' and '.join(error.tensors)}" if len(error.tensors) > 1 else ""
    if error.is_a("NotImplementedError"):
        if "_forward_unimplemented" in error.functions and not error.line:  # else it is a part's that they call
            look = "Is its name spelled right, and is it indented so far that it belongs to the class?"
            return Failure(f"{name} does not exist", "a method called `forward`", look, Reason.RAISED, "no forward")
        if not error.words or "NotImplementedError" in error.line:
            return NotWritten(f"{name} is not written yet: its line `raise NotImplementedError` is still there")
    text = f": {quote_first_line(error.words)}" if error.words not in ("", "None") else ""
    named = [f"{option}={describe_argument(value)}" for option, value in options.items()]
    given = ", ".join([*(describe_argument(value) for value in inputs), *named])
    look = _suggest_where_to_look(error) or ("Which shapes, names or types meet on that line?" if place else "")
    seen = f"{name} raised {error.kind}{text}{place}{meet}"
    expected = f"no error{' when called with ' * bool(given)}{given}"
    return Failure(seen, expected, look, Reason.RAISED, find_invariant_text(error))


# characters of an exception's words; a worker gives no more than the first of a long one
_MOST_ALIKE = 200


def find_invariant_text(error: Raised) -> str:
    """Find what is the same in an exception that comes back for other inputs."""
    words, line = (re.sub(r"[0-9]+", "#", each) for each in (error.words, error.line))
    return f"{error.kind}: {words[:_MOST_ALIKE]} {line}"  # cut last, for 12 in the place of 4 moves the end


_SIZES = re.compile(r"Expected size|must match|cannot be multiplied")
_AXES = re.compile(r"\d+, \d+, \d+")  # more than two of them
_ONE_AXIS = re.compile(r"\(\d+,\)$")


def _suggest_where_to_look(error: Raised) -> str:
    if "too many values to unpack" in error.words and ".shape" in error.line:
        return "How many axes has that tensor, and what does each of them count? Which one has no name on that line?"
    if (
        re.search(r"\.T\b", error.line)
        and _SIZES.search(error.words)
        and any(_AXES.search(each) for each in error.tensors)
    ):
        return "`.T` turns all axes round, those of batch and heads too. Which two have to change places?"
    is_row = any(_ONE_AXIS.search(each) for each in error.tensors)  # which meets the other's last axis by mistake
    sizes = None if is_row else re.search(r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", error.words)
    if sizes and abs(int(sizes[1]) - int(sizes[2])) == 1 and "1" not in sizes.groups():
        return "Along that axis one of them has one more than the other. Which one is it, and does it belong there?"
    if (
        "must match the size of tensor" in error.words
        and not is_row
        and " * " in error.line
        and len(error.tensors) == 2
    ):
        return "`*` multiplies number by number. Is that meant there, or a product of matrices?"
    if by_words := next((look for words, look in _LOOK_AT_WORDS.items() if words in error.words), ""):
        return by_words
    if error.is_a("ValueError") and error.is_raised_by_student:
        return "These inputs are as the exercise describes. What does your own test compare, there or before that line?"
    return next((look for kind, look in _LOOK_AT_KIND.items() if error.is_a(kind)), "")


class Fingerprint(str):
    """What tells one error from another, and the ``line`` that raised it."""

    def __new__(cls, words: str, line: str) -> Fingerprint:
        """Of ``words``; two of the same words are equal, whatever the line."""
        made = super().__new__(cls, words)
        made.line = line
        return made

    line: str


_OPERATION = re.compile(r"(\w+)\s*(?=\()|(\*\*|//|[-+*/@[])|\b(assert|raise|for)\b")
_ONE_NAME = {"matmul": "@", "bmm": "@", "einsum": "@", "view": "reshape", "concat": "cat", "add": "+", "mul": "*"}


def may_share_operation(first: object, second: object) -> bool:
    """Say whether two errors may come from one step: whether the lines that raised them have an operation in common.

    Torch says the same of many steps, and a line that does something else has made another mistake.
    """
    if not isinstance(first, Fingerprint) or not isinstance(second, Fingerprint):
        return True
    some, others = _list_operations(first.line), _list_operations(second.line)
    return some == others or not some.isdisjoint(others) or not (first.line and second.line)


def _list_operations(line: str) -> set[str]:
    found = ("".join(groups) for groups in _OPERATION.findall(line))
    return {_ONE_NAME.get(each.rstrip("_"), each.rstrip("_")) for each in found}


def make_fingerprint(error: Raised) -> Fingerprint:
    """Make what tells one error from another: its type and, where Python or torch worded it, its words.

    There are many ways to write the same mistake, so the student's own names are left out, those of classes and
    functions too (a misconception's class is not called as the exercise asks). Of a shape in brackets only the number
    of its entries counts: [3, 12, 12] and [3, 6, 2, 6, 2] are one.
    """
    kind = error.kind
    if kind not in ("RuntimeError", "NotImplementedError", "TypeError", "IndexError", "AttributeError"):
        return Fingerprint(kind, error.line)
    words = _CLASS.sub(_replace_student_name, next(iter(error.words.splitlines()), ""))[:_LONGEST]
    if kind == "RuntimeError":
        return Fingerprint(f"{kind}: {_SHAPE.sub(_replace_sizes_by_count, words)}", error.line)
    own = r"attribute ['`].*" if kind == "AttributeError" else _CALLED
    return Fingerprint(f"{kind}: {re.sub(own, '', words)}", error.line)


def _replace_student_name(name: re.Match[str]) -> str:
    return name[0] if name[0] in _EVERYBODYS else "own"


def _replace_sizes_by_count(shape: re.Match[str]) -> str:
    return f"[{math.prod(int(size) for size in re.findall('-?[0-9]+', shape[0]))}]"


def _find_student_line(error: BaseException) -> tuple[str, tuple[str, ...]]:
    """The innermost line of the student's own code, quoted, and the tensors named on it; "" when no call began."""
    for frame, number in reversed([*traceback.walk_tb(error.__traceback__)]):
        if not (file := frame.f_code.co_filename).startswith((*OURS, *LIBRARIES)):
            line = linecache.getline(file, number)
            return quote_first_line(line) or f"line {number}", _list_tensor_shapes(line, frame.f_locals)
    return "", ()


def _list_tensor_shapes(line: str, local_values: Mapping[str, object]) -> tuple[str, ...]:
    """Those of the local names on a line that hold tensors, each with its shape."""
    named = dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*", line))
    tensors = {name: local_values[name] for name in named if isinstance(local_values.get(name), torch.Tensor)}
    return tuple(f"`{name}` {format_shape(each)}" for name, each in tensors.items() if isinstance(each, torch.Tensor))[
        :3
    ]
