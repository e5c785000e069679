"""What is kept is never what other code gave."""

import pytest

from tests.proof import kept as keeping
from tests.proof.kept import kept


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "code" / "a.py"
    file.parent.mkdir()
    file.write_text("1")
    keeping._digest.cache_clear()
    yield file
    keeping._digest.cache_clear()


def test_it_is_computed_once_for_the_same_code_and_again_for_other_code(tmp_path, source):
    def found(value):
        keeping._digest.cache_clear()  # as in another process
        return kept("patchify", lambda: value, tmp_path / "kept", [source.parent])

    assert found(["first"]) == found(["second"]) == ["first"]
    source.write_text("2")
    assert found(["third"]) == ["third"]
    source.with_name("b.py").write_text("")
    assert found(["fourth"]) == ["fourth"]
    assert len(list((tmp_path / "kept").iterdir())) == 1, "what other code gave is gone"


def test_what_is_damaged_is_computed_again_and_what_raises_is_not_kept(tmp_path, source):
    def found(compute):
        return kept("patchify", compute, tmp_path / "kept", [source.parent])

    assert found(lambda: [1]) == [1]
    (file,) = (tmp_path / "kept").rglob("*.json")
    file.write_text('[1, "hal')
    with pytest.raises(ZeroDivisionError):
        found(lambda: 1 / 0)
    assert found(lambda: [2]) == [2]


def test_another_torch_is_another_state(tmp_path, source, monkeypatch):
    assert kept("patchify", lambda: 1, tmp_path / "kept", [source.parent]) == 1
    keeping._digest.cache_clear()
    monkeypatch.setattr(keeping.torch, "__version__", "3.0")
    assert kept("patchify", lambda: 2, tmp_path / "kept", [source.parent]) == 2
