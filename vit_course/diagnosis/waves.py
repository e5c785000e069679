"""Positions that do not learn: a fixed table of sines and cosines, and their frequencies."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.answers import Remarks, report_unusual
from vit_course.diagnosis.case import Case
from vit_course.diagnosis.positions import find_op_in_other_pass, find_position_tables
from vit_course.diagnosis.watch import ADDS

_TABLE = "sinusoidal_positions: "
_NEAR = 2e-3  # a float32 sine of the angle 200 is as far off as that


def _list_frequency_schedules(width: int) -> dict[str, Tensor]:
    """The frequencies of a table that is ``width`` wide, by what is said of them; those of papers first."""
    hands = torch.arange(width // 2, dtype=torch.float64)
    exponents = 2 * hands / width
    every = torch.arange(width, dtype=torch.float64) / width
    return {
        "": 1e4**-exponents,
        "over half minus one": 1e4 ** -(hands / max(1, width // 2 - 1)),
        "exponent half as large": 1e4 ** -(exponents / 2),
        "exponent twice as large": 1e4 ** -(2 * exponents),
        "base e for 10000": torch.exp(-exponents),
        "exponent rounded to zero": torch.ones_like(hands),
        "multiplied where divided": 1e4**exponents,
        "a frequency for every dimension": 1e4**-every,
        "column taken for hand": 1e4 ** -(2 * every),
    }


def table_of_waves(case: Case) -> Remarks:
    """Positions learn, or are sines and cosines whose frequencies run from 1 to 1/10000."""
    first = case.anatomy.start[1]
    fixed = [op for op, given in find_position_tables(case, case.watch.ops, ADDS) if not given[0].requires_grad]
    if not fixed or first is None or fixed[0].number > first.number:
        return
    watch, _ = case.subject.watch(case.images, model=case.subject.start)
    op = find_op_in_other_pass(watch.ops, fixed[0])
    given = next(each for (at, each) in find_position_tables(case, watch.ops, ADDS) if at is op)[0].detach().double()
    table = given.reshape(-1, case.embedded_tokens.shape[-1])[
        -len(case.embedded_tokens[0]) + len(case.special_token_indices) :
    ].cpu()
    if not table.any() or table.std() < 1e-9:
        yield report_unusual("the positions are one number each, and do not learn", at=op)
        return
    said = _name_frequency_mistake(table / table.abs().max())
    if said is None:
        yield report_unusual("the positions do not learn, and are no table of sines and cosines", at=op)
    elif said:
        seen = f"the frequencies of the fixed table are not those from 1 to 1/10000: {said}"
        yield report_unusual(seen, f"{_TABLE}{said}", op)


def _name_frequency_mistake(table: Tensor) -> str | None:
    """The mistake's name in a table (patches, width), "" where it is a known one, None where nothing fits."""
    count, width = table.shape
    side = int(count**0.5)
    halves = [table]
    if side * side == count and width % 4 == 0:  # rows and columns have a half each
        grid = table.unflatten(0, (side, side))
        by_row = (grid - grid[:, :1]).abs().amax((0, 1)) < _NEAR
        by_column = (grid - grid[:1]).abs().amax((0, 1)) < _NEAR
        if (by_row | by_column).all():
            halves = [grid[:, 0, by_row], grid[0][:, by_column]]  # a slow wave looks the same in both
    for name, frequencies in _list_frequency_schedules(width // len(halves)).items():
        for start in (0, 1):
            fits = [_compare_with_waves(half, frequencies, start) for half in halves]
            if all(each is not None for each in fits):
                return "sines only" if "sines only" in fits else "" if name == "over half minus one" else name
    return None


def _compare_with_waves(half: Tensor, frequencies: Tensor, start: int) -> str | None:
    """ "" where every column is a sine or cosine of one of the frequencies and each has its column; None: it is not."""
    angles = torch.outer(torch.arange(start, start + len(half), dtype=torch.float64), frequencies)
    far_sine, far_cosine = ((half[:, :, None] - wave[:, None]).abs().amax(0) for wave in (angles.sin(), angles.cos()))
    known = torch.minimum(far_sine, far_cosine)
    if known.numel() == 0 or (known.amin(1) > _NEAR).any() or (known.amin(0) > _NEAR).any():
        return None
    return "sines only" if (far_sine.amin(1) < _NEAR).all() and (far_cosine.amin(0) > _NEAR).any() else ""


PROPERTIES = (table_of_waves,)
