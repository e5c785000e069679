"""Counts the honest answers of simulated classes that are flagged `possible-bypass`, which is read off the code.

    python benchmarks/false_flags.py --students 20 --seed 11 --seed 12

Students hand in as `vit-course simulate` has them do, and nothing is graded. Writes results/false_flags.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.simulate.answers import Kind
from exercise_kit.simulate.modules import load_right_variants
from exercise_kit.simulate.profiles import draw_names, draw_profiles
from exercise_kit.simulate.simulate import choose_lessons
from exercise_kit.simulate.submissions import SimulatedLesson, make_seeded_random
from exercise_kit.submission.find import find
from exercise_kit.submission.flags import POSSIBLE_BYPASS
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "false_flags.json"


def iterate_answers_and_flags(folder: Path, students: int, seed: int) -> Iterator[tuple[str, Kind, str | None]]:
    """Exercise, kind and note (None: there is no flag) of each answer in a class.

    A notebook with a hostile answer, or one that ends its process, is hostile as a whole: its cells are around all.
    """
    new_class(folder, ROOT)
    variants = load_right_variants()
    handed_in = [
        SimulatedLesson(name, folder, ROOT, variants, seed, week) for week, name in enumerate(choose_lessons(ROOT, ()))
    ]
    released = Lessons(folder, ROOT)
    people = zip(
        draw_names(students, make_seeded_random(seed, "names")),
        draw_profiles(students, make_seeded_random(seed, "sorts")),
        strict=True,
    )
    for student, sort in people:
        for lesson in handed_in:
            submitted = lesson.draw_submission(student, sort)
            lesson.write(folder / "submitted", submitted)
            (found,) = find([folder / "submitted" / student / lesson.name / f"{lesson.name}.ipynb"], released.names)
            notes = {each.exercise: each.words for each in read(found, released).notes if each.flag == POSSIBLE_BYPASS}
            kinds = {name: each.kind for name, each in submitted.answers.items()}
            is_hostile = not {Kind.HOSTILE, Kind.CRASHING}.isdisjoint(kinds.values())
            yield from ((name, Kind.HOSTILE if is_hostile else kind, notes.get(name)) for name, kind in kinds.items())


def main() -> None:
    """Print and write the counts by kind of answer, and each honest answer that is flagged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=20)
    parser.add_argument("--seed", type=int, action="append", required=True)
    given = parser.parse_args()
    asked, flagged, said = Counter[str](), Counter[str](), []
    for seed in given.seed:
        with tempfile.TemporaryDirectory() as place:
            for exercise, kind, note in iterate_answers_and_flags(Path(place) / "class", given.students, seed):
                asked[kind] += 1
                flagged[kind] += note is not None
                if note and kind != Kind.HOSTILE:
                    said.append(f"{exercise} ({kind}): {note}")
    honest = [kind for kind in asked if kind != Kind.HOSTILE]
    report = {
        "date": datetime.now(UTC).date().isoformat(),
        "students": given.students,
        "seeds": given.seed,
        "honest": {"answers": sum(asked[kind] for kind in honest), "flagged": sum(flagged[kind] for kind in honest)},
        "by_kind": {kind: {"answers": asked[kind], "flagged": flagged[kind]} for kind in sorted(asked)},
        "said": sorted(set(said)),
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
