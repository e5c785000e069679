from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from vit_course.training import CheckpointError, TrainingSettings, checkpoints, fit, load_model, save_model


@pytest.fixture
def saved(tiny_model, random_dataset, tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_model(path, tiny_model(), random_dataset())
    return path


def header_of(path: Path) -> dict:
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["vit_course"])


def rewrite(path: Path, **changes: object) -> None:
    header = header_of(path) | changes
    save_file(load_file(path), path, {"vit_course": json.dumps(header)})


class TestRoundTrip:
    @pytest.mark.parametrize("positions", ["learned", "sinusoidal_2d", "none"])
    def test_weights_sizes_and_statistics_come_back(self, positions, tiny_model, random_dataset, tmp_path) -> None:
        model, dataset = tiny_model(positions=positions, image_size=(8, 12)).eval(), random_dataset()
        save_model(tmp_path / "m.safetensors", model, dataset)
        saved = load_model(tmp_path / "m.safetensors")
        images = torch.rand(2, 1, 8, 12)
        assert torch.equal(saved.model(images), model(images))
        assert saved.config == model.config
        assert (saved.dataset_name, saved.classes) == (dataset.name, dataset.classes)
        assert (saved.mean, saved.std) == (dataset.mean, dataset.std)
        assert not saved.model.training
        assert all(parameter.requires_grad for parameter in saved.model.parameters())

    def test_the_file_says_what_it_is(self, saved: Path, tiny_model) -> None:
        header = header_of(saved)
        assert header["version"] == 1
        assert header["model"]["embed_dim"] == 24
        assert set(header["data"]) == {"name", "classes", "mean", "std"}
        assert set(load_file(saved)) == set(tiny_model().state_dict())

    def test_without_a_header_the_json_beside_it_is_read(self, saved: Path) -> None:
        header = header_of(saved)
        save_file(load_file(saved), saved)
        with pytest.raises(CheckpointError, match=r"does not say which model.*no model\.json"):
            load_model(saved)
        saved.with_suffix(".json").write_text(json.dumps(header))
        assert load_model(saved).config.embed_dim == 24

    def test_loading_draws_no_random_numbers(self, saved: Path) -> None:
        state = torch.get_rng_state()
        load_model(saved)
        assert torch.equal(torch.get_rng_state(), state)

    def test_another_builder(self, tiny_model, random_dataset, tmp_path) -> None:
        def odd(config) -> nn.Module:
            model = tiny_model(image_size=config.image_size)
            model.extra = nn.Linear(2, 2)
            return model

        model = odd(tiny_model().config)
        save_model(tmp_path / "odd.safetensors", model, random_dataset())
        with pytest.raises(CheckpointError, match=r"holds extra\.bias, which that model has not"):
            load_model(tmp_path / "odd.safetensors")
        assert torch.equal(load_model(tmp_path / "odd.safetensors", odd).model.extra.weight, model.extra.weight)


class TestBadFiles:
    def test_missing(self, tmp_path) -> None:
        with pytest.raises(CheckpointError, match=r"no checkpoint .*gone\.safetensors"):
            load_model(tmp_path / "gone.safetensors")

    @pytest.mark.parametrize("kept", [0.02, 0.5, 0.99])
    def test_cut_short(self, kept: float, saved: Path) -> None:
        whole = saved.read_bytes()
        saved.write_bytes(whole[: int(kept * len(whole))])
        with pytest.raises(CheckpointError, match="was cut short or damaged"):
            load_model(saved)

    @pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, b"<html>not found</html>"])
    def test_no_safetensors_file(self, content: bytes, saved: Path) -> None:
        saved.write_bytes(content)
        with pytest.raises(CheckpointError, match="is no safetensors file"):
            load_model(saved)

    def test_a_pickle_is_not_loaded(self, saved: Path, tmp_path) -> None:
        class Trap:
            def __reduce__(self):
                return (Path.touch, (tmp_path / "sprung",))

        for write in (torch.save, lambda trap, path: path.write_bytes(pickle.dumps(trap))):
            write(Trap(), saved)
            with pytest.raises(CheckpointError, match="is a pickle"):
                load_model(saved)
        assert not (tmp_path / "sprung").exists()

    @pytest.mark.parametrize("version", [0, 2, None])
    def test_another_version(self, version: int | None, saved: Path) -> None:
        rewrite(saved, version=version)
        with pytest.raises(CheckpointError, match=f"of version {version}, and this vit_course reads version 1"):
            load_model(saved)

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"num_classes": 7}, r"head\.weight is \(10, 24\) and not \(7, 24\), and 1 more"),
            ({"embed_dim": 3_000_000}, "do not fit"),  # and cost no memory
            ({"depth": 10**12}, "describes 1000000000000 blocks and holds 32 weights"),  # nor are these built
            ({"color": "red"}, "cannot be.*color"),
            ({"embed_dim": 25}, "cannot be.*25 is not divisible"),
            (None, "has no ViTConfig"),
        ],
    )
    def test_a_model_that_cannot_be(self, changed: dict | None, words: str, saved: Path, tiny_model) -> None:
        rewrite(saved, model=changed and asdict(tiny_model().config) | changed)
        with pytest.raises(CheckpointError, match=words):
            load_model(saved)

    @pytest.mark.parametrize(
        "data",
        [
            None,
            {},
            {"name": "x", "classes": [], "mean": ["a"], "std": [1]},
            {"name": "x", "classes": [], "mean": [0.5], "std": [float("nan")]},
            {"name": "x", "classes": [], "mean": [0.5, 0.5, 0.5], "std": [1, 1, 1]},
        ],
    )
    def test_nothing_known_about_the_images(self, data: dict | None, saved: Path) -> None:
        rewrite(saved, data=data)
        with pytest.raises(CheckpointError, match="does not say what images"):
            load_model(saved)

    def test_a_folder_that_cannot_be_written_is_a_sentence_and_no_traceback(
        self, tiny_model, random_dataset, tmp_path, monkeypatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(checkpoints, "write", refuse)  # root may write everywhere
        with pytest.raises(
            CheckpointError, match=r"cannot write .*m\.safetensors, .*: Permission denied\. Make"
        ) as why:
            save_model(tmp_path / "m.safetensors", tiny_model(), random_dataset())
        assert why.value._render_traceback_() == [str(why.value)]

    def test_the_state_of_a_run_is_no_weights_file(self, tiny_model, random_dataset, tmp_path) -> None:
        dataset = random_dataset()
        fit(tiny_model(), dataset, dataset, TrainingSettings(epochs=1), folder=tmp_path, trackers=())
        with pytest.raises(CheckpointError, match=r"weights file is best\.safetensors"):
            load_model(tmp_path / "last.safetensors")
        assert load_model(tmp_path / "best.safetensors").dataset_name == "random"
