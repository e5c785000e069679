"""Parts of a schedule: the warm-up and the descent; and of parameter groups: who is decayed, and what is given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.decay import parameter_groups
from vit_course.exercises.checks.schedule import factors_of, warmup_cosine
from vit_course.exercises.misconceptions import decay
from vit_course.exercises.misconceptions import schedule as wrong
from vit_course.exercises.misconceptions.decay import Groups

Factor = Callable[[int, int, int], float]


def _right(step: int, warmup_steps: int, total_steps: int) -> float:
    return float(factors_of(warmup_steps, total_steps)[step])


def _made(
    step: int,
    warmup_steps: int,
    total_steps: int,
    *,
    rise: Factor = _right,
    fall: Factor = _right,
    told: Callable[[float], Any] = lambda factor: factor,
) -> Any:
    rises = step < warmup_steps or (rise is wrong.the_warm_up_overshoots and step == warmup_steps)
    return told((rise if rises else fall)(step, warmup_steps, total_steps))


_RISES = (
    wrong.the_first_update_wasted,
    wrong.the_warm_up_never_arrives,
    wrong.the_warm_up_overshoots,
    wrong.whole_numbers_in_the_warm_up,
)
_FALLS = (
    wrong.whole_numbers_in_the_descent,
    wrong.a_cosine_over_all_steps,
    wrong.a_cosine_that_began_with_the_warm_up,
    wrong.the_descent_a_step_ahead,
    wrong.the_last_update_wasted,
    wrong.a_quarter_of_a_wave,
    wrong.a_whole_wave,
    wrong.a_cosine_below_zero,
    wrong.a_cosine_upside_down,
    wrong.a_line_down,
    wrong.degrees,
)

declare(
    warmup_cosine,
    Parts(
        _made,
        {
            **{each: {"rise": each} for each in _RISES},
            **{each: {"fall": each} for each in _FALLS},
            wrong.no_warm_up: {"rise": wrong.no_warm_up, "fall": wrong.no_warm_up},
            wrong.warm_up_times_cosine: {"rise": wrong.warm_up_times_cosine, "fall": wrong.warm_up_times_cosine},
            wrong.divided_by_no_descent: {"rise": wrong.divided_by_no_descent, "fall": wrong.divided_by_no_descent},
            wrong.divided_by_no_warm_up: {"rise": wrong.divided_by_no_warm_up, "fall": wrong.divided_by_no_warm_up},
            wrong.a_tensor_for_a_number: {"told": torch.tensor},
        },
        quick=True,
    ),
)

Rule = Callable[[nn.Module, float], Groups]


def _dealt(
    model: nn.Module,
    weight_decay: float,
    *,
    rule: Rule = lambda model, weight_decay: decay._dealt(model, weight_decay, decay._multiplies),
    amount: Callable[[float], float] = float,
    told: Callable[[nn.Module, Groups], Any] = lambda model, groups: groups,
) -> Any:
    return told(model, rule(model, amount(weight_decay)))


def _unnamed(model: nn.Module, groups: Groups) -> Groups:
    return [groups[0], {"params": groups[1]["params"]}]


def _running_dry(model: nn.Module, groups: Groups) -> Groups:
    return [group | {"params": (each for each in group["params"])} for group in groups]


_RULES = (
    decay.everything_decayed,
    decay.nothing_decayed,
    decay.the_wrong_group_decayed,
    decay.sorted_by_axes_alone,
    decay.sorted_by_the_name_weight_alone,
    decay.only_biases_spared,
    decay.only_norms_and_biases_spared,
    decay.norms_known_by_their_name,
    decay.spared_by_a_list_of_names,
    decay.convolutions_forgotten,
    decay.matrices_of_two_axes_alone,
    decay.layers_alone,
    decay.matrices_in_both_groups,
)

declare(
    parameter_groups,
    Parts(
        _dealt,
        {
            **{each: {"rule": each} for each in _RULES},
            decay.a_decay_written_into_the_code: {"amount": lambda weight_decay: 0.05},
            decay.no_decay_named_for_the_second_group: {"told": _unnamed},
            decay.params_that_run_dry: {"told": _running_dry},
            decay.names_for_parameters: {"told": decay._in_names},
            decay.a_single_group: {"told": lambda model, groups: groups[:1]},
        },
        quick=True,
    ),
)
