"""benchmarks/proof.py: a misconception that is unknown does not explain itself, and mutants get right names."""

from collections import Counter

import pytest
from proof import Diagnoses, count_variant_mutants, describe_shares

from tests.proof.judging import MutantJudge
from tests.proof.solutions import solution_mutants
from vit_course.exercises.catalog import EXERCISES


@pytest.fixture(scope="module")
def diagnoses():
    return Diagnoses("unpatchify", MutantJudge("unpatchify"))


def test_no_misconception_gets_its_own_name_while_it_is_unknown(diagnoses):
    for wrong in EXERCISES["unpatchify"].misconceptions:
        assert wrong.name not in (diagnoses.name_unknown_mistake(wrong) or "")


def test_a_mutant_that_does_what_a_misconception_does_has_its_name(diagnoses):
    named = dict(diagnoses.name_mutant(mutant) for mutant in solution_mutants("unpatchify"))
    assert any(rightly for name, rightly in named.items() if name)


# one exercise of each lesson, those that are fast to diagnose
SAMPLED = (
    "normalize_images",
    "unpatchify",
    "add_class_token",
    "split_heads",
    "Mlp",
    "count_parameters",
    "EarlyStopping",
)


@pytest.mark.proof
def test_most_answers_outside_the_library_are_caught_located_and_named(capsys):
    line = sum((count_variant_mutants(exercise, 6) for exercise in SAMPLED), Counter())
    with capsys.disabled():
        print(f"\n{describe_shares(line)}")
    assert line["caught"] >= 0.8 * line["variant mutants"], "a mutant may be a right answer, but few are"
    assert line["rightly"] >= 0.8 * line["named"], "a name is given only when it is true"
    assert line["located"] >= 0.8 * line["caught"]
