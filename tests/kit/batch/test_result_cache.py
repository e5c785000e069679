"""What is kept of results, and when it still holds."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from exercise_kit.batch.result_cache import Store, TamperedResult, make_exercise_keys, make_key_prefixes, merge_results
from exercise_kit.engine.verdict import Cause, CheckResult, Verdict
from exercise_kit.judge.result import CellOutputs, ExerciseResult, Result
from exercise_kit.reasons import Reason
from exercise_kit.sandbox.limits import Limits


def make_exercise_result(name, score=1.0):
    told, causes = (("Seen", "m"),), (Cause("column order", "", "", ""),)
    check = CheckResult("test_a", "It holds.", Verdict.FAIL, causes=causes, saved_parts=told)
    return ExerciseResult(name, score, 2.0, "column order", (check,))


def make_result(*names, **more):
    runs = (CellOutputs(3, ({"output_type": "stream", "name": "stdout", "text": "hi"},)),)
    return Result(
        "p",
        "ada",
        "01_patchify",
        "graded",
        **{"exercises": tuple(map(make_exercise_result, names)), "runs": runs} | more,
    )


@pytest.fixture
def submission(work):
    return work().read("patchify", student="ada")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results", b"secret")


def test_what_is_kept_is_given_back_to_whoever_handed_in_the_same(store, submission):
    store.save(submission, {"patchify": "k"}, make_result("patchify"))
    twin = replace(submission, path="q", student="ben")
    kept = store.load(twin, {"patchify": "k"})
    assert (kept.path, kept.student) == ("q", "ben")
    assert kept.exercises == make_result("patchify").exercises
    assert kept.runs == make_result().runs
    assert store.load(replace(submission, digest="0" * 64), {"patchify": "k"}) is None
    assert store.load(submission, {"patchify": "other"}) is None


def test_what_waits_for_a_check_is_kept_and_never_taken_over(store, submission):
    waiting = ExerciseResult(
        "unpatchify", 0.0, 5.0, reason=Reason.OUR_ERROR, waits_for="hidden/test_unpatchify.py:7: no"
    )
    keys = {"patchify": "k", "unpatchify": "k"}
    store.save(submission, keys, make_result(exercises=(make_exercise_result("patchify"), waiting)))
    assert [each.name for each in store.load(submission, keys).exercises] == ["patchify"]
    kept = store.read(submission.content, submission.lesson).result
    assert kept.waits_for == {"unpatchify": "hidden/test_unpatchify.py:7: no"}


def test_what_is_kept_of_two_runs_is_out_of_the_points_of_both(store, submission):
    store.save(submission, {"patchify": "k"}, replace(make_result("patchify"), score=1.0, max_score=2.0))
    store.save(submission, {"unpatchify": "k"}, replace(make_result("unpatchify"), score=1.0, max_score=2.0))
    kept = store.read(submission.content, submission.lesson).result
    assert {each.name for each in kept.exercises} == {"patchify", "unpatchify"}
    assert (kept.score, kept.max_score, kept.worth) == (2.0, 4.0, 4.0)


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"format": 1}', '{"format": 1, "keys": 3, "result": {}}',
                                     '{"format": 0}', "\xff", "[" * 100_000])  # fmt: skip
def test_a_file_that_is_no_result_is_as_good_as_none(store, submission, content):
    store.save(submission, {"patchify": "k"}, make_result("patchify"))
    (file,) = store.folder.iterdir()
    file.write_text(content, encoding="latin-1")
    assert store.load(submission, {"patchify": "k"}) is None
    store.save(submission, {"patchify": "k"}, make_result("patchify"))
    assert store.load(submission, {"patchify": "k"})


@pytest.mark.parametrize("change", [
    lambda entry: entry["result"].update(score=1202.0),
    lambda entry: entry["result"]["exercises"][0].update(score=2.0),
    lambda entry: entry["result"].update(flags=[]),
    lambda entry: entry["keys"].update(patchify="another"),
    lambda entry: entry.pop("seal"),
    lambda entry: entry.update(seal=7),
    lambda entry: entry.update(seal="0" * 64),
])  # fmt: skip
def test_what_somebody_else_wrote_is_not_believed(store, submission, change):
    store.save(submission, {"patchify": "k"}, make_result("patchify", flags=("timeout",)))
    (file,) = store.folder.iterdir()
    entry = json.loads(file.read_bytes())
    change(entry)
    file.write_text(json.dumps(entry))
    with pytest.raises(TamperedResult):
        store.load(submission, {"patchify": "k", "unpatchify": "k"})
    store.save(submission, {"unpatchify": "k"}, make_result("unpatchify"))
    kept = store.load(submission, {"patchify": "k", "unpatchify": "k"})
    assert [each.name for each in kept.exercises] == ["unpatchify"]


def test_a_seal_holds_for_one_secret_and_one_submission(store, submission):
    store.save(submission, {"patchify": "k"}, make_result("patchify"))
    with pytest.raises(TamperedResult):
        Store(store.folder, b"another class").load(submission, {"patchify": "k"})
    other = replace(submission, digest="0" * 64)
    (file,) = store.folder.iterdir()
    shutil.copy(file, store._find_entry_path(other.content, other.lesson))
    with pytest.raises(TamperedResult):
        store.load(other, {"patchify": "k"})


def test_scores_that_cannot_be_are_not_believed_with_any_seal(store, submission):
    store.save(
        submission, {"patchify": "k"}, make_result(score=3.0, exercises=(make_exercise_result("patchify", score=3.0),))
    )
    with pytest.raises(TamperedResult):
        store.load(submission, {"patchify": "k"})


def test_only_the_grader_reads_what_is_kept(store, submission):
    store.save(submission, {"patchify": "k"}, make_result("patchify"))
    (file,) = store.folder.iterdir()
    assert (store.folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_graders_at_once_leave_whole_files(store, submission):
    def save_and_load(_):
        store.save(submission, {"patchify": "k"}, make_result("patchify"))
        return store.load(submission, {"patchify": "k"})

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(save_and_load, range(60)))
    assert len(list(store.folder.iterdir())) == 1


def test_one_result_of_what_was_kept_and_what_is_new(work):
    submission = replace(work().read(), reason="read", flags=("test-cell-edited",))
    kept, fresh = make_result("unpatchify", flags=("timeout",), reason="old"), make_result("patchify", reason="ran")
    whole = merge_results(submission, kept, fresh)
    assert [each.name for each in whole.exercises] == ["patchify", "unpatchify"]
    assert (whole.score, whole.max_score) == (2.0, 4.0)
    assert whole.reason == "read; ran"
    assert whole.flags == ("test-cell-edited", "timeout")
    assert merge_results(submission, kept, None).reason == "read; old"


def make_keys(submission, place, **protections):
    return make_exercise_keys(submission, place, **{"sandboxed": True, "limits": Limits(), **protections})


def append_comment(path):
    path.write_text(path.read_text() + "\n# another check\n")


def find_keys_changed_by(file, submission, place):
    before = make_keys(submission, place)
    append_comment(place.checks / file)
    after = make_keys(submission, place)
    return {name for name in before if before[name] != after[name]}


def test_a_changed_check_file_changes_the_keys_of_its_exercises_alone(work, grading_place):
    submission = work().read()
    everything = {each.name for each in submission.exercises}
    assert make_keys(submission, grading_place) == make_keys(submission, grading_place)
    assert find_keys_changed_by("test_unpatchify.py", submission, grading_place) == {"unpatchify"}
    assert find_keys_changed_by("test_patchify.py", submission, grading_place) == {"patchify", "fix_patchify"}
    assert find_keys_changed_by("conftest.py", submission, grading_place) == everything


def test_content_points_secret_and_protections_change_the_keys_and_names_do_not(work, grading_place):
    submission = work().read()
    keys = make_keys(submission, grading_place)
    cheap = tuple(replace(each, max_score=1) for each in submission.exercises)
    others = [
        make_keys(work().answer(patchify="pass").read(), grading_place),
        make_keys(submission, replace(grading_place, secret=b"other")),
        make_keys(submission, grading_place, sandboxed=False),
        make_keys(submission, grading_place, limits=Limits().on("cuda:0")),
        make_keys(submission, grading_place, limits=Limits(call_seconds=9.0)),
        make_keys(replace(submission, exercises=cheap), grading_place),
    ]
    for other in others:
        assert not set(keys.values()) & set(other.values())
    assert make_keys(replace(submission, path="q", student="ben"), grading_place) == keys


def test_a_key_begins_with_what_is_the_grader_s(work, grading_place):
    keys = make_keys(work().read(), grading_place)
    prefixes = make_key_prefixes(keys, grading_place, sandboxed=True)
    patient = make_keys(work().read(), grading_place, limits=Limits(call_seconds=9.0))
    for each in (keys, patient):
        assert {name: key.partition("-")[0] for name, key in each.items()} == prefixes
    append_comment(grading_place.checks / "test_unpatchify.py")
    after = make_key_prefixes(keys, grading_place, sandboxed=True)
    assert {name for name in keys if after[name] != prefixes[name]} == {"unpatchify"}


def test_a_file_s_key_follows_its_bytes_and_the_grader_s_images(work, grading_place, tmp_path, monkeypatch):
    monkeypatch.setenv("VIT_COURSE_DATA", str(tmp_path / "data"))
    (tmp_path / "vit_cifar.safetensors").write_bytes(b"weights")

    def make_two_keys():
        found = make_keys(work("07_experiments").read(), grading_place)
        return found["vit_cifar"], found["mixup"]

    before = make_two_keys()
    assert make_two_keys() == before
    (tmp_path / "vit_cifar.safetensors").write_bytes(b"others")
    other = make_two_keys()
    assert (other[0] != before[0], other[1] == before[1]) == (True, True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cifar10.npz").write_bytes(b"images")
    there = make_two_keys()
    assert (there[0] != other[0], there[1] == other[1]) == (True, True)
