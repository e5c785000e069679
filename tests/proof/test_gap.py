"""No trap between public and hidden: who passes every public check loses at most a quarter of the points when graded.

The answers are mutants of the model solutions and of the right variants. Misconceptions fail
a public check each, which other tests hold.
"""

import pytest

from exercise_kit.engine.evaluate_check import evaluate_check
from exercise_kit.engine.probes import silence
from exercise_kit.engine.student import Student
from exercise_kit.judge.scoring import compute_fraction
from tests.our_hidden_checks import hidden_checks
from tests.proof.judging import MutantJudge, limit_time_and_memory, make_objects
from tests.proof.kept import compute_or_recall
from tests.proof.solutions import list_solved, solution_mutants
from tests.proof.variants import some
from vit_course.exercises.catalog import EXERCISES

MOST_LOST = 0.25
OF_VARIANTS = 25
# exercise → a mutant's name → why it may lose more
EXCEPTIONS: dict[str, dict[str, str]] = {}


class InPublic:
    """Asks an exercise's public checks, first the one that caught the answer before."""

    def __init__(self, exercise):
        self._names = EXERCISES[exercise].objects
        self._order = list(EXERCISES[exercise].checks)

    def passes_public_checks(self, objects):
        for check in self._order:
            with silence(), limit_time_and_memory():
                failure = evaluate_check(check, Student(dict(zip(self._names, objects, strict=True)))).failure
            if failure:
                self._order.remove(check)
                self._order.insert(0, check)
                return False
        return True


def measure_lost_points(exercise):
    """Mutant's name → the share of the points that it loses when graded, of those that pass in public."""
    public, found = InPublic(exercise), {}
    for mutant in [*solution_mutants(exercise), *some(exercise, OF_VARIANTS)]:
        objects = make_objects(mutant, exercise)
        if objects is not None and public.passes_public_checks(objects):
            mutant_judge = MutantJudge(exercise)
            outcomes = [mutant_judge.evaluate(check, objects) for check in hidden_checks().exercises()[exercise]]
            found[mutant.name] = 1 - compute_fraction(exercise, outcomes)
    return found


@pytest.mark.proof
@pytest.mark.parametrize("exercise", list_solved())
def test_who_passes_in_public_loses_a_quarter_at_most(exercise):
    shares = compute_or_recall(f"lost-{exercise}", lambda: measure_lost_points(exercise))
    traps = {name: round(share, 2) for name, share in shares.items() if share > MOST_LOST}
    listed = EXCEPTIONS.get(exercise, {})
    assert traps.keys() <= listed.keys(), f"give each a public check, or even out the points: {traps}"
    assert listed.keys() <= traps.keys(), "listed, and no trap any more"
