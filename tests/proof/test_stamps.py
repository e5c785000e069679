"""Which proofs a landing needs."""

from tests.proof.stamps import EVERYTHING, ROADS, changed, digest_of, stamps
from vit_course.exercises.catalog import EXERCISES


def test_every_exercise_the_machinery_and_the_roads_have_a_stamp():
    assert stamps().keys() == {EVERYTHING, ROADS, *EXERCISES}


def test_what_has_no_stamp_or_another_one_is_to_be_proved():
    assert changed({"patchify": "1", "Mlp": "2"}, {"patchify": "1", "Mlp": "3", "mixup": "4"}) == ["Mlp", "mixup"]


def test_prose_asks_for_no_proof_and_a_known_mistake_does(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.proof.stamps.ROOT", tmp_path)
    claims, program = tmp_path / "claims.py", tmp_path / "program.py"

    def digest(path, text):
        path.write_text(text)
        return digest_of([path])

    assert digest(claims, "x = 1\n") == digest(claims, "x = 1  # of one\n") != digest(claims, "x = 2\n")
    assert digest(program, "x = 1\n") != digest(program, 'x = 1\n# bug "two": x = 2\n')
