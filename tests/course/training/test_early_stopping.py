from __future__ import annotations

import math

import pytest

from vit_course.training import EarlyStopping


def test_it_stops_after_patience_epochs_without_a_new_best() -> None:
    stopping = EarlyStopping(2)
    assert [stopping.step(loss) for loss in (3.0, 2.0, 2.5, 1.0, 1.0, 1.5, 1.2)] == [False] * 5 + [True] * 2
    assert (stopping.best, stopping.bad_epochs) == (1.0, 3)


def test_nan_is_no_improvement() -> None:
    stopping = EarlyStopping(2)
    assert stopping.best == math.inf
    assert [stopping.step(math.nan), stopping.step(math.nan)] == [False, True]
    assert stopping.best == math.inf


def test_patience_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        EarlyStopping(0)
