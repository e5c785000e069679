"""The proof by mutants: a slip in the reference, or in a lesson's model solution, is caught by a hidden check, or it is
listed with the reason why not.

For one exercise: ``pytest tests/proof -m proof -k patchify``.
"""

import ast

import pytest

from tests.proof.equivalents import equivalent_solutions, equivalents
from tests.proof.judging import MutantJudge, MutantJudges
from tests.proof.kept import compute_or_recall
from tests.proof.mutants import Place, find_definitions, mutants_of
from tests.proof.solutions import SolutionMutant, list_solved, solution_mutants
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE

# all modules of the graded reference
MODULES = {
    "vit_course.attention",
    "vit_course.config",
    "vit_course.data.splits",
    "vit_course.encoder",
    "vit_course.exercises.l07_experiments.model_accuracy",
    "vit_course.staff.references",
    "vit_course.fine_tuning",
    "vit_course.initialisation",
    "vit_course.interpret",
    "vit_course.modern",
    "vit_course.patches",
    "vit_course.positions",
    "vit_course.pretrained",
    "vit_course.training.early_stopping",
    "vit_course.training.loop",
    "vit_course.training.optimizers",
    "vit_course.vit",
}
BY_EXERCISE = pytest.mark.parametrize("exercise", REFERENCE)


def expect_listed(found, listed):
    """Fail with the mutants that nothing catches and no list names, and with what is listed for no reason."""
    survived = set(found["survived"])
    missed = survived - listed.keys()
    caught = listed.keys() - survived
    assert not missed, "no hidden check fails, and no list of equivalents names:\n" + "\n".join(sorted(missed))
    assert not caught, "listed as equivalents, but caught or no more there:\n" + "\n".join(sorted(caught))


def list_survivors(mutants, caught_by):
    """Those that no check catches."""
    return {"survived": [each.name for each in mutants if not caught_by(each)]}


@pytest.mark.proof
@BY_EXERCISE
def test_every_mutant_is_caught_or_listed(exercise):
    def list_surviving():
        mutant_judges = MutantJudges()
        return list_survivors(mutants_of(exercise), lambda each: mutant_judges.caught_by(each, exercise))

    expect_listed(compute_or_recall(f"reference-{exercise}", list_surviving), equivalents().get(exercise, {}))


@pytest.mark.proof
@pytest.mark.parametrize("exercise", list_solved())
def test_every_mutant_of_a_model_solution_is_caught_or_listed(exercise):
    mutant_judge = MutantJudge(exercise)
    assert mutant_judge.caught_by(SolutionMutant("the solution itself", ast.Pass())) is None

    def list_surviving():
        return list_survivors(solution_mutants(exercise), mutant_judge.caught_by)

    expect_listed(compute_or_recall(f"solution-{exercise}", list_surviving), equivalent_solutions().get(exercise, {}))


def test_every_exercise_has_mutants_of_different_names():
    names = {exercise: [each.name for each in mutants_of(exercise)] for exercise in EXERCISES}
    assert all(len(set(each)) == len(each) for each in names.values())
    assert min(map(len, names.values())) >= 15
    assert sum(map(len, names.values())) >= 2500
    assert len(list_solved()) == len(EXERCISES) - 1, "all but the exercise that hands in a file"
    assert names["patchify"] == [each.name for each in mutants_of("patchify")], "in the same order each time"


def test_no_module_is_left_out():
    places: set[Place] = {place for exercise in REFERENCE for place in find_definitions(exercise)}
    assert {module for module, _ in places} == MODULES
    assert {each.__module__ for objects in REFERENCE.values() for each in objects} <= MODULES
    assert ("vit_course.config", "grid_of") in places, "a helper in another module"
    assert ("vit_course.config", "ViTConfig") not in places, "what a student is given"


def test_a_mutant_leaves_the_reference_alone():
    mutant = next(each for each in mutants_of("patchify") if each.place[1] == "grid_of")
    (changed,), (right,) = mutant.objects("patchify"), REFERENCE["patchify"]
    assert changed is not right
    assert changed.__globals__["grid_of"] is not right.__globals__["grid_of"]
    assert mutant.objects("patchify")[0] is not changed
