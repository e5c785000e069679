"""What only grading asks of ``EarlyStopping``."""

from __future__ import annotations

from functools import wraps

from exercise_kit.engine.exercise import CheckFunction
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l06_training.early_stopping import claims


def require_waiting_too(claim: CheckFunction) -> CheckFunction:
    """A claim, and then one that whoever always says the same does not pass."""

    @wraps(claim)
    def check_claim_and_waiting(student: Student, probe: Probe) -> None:
        claim(student, probe)
        claims.it_waits_exactly_as_long_as_its_patience(student, probe)

    return check_claim_and_waiting


claims.EarlyStopping.check(graded_only=True, points=0.15)(require_waiting_too(claims.best_is_the_lowest_loss_so_far))
claims.EarlyStopping.check(graded_only=True, points=0.1)(require_waiting_too(claims.no_patience_is_refused))
claims.EarlyStopping.check(graded_only=True, points=0.1)(require_waiting_too(claims.step_gives_a_bool))
