from __future__ import annotations

import math

from vit_course.training import EarlyStopping


def test_epochs_count_from_the_best_which_nan_never_is() -> None:
    stopping = EarlyStopping(2)
    for loss, best, bad_epochs in ((math.nan, math.inf, 1), (3.0, 3.0, 0), (math.nan, 3.0, 1), (3.0, 3.0, 2)):
        stopping.step(loss)
        assert (stopping.best, stopping.bad_epochs) == (best, bad_epochs)
