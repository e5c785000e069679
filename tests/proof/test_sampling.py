"""A sample is the same each time, and what is kept is never what other code gave."""

from types import SimpleNamespace

import pytest

from tests.proof import sampling
from tests.proof.mutants import mutants_of
from tests.proof.sampling import SHARE, kept, sampled


def test_a_sample_is_a_share_and_the_same_each_time():
    mutants = [SimpleNamespace(name=f"slip {number}") for number in range(100)]
    chosen = sampled("patchify", mutants, part=0)
    assert len(chosen) == 100 / SHARE
    parts = [sampled("patchify", mutants, part) for part in range(SHARE)]
    assert sorted(each.name for every in parts for each in every) == sorted(each.name for each in mutants)
    assert chosen == sampled("patchify", mutants, part=0) == [each for each in mutants if each in chosen]
    assert chosen != sampled("unpatchify", mutants, part=0)
    assert sampled("patchify", mutants[:1], part=0) == mutants[:1]
    assert sampled("patchify", mutants, part=None) == mutants


def test_a_real_sample_is_neither_empty_nor_everybody():
    every = [each.name for each in mutants_of("patchify")]
    assert 0 < len(sampled("patchify", mutants_of("patchify"), part=0)) < len(every)


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "code" / "a.py"
    file.parent.mkdir()
    file.write_text("1")
    sampling._digest.cache_clear()
    yield file
    sampling._digest.cache_clear()


def test_it_is_computed_once_for_the_same_code_and_again_for_other_code(tmp_path, source):
    def sampled(value):
        sampling._digest.cache_clear()  # as in another process
        return kept("patchify", lambda: value, tmp_path / "kept", [source.parent])

    assert sampled(["first"]) == sampled(["second"]) == ["first"]
    source.write_text("2")
    assert sampled(["third"]) == ["third"]
    source.with_name("b.py").write_text("")
    assert sampled(["fourth"]) == ["fourth"]
    assert len(list((tmp_path / "kept").iterdir())) == 1, "what other code gave is gone"


def test_what_is_damaged_is_computed_again_and_what_raises_is_not_kept(tmp_path, source):
    def sampled(compute):
        return kept("patchify", compute, tmp_path / "kept", [source.parent])

    assert sampled(lambda: [1]) == [1]
    (file,) = (tmp_path / "kept").rglob("*.json")
    file.write_text('[1, "hal')
    with pytest.raises(ZeroDivisionError):
        sampled(lambda: 1 / 0)
    assert sampled(lambda: [2]) == [2]


def test_another_torch_is_another_state(tmp_path, source, monkeypatch):
    assert kept("patchify", lambda: 1, tmp_path / "kept", [source.parent]) == 1
    sampling._digest.cache_clear()
    monkeypatch.setattr(sampling.torch, "__version__", "3.0")
    assert kept("patchify", lambda: 2, tmp_path / "kept", [source.parent]) == 2
