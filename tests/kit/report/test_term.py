"""A class over several lessons: what tells students apart, how soon they passed, and whom to talk to."""

import os
import re
import subprocess
from datetime import UTC, date, datetime
from statistics import correlation

import pytest

from exercise_kit.report import tally as tallying
from exercise_kit.report.collect import ClassWork, LessonPlan
from exercise_kit.report.manual_grading import ByHand, ManualGrading
from exercise_kit.report.page import format_with_minus, render_lecture_page, render_private_page
from exercise_kit.report.people import Why, find_students_of_concern
from exercise_kit.report.tally import LEAST_STUDENTS, KnownMistake, rank_discriminations, tally_class
from exercise_kit.report.term import make_lesson_rows
from tests.e2e.browser import CHROMIUM, find_cut_on_phones, needs_chromium
from tests.html import Page
from tests.kit.report.conftest import make_exercise_result, make_failed_check, make_submitted_work
from tests.waiting import GIVE_UP

TODAY = date(2026, 3, 7)
LESSONS = ("01_first", "02_second", "03_third", "04_fourth")


def count_class_of(*works, lessons=LESSONS, points=None, **more):
    plans = tuple(LessonPlan(name, points or {f"{name}_a": 10.0, f"{name}_b": 10.0}) for name in lessons)
    return tally_class(ClassWork("vision", works, plans, **more))


def make_work_of_two_exercises(who, lesson, first, second, **more):
    return make_submitted_work(
        who,
        lesson,
        make_exercise_result(f"{lesson}_a", score=first, max_score=10.0),
        make_exercise_result(f"{lesson}_b", score=second, max_score=10.0),
        **more,
    )


def make_spread_works(students):
    """A lesson of two exercises: the second goes along with the first, but for the last student."""
    first = [10.0 * (number % 4) / 3 for number in range(students)]
    return [
        make_work_of_two_exercises(f"s{number}", LESSONS[0], each, each if number else 10.0 - each)
        for number, each in enumerate(first)
    ]


def test_the_index_is_the_correlation_with_all_other_exercises():
    found = rank_discriminations(count_class_of(*make_spread_works(12)).exercises)
    first = [each.result.exercises[0].score for each in make_spread_works(12)]
    second = [each.result.exercises[1].score for each in make_spread_works(12)]
    assert [each.index for each in found] == pytest.approx([correlation(first, second)] * 2)
    low, high = found[0].interval
    assert low < found[0].index < high < 1
    assert (found[0].students, found[0].sentence) == (12, "students who do well elsewhere do well here")


def test_what_tells_most_apart_stands_first_and_the_unknown_last():
    scores = {
        "same": lambda number: 10.0,
        "weak": lambda number: 10.0 * (number % 2),
        "strong": lambda number: float(number // 2),
        "stronger": lambda number: float(number // 2 + number % 2),
    }
    works = [
        make_submitted_work(
            f"s{number}",
            LESSONS[0],
            *(make_exercise_result(name, score=score(number), max_score=10.0) for name, score in scores.items()),
        )
        for number in range(12)
    ]
    found = rank_discriminations(
        count_class_of(*works, lessons=LESSONS[:1], points=dict.fromkeys(scores, 10.0)).exercises
    )
    assert [each.exercise.name for each in found] == ["stronger", "strong", "weak", "same"]
    known = [each.index for each in found[:-1]]
    assert known == sorted(known, reverse=True)
    assert found[-1].index is None


def test_of_few_students_nothing_is_said():
    found = rank_discriminations(count_class_of(*make_spread_works(LEAST_STUDENTS - 1)).exercises)
    assert {each.index for each in found} == {None}
    assert "at least 10 are needed" in found[0].sentence


def test_of_an_exercise_that_stands_alone_it_is_said_that_there_is_nothing_to_compare_it_with():
    alone = make_submitted_work(
        "s", LESSONS[0], make_exercise_result(f"{LESSONS[0]}_a", make_failed_check(), max_score=10.0)
    )
    (found,) = rank_discriminations(count_class_of(alone).exercises)
    assert found.sentence == "nothing can be said: nobody who did it has another graded exercise to compare it with"


def test_of_an_exercise_that_all_can_do_nothing_is_said():
    works = [make_work_of_two_exercises(f"s{number}", LESSONS[0], 10.0, float(number % 3)) for number in range(12)]
    found = rank_discriminations(count_class_of(*works).exercises)
    assert [each.index for each in found] == [None, None]
    assert "all students earned the same" in found[0].sentence


def test_chance_and_the_wrong_way_round_are_reported():
    alternating = [
        make_work_of_two_exercises(f"s{number}", LESSONS[0], float(number % 2), float(number // 2 % 2))
        for number in range(12)
    ]
    assert "may be chance" in rank_discriminations(count_class_of(*alternating).exercises)[0].sentence
    opposed = [
        make_work_of_two_exercises(f"s{number}", LESSONS[0], float(number), 11.0 - number) for number in range(11)
    ]
    assert "do worse here" in rank_discriminations(count_class_of(*opposed).exercises)[0].sentence
    assert format_with_minus(-0.5) == "\u22120.50"


def list_concerns(found):
    return {
        each.who: [(concern.why, concern.seen) for concern in each.concerns] for each in find_students_of_concern(found)
    }


def make_works_of_all(lessons, *students, score=8.0):
    return [make_work_of_two_exercises(who, lesson, score, score) for who in students for lesson in lessons]


def test_who_handed_in_too_little_is_named_and_so_is_who_handed_in_nothing_if_the_gradebook_knows():
    works = [
        *make_works_of_all(LESSONS, "ann", "ben", "cleo"),
        *make_works_of_all(LESSONS[:2], "dan"),
        *make_works_of_all(LESSONS[1:], "eve"),
    ]
    found = count_class_of(*works, manual_grading=ManualGrading(students=("ann", "zoe")))
    assert list_concerns(found) == {
        "dan": [(Why.MISSING, "03_third, 04_fourth")],
        "zoe": [(Why.MISSING, ", ".join(LESSONS))],
    }


def test_who_has_earned_nothing_is_named_unless_a_person_gave_points():
    works = [
        *make_works_of_all(LESSONS[:2], "ann", score=8.0),
        *make_works_of_all(LESSONS[:1], "ben", "cleo", score=0.0),
    ]
    book = ManualGrading(by_hand={("cleo", LESSONS[0]): ByHand(1.5, 20.0, 1.5, 20.0)})
    found = count_class_of(*works, manual_grading=book)
    assert list_concerns(found) == {"ben": [(Why.NOTHING, f"0 of 20 in {LESSONS[0]}")]}
    private = render_private_page(found, "vision", TODAY)
    assert (
        '<td class="n" data-label="points">1.5 of 20</td><td class="n" data-label="by hand">1.5 of 20</td>' in private
    )


def test_who_falls_behind_their_own_past_is_named_and_not_who_is_always_low():
    works = [
        *make_works_of_all(LESSONS, "ann", "ben", "cleo"),
        *make_works_of_all(LESSONS[:3], "dan", score=9.0),
        make_work_of_two_exercises("dan", LESSONS[3], 4.0, 4.0),
        *make_works_of_all(LESSONS, "low", score=2.0),
    ]
    found = list_concerns(count_class_of(*works))
    assert list(found) == ["dan"]
    assert found["dan"][0][0] is Why.DROPPED
    assert found["dan"][0][1].startswith("40 % in 04_fourth, 40 points of 100 below the class's median")


def test_the_same_mistake_twice_and_flags_of_the_student_alone():
    wrong = [
        make_exercise_result(
            f"01_first_{each}", make_failed_check(misconception="column order"), score=1.0, max_score=10.0
        )
        for each in "ab"
    ]
    works = [
        make_submitted_work("ann", LESSONS[0], *wrong, flags=("reference-copied", "weaker-sandbox")),
        make_work_of_two_exercises("ben", LESSONS[0], 8.0, 8.0, flags=("weaker-sandbox",)),
    ]
    assert list_concerns(count_class_of(*works, lessons=LESSONS[:1])) == {
        "ann": [
            (Why.SAME, "column order: in 01_first_a, 01_first_b"),
            (Why.FLAGGED, "reference-copied in 01_first"),
        ]
    }


@pytest.fixture
def class_folder_with_times(tmp_path):
    """A class folder: ann passed after 2 days, ben after 4, cleo never did, and of dan no time is known."""
    release = tmp_path / "release" / LESSONS[0] / f"{LESSONS[0]}.ipynb"
    release.parent.mkdir(parents=True)
    release.write_text("{}")
    os.utime(release, (released := datetime(2026, 3, 1, tzinfo=UTC).timestamp(), released))
    works = []
    for who, time, score in (
        ("ann", "2026-03-03 00:00:00.000000 UTC", 5.0),
        ("ben", "2026-03-05 00:00:00 UTC", 10.0),
        ("cleo", "2026-03-02 00:00:00 UTC", 4.0),
        ("dan", "soon", 10.0),
    ):
        path = tmp_path / who / f"{LESSONS[0]}.ipynb"
        path.parent.mkdir()
        (path.parent / "timestamp.txt").write_text(time)
        works.append(make_work_of_two_exercises(who, LESSONS[0], score, score, path=path))
    return tmp_path, works, release


def test_days_from_release_to_half_of_the_points(class_folder_with_times):
    folder, works, _ = class_folder_with_times
    (row,) = make_lesson_rows(count_class_of(*works, lessons=LESSONS[:1], folder=folder))
    assert (row.to_pass.days, row.to_pass.passed, row.to_pass.unknown) == ((2.0, 4.0), 3, "")
    assert (row.students, row.graded) == (4, 4)


def test_what_is_not_known_of_times_is_said(class_folder_with_times):
    folder, works, release = class_folder_with_times
    for name in ("ann", "ben"):
        (folder / name / "timestamp.txt").unlink()
    assert "no timestamp.txt" in count_unknown_times(works, folder)
    os.utime(release)  # released again, after cleo handed in
    assert "newer" in count_unknown_times(works, folder)
    release.unlink()
    assert "there is no release/" in count_unknown_times(works, folder)
    assert "a file of results holds no times" in count_unknown_times(works, None)


def count_unknown_times(works, folder):
    (row,) = make_lesson_rows(count_class_of(*works, lessons=LESSONS[:1], folder=folder))
    assert row.to_pass.days == ()
    return row.to_pass.unknown


@pytest.fixture
def long_term(monkeypatch):
    """Eleven lessons with long names, four exercises in each, all with mistakes that take long to explain."""
    explanation = "A sentence that explains what the mistake does, as long as those of the library are. " * 3
    question = "Which of the grid axes varies fastest in your reshape, and which in mine? " * 2
    names = [f"mistake {kind} of the long kind" for kind in range(5)]
    library = {name: KnownMistake(name, explanation, question, "05_vit, A section", "It trains.") for name in names}
    monkeypatch.setattr(tallying, "_map_names_to_mistakes", lambda exercise: library)
    lessons = tuple(f"{number:02}_a_lesson_with_a_long_name" for number in range(11))
    points = {lesson: {f"exercise_number_{each}_of_{lesson}": 10.0 for each in range(4)} for lesson in lessons}
    works = []
    for student in range(12):
        for lesson in lessons:
            answers = [
                make_exercise_result(
                    name, make_failed_check(misconception=names[student % 5]), score=5.0, max_score=10.0
                )
                if (student + place) % 2
                else make_exercise_result(name, score=10.0, max_score=10.0)
                for place, name in enumerate(points[lesson])
            ]
            works.append(make_submitted_work(f"student{student}", lesson, *answers, flags=("reference-copied",)))
    plans = tuple(LessonPlan(lesson, points[lesson]) for lesson in lessons)
    return tally_class(ClassWork("vision", tuple(works), plans))


def test_the_page_of_a_term_is_whole_and_the_private_page_says_whom_to_talk_to(long_term):
    outline = Page(render_lecture_page(long_term, "vision", TODAY))
    labels = outline.find_attribute_values("aria-label", "svg")
    assert "lesson by lesson" in labels[0]
    assert outline.tags.count("td") == len(
        outline.find_attribute_values("data-label", "td") + outline.find_attribute_values("colspan", "td")
    )
    private = render_private_page(long_term, "vision", TODAY)
    Page(private)
    assert "12 students, those with most reasons first" in private
    assert "student3" not in render_lecture_page(long_term, "vision", TODAY)


@needs_chromium
@pytest.mark.proof
def test_nothing_is_cut_on_a_phone(long_term, tmp_path):
    pages = {"term": render_lecture_page, "term-names": render_private_page}
    for name, page in pages.items():
        (tmp_path / f"{name}.html").write_text(page(long_term, "vision", TODAY), encoding="utf-8")
    assert find_cut_on_phones(*(tmp_path / f"{name}.html" for name in pages)) == []


@needs_chromium
def test_in_print_it_is_two_pages(long_term, tmp_path):
    (tmp_path / "report.html").write_text(render_lecture_page(long_term, "vision", TODAY), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    target = tmp_path / "report.pdf"
    command = [CHROMIUM, *options, f"--print-to-pdf={target}", (tmp_path / "report.html").as_uri()]
    subprocess.run(command, capture_output=True, check=True, timeout=GIVE_UP)
    assert len(re.findall(rb"/Type /Page\b", target.read_bytes())) == 2
