"""How fast a right answer is, and how much memory it asks for, beside the course's own part; a line, and no points.

Both run in this process on the same inputs of a middle size, so that their ratio does not depend on the machine. What
an answer asks torch for is counted, too: where the number of calls grows with an axis, the answer loops over it.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from exercise_kit.engine.course import course
from exercise_kit.engine.dispatch_mode import DispatchMode
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.lent import load_right_parts
from exercise_kit.engine.probes import keep_settings, silence

_FEWEST, _ROUNDS, _SECONDS = 3, 20, 0.05  # as many runs of both, unless they take longer together
_MOST_SECONDS = 0.05  # that one run of an answer may take, by what a small one took
_ALIKE, _SLOW = 1.5, 2.0  # times the reference's: the most that is not worth a word, the least that is slow
_GROWS = 1.4  # times as many calls for an axis of twice the length


@dataclass(frozen=True)
class Pace:
    """Inputs of a middle size.

    Attributes:
        sizes: what an answer may loop over, in the plural ("numbers") → how many there are.
        inputs: gives, for these counts in their order, what the function, or the built module, is called with.
        arguments: gives, for the same, what a class is built with; None for a function.
    """

    sizes: Mapping[str, int]
    inputs: Callable[..., tuple[Any, ...]]
    arguments: Callable[..., tuple[Any, ...]] | None = None


class _Counting(DispatchMode):
    """Counts the calls of torch's operators, and the bytes of what these make anew."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.size = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        known = {each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        made = (each.untyped_storage() for each in tree_leaves(result) if isinstance(each, Tensor))
        self.size += sum(each.nbytes() for each in made if each.data_ptr() not in known)
        self.calls += 1
        return result


def describe_pace(exercise: Exercise, objects: tuple[Any, ...]) -> str | None:
    """The line on a right answer; None where there is nothing to compare it with, or it cannot be called so.

    Args:
        exercise: what was asked.
        objects: what passed its checks.
    """
    pace = course().paces.get(exercise.name)
    right = load_right_parts(exercise)
    if pace is None or not right:
        return None
    reference = next(iter(right.values()))
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),  # what it prints was shown by its checks
            silence(),
            keep_settings(),
            torch.random.fork_rng(devices=[]),
            torch.no_grad(),
            sdpa_kernel(SDPBackend.MATH),  # what exercises forbid is no measure for what they ask for
        ):
            return _write_pace_line(pace, objects[0], reference)
    except Exception:  # it passed its checks: whatever this size brings up is no matter of them
        return None


def _write_pace_line(pace: Pace, answer: Any, reference: Any) -> str:
    small = {name: max(2, count // 4) for name, count in pace.sizes.items()}
    first = _prepare_timed_call(pace, answer, small)
    first()  # whatever is loaded at the first call
    is_quick = _measure_seconds(first) * math.prod(pace.sizes.values()) / math.prod(small.values()) < _MOST_SECONDS
    sizes = pace.sizes if is_quick else small
    slower = _measure_ratio(_prepare_timed_call(pace, answer, sizes), _prepare_timed_call(pace, reference, sizes))
    mine, ours = (_count_torch_calls(pace, each, small).size for each in (answer, reference))
    loops = [each for each in small if _loops_over(pace, answer, small, each)] if slower >= _SLOW else []
    loops = [each for each in loops if not _loops_over(pace, reference, small, each)]
    because = f": a loop over {loops[0]}" if loops else ""
    measured = ", ".join(f"{count} {name}" for name, count in sizes.items())
    costs = slower >= _SLOW or mine > _ALIKE * ours
    why = " No points hang on this: it tells where a loop or a copy is left." if costs else ""
    return f"Right; {_compare_speed(slower)}{because}{_compare_memory(mine, ours)}.{why} Measured with {measured}."


def _compare_speed(slower: float) -> str:
    if slower > _ALIKE:
        return f"{_write_times(slower)} the time of the course's own"
    faster = "" if slower * _ALIKE >= 1 else f"{_write_times(1 / slower)} "
    return f"{faster}as fast as the course's own"


def _compare_memory(mine: int, ours: int) -> str:
    """How the bytes that torch was asked for compare, as the end of a sentence."""
    if not ours:
        return ", with a copy where none is needed" if mine else ""
    if mine > _ALIKE * ours:
        return f", with {_write_times(mine / ours)} its memory"
    return ", with less memory" if mine * _ALIKE < ours else ", with as much memory"


def _write_times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def _prepare_timed_call(pace: Pace, implementation: Any, sizes: Mapping[str, int]) -> Callable[[], Any]:
    """A call without arguments."""
    generator_state = torch.random.get_rng_state()
    torch.manual_seed(0)
    inputs = pace.inputs(*sizes.values())
    called: Any = implementation
    if inspect.isclass(implementation) and pace.arguments:
        called = implementation(*pace.arguments(*sizes.values()))
        called.eval()
    torch.random.set_rng_state(generator_state)
    return lambda: called(*inputs)


def _measure_ratio(answer: Callable[[], Any], reference: Callable[[], Any]) -> float:
    """The ratio of the shortest of several runs, taken in turn."""
    rounds: list[tuple[float, float]] = []
    reference()  # neither pays for what is loaded at a first call: the answer has run before
    while len(rounds) < _FEWEST or (len(rounds) < _ROUNDS and sum(map(sum, rounds)) < _SECONDS):
        rounds.append((_measure_seconds(answer), _measure_seconds(reference)))
    mine, ours = (min(of) for of in zip(*rounds, strict=True))
    return mine / ours


def _measure_seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _count_torch_calls(pace: Pace, implementation: Any, sizes: Mapping[str, int]) -> _Counting:
    call = _prepare_timed_call(pace, implementation, sizes)
    with _Counting() as counting:
        call()
    return counting


def _loops_over(pace: Pace, answer: Any, small: Mapping[str, int], name: str) -> bool:
    """Say whether an answer calls torch more often where there is more of something."""
    before, after = (_count_torch_calls(pace, answer, each).calls for each in (small, {**small, name: 2 * small[name]}))
    return after >= _GROWS * before
