"""The proof of the checks in numbers: what they let through, what they catch, and how sure a name is.

    python benchmarks/proof.py                       # some minutes
    python benchmarks/proof.py --exercise patchify   # one line of the table, nothing written

`make test` proves the counts. What is only measured here is the precision of the diagnosis: each misconception is
evaluated while the library lacks it, so that any name that it gets is wrong; and a mutant of a model solution that
is named has the right name when it gives what that misconception gives in all checks, in those too that it passes.
The same is asked of mutants of the right variants, which nobody has tuned a check to: how many are caught and named,
named rightly, and located (a message says more than that all values differ). Prints a table and writes
results/proof.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from timing import describe_machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the proof is part of the tests

from exercise_kit.engine.diagnosis import Observe, Record  # noqa: E402
from exercise_kit.engine.evaluate_check import Outcome  # noqa: E402
from exercise_kit.engine.exercise import Check, Misconception  # noqa: E402
from exercise_kit.engine.name_failures import name_failures  # noqa: E402
from exercise_kit.engine.records import is_same_record  # noqa: E402
from exercise_kit.engine.two_mistakes import Pair, list_pairs  # noqa: E402
from exercise_kit.engine.verdict import Verdict  # noqa: E402
from exercise_kit.judge.replays import Replays, find_commonest_misconception  # noqa: E402
from tests.course.test_checks import right_variants_of  # noqa: E402
from tests.course.test_distinguished import ALIKE_WHEN_GRADED  # noqa: E402
from tests.our_hidden_checks import hidden_checks  # noqa: E402
from tests.proof.equivalents import equivalent_solutions, equivalents  # noqa: E402
from tests.proof.judging import KEY, SECONDS, MutantJudge, MutantJudges, make_objects  # noqa: E402
from tests.proof.mutants import mutants_of  # noqa: E402
from tests.proof.solutions import SolutionMutant, list_solved, solution_mutants  # noqa: E402
from tests.proof.variants import VariantMutant, some  # noqa: E402
from vit_course.exercises.catalog import EXERCISES  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "proof.json"
COUNTED = ("public checks", "hidden checks", "misconceptions", "right variants")
PROVED = ("reference mutants", "caught", "equivalent", "solution mutants", "also caught", "also equivalent")
NAMED = ("pairs alike", "unknown but named", "mutants named", "rightly")
COLUMNS = (*COUNTED, *PROVED, *NAMED)
OUTSIDE = ("variant mutants", "caught", "named", "rightly", "located")
OF_VARIANTS = 60  # for an exercise
_NOWHERE, _SOMEWHERE = "all of its values differ", ("what enters `", "what `")


class Diagnoses:
    """What the judge calls the answers to one exercise."""

    def __init__(self, exercise: str, mutant_judge: MutantJudge) -> None:
        self.exercise = exercise
        self._mutant_judge = mutant_judge
        self._replays = Replays(hidden_checks(), exercise, KEY)
        self._pairs = list_pairs(EXERCISES[exercise])

    def name_unknown_mistake(self, wrong: Misconception) -> str | None:
        """The name that a misconception gets from a library without it."""

        def observe(known: Misconception, check: str) -> tuple[bool, Record]:
            if known is wrong or (isinstance(known, Pair) and wrong in known.both):
                return False, []  # it explains nothing
            return self._replays(known, check)

        return self._name_commonest_mistake(
            [self._mutant_judge.evaluate(check, wrong.objects) for check in self._list_checks()], observe
        )

    def name_mutant(self, mutant: SolutionMutant | VariantMutant) -> tuple[str | None, bool]:
        """The name that a mutant gets, and whether it is right."""
        outcomes = self.find_outcomes(mutant)
        name = self._name_commonest_mistake(outcomes, self._replays)
        known = [*EXERCISES[self.exercise].misconceptions, *self._pairs]
        return name, bool(outcomes) and any(
            each.name == name and self._has_same_outcomes(each, outcomes) for each in known
        )

    def find_outcomes(self, mutant: SolutionMutant | VariantMutant) -> list[Outcome]:
        """Return what every check finds about a mutant; nothing where it cannot be made, or loops in every check."""
        objects = make_objects(mutant, self.exercise)
        outcomes, start = [], time.process_time()
        for check in self._list_checks() if objects else ():
            outcomes.append(self._mutant_judge.evaluate(check, objects or ()))
            if time.process_time() - start > SECONDS / 2:
                return []
        return outcomes

    def _list_checks(self) -> Sequence[Check]:
        return hidden_checks().exercises()[self.exercise]

    def _name_commonest_mistake(self, outcomes: Sequence[Outcome], observe: Observe) -> str | None:
        return find_commonest_misconception(name_failures(EXERCISES[self.exercise], outcomes, observe))

    def _has_same_outcomes(self, wrong: Misconception, outcomes: Sequence[Outcome]) -> bool:
        for outcome in outcomes:
            failed, record = self._replays(wrong, outcome.check.name)
            if failed != (outcome.result.verdict == Verdict.FAIL) or not is_same_record(record, outcome.record):
                return False
        return True


def measure_exercise(name: str, variants: Counter[str]) -> dict[str, int]:
    """One line of the table."""
    exercise = EXERCISES[name]
    line = Counter(
        {
            "public checks": len(exercise.checks),
            "hidden checks": len(hidden_checks().exercises()[name]),
            "misconceptions": len(exercise.misconceptions),
            "right variants": variants[name],
            "equivalent": len(equivalents().get(name, {})),
            "also equivalent": len(equivalent_solutions().get(name, {})),
            "pairs alike": len(ALIKE_WHEN_GRADED.get(name, {})),
        }
    )
    mutant_judges = MutantJudges()
    for mutant in mutants_of(name):
        line["reference mutants"] += 1
        line["caught"] += mutant_judges.caught_by(mutant, name) is not None
    line.update(count_named(name, mutant_judges.of(name)))
    return {column: line[column] for column in COLUMNS}


def count_named(name: str, mutant_judge: MutantJudge) -> Counter[str]:
    """The columns that tell what the mutants of the model solution, and unknown misconceptions, are called."""
    diagnoses, line = Diagnoses(name, mutant_judge), Counter[str]()
    for wrong in list(EXERCISES[name].misconceptions):
        line["unknown but named"] += diagnoses.name_unknown_mistake(wrong) is not None
    for mutant in solution_mutants(name) if name in list_solved() else ():
        line["solution mutants"] += 1
        if mutant_judge.caught_by(mutant):
            line["also caught"] += 1
            called, rightly = diagnoses.name_mutant(mutant)
            line["mutants named"] += called is not None
            line["rightly"] += rightly
    return line


def count_variant_mutants(name: str, count: int = OF_VARIANTS) -> Counter[str]:
    """Return what becomes of mutants of the right variants, by ``OUTSIDE``: of so many, drawn the same each time."""
    diagnoses, line = Diagnoses(name, MutantJudge(name)), Counter[str](dict.fromkeys(OUTSIDE, 0))
    for mutant in some(name, count) if name in list_solved() else ():
        failed = [each for each in diagnoses.find_outcomes(mutant) if each.result.verdict == Verdict.FAIL]
        called, rightly = diagnoses.name_mutant(mutant) if failed else (None, False)
        line["variant mutants"] += 1
        line["caught"] += bool(failed)
        line["named"] += called is not None
        line["rightly"] += rightly
        line["located"] += any(map(is_located, failed))
    return line


def is_located(outcome: Outcome) -> bool:
    """Say whether a message says more than that all values differ."""
    seen = outcome.result.seen
    return bool(seen) and (_NOWHERE not in seen or any(part in seen for part in _SOMEWHERE))


def describe_shares(line: Counter[str]) -> str:
    """The counts of :func:`count_variant_mutants` in a sentence."""
    caught, named = max(line["caught"], 1), max(line["named"], 1)
    return (
        f"of {line['variant mutants']} mutants of right variants {line['caught']} are caught; of these "
        f"{line['named'] / caught:.0%} are named ({line['rightly'] / named:.0%} of the names are right) and "
        f"{line['located'] / caught:.0%} located"
    )


def make_table(lines: dict[str, dict[str, int]], totals: dict[str, int]) -> Table:
    table = Table("exercise", *(column.replace(" ", "\n") for column in COLUMNS), box=None, padding=(0, 1))
    for name, line in {**lines, "all": totals}.items():
        table.add_row(name, *map(str, line.values()))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercise", choices=list(EXERCISES), help="measure this one alone, and write nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    names = [options.exercise] if options.exercise else list(EXERCISES)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        rows = list(track(pool.map(time_exercise, names), total=len(names), disable=not sys.stdout.isatty()))
    lines = dict(zip(names, (line for line, _, _ in rows), strict=True))
    beyond = sum((each for _, each, _ in rows), Counter[str]())
    totals = {column: sum(line[column] for line in lines.values()) for column in COLUMNS}
    Console(width=170).print(make_table(lines, totals))
    print(describe_shares(beyond))
    if options.exercise:
        return
    seconds = round(sum(each for _, _, each in rows), 1)
    report = {
        **describe_machine("cpu"),
        "processor_seconds": seconds,
        "totals": totals,
        "outside": beyond,
        "exercises": lines,
    }
    draft = RESULTS.with_suffix(".draft")
    draft.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    draft.rename(RESULTS)


def time_exercise(name: str) -> tuple[dict[str, int], Counter[str], float]:
    """One line of the table, what becomes of variants' mutants, and the processor's seconds that it took."""
    torch.set_num_threads(1)
    start = time.process_time()
    variants = Counter({each: len(right_variants_of(each)) for each in EXERCISES})
    return measure_exercise(name, variants), count_variant_mutants(name), time.process_time() - start


if __name__ == "__main__":
    main()
