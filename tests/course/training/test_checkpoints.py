from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from vit_course.training import CheckpointError, TrainingSettings, checkpoints, fit, load_model, save_model

Damage = Callable[[Path], object]


@pytest.fixture
def saved_model(tiny_model, random_dataset, tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_model(path, tiny_model(), random_dataset())
    return path


def read_header(path: Path) -> dict:
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["vit_course"])


def rewrite_file(path: Path, tensors: dict[str, torch.Tensor], **changes: object) -> None:
    header = read_header(path) | changes
    save_file(load_file(path) | tensors, path, {"vit_course": json.dumps(header)})


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

    def test_without_a_header_the_json_beside_it_is_read(self, saved_model: Path) -> None:
        header = read_header(saved_model)
        save_file(load_file(saved_model), saved_model)
        with pytest.raises(CheckpointError, match=r"does not say which model.*no model\.json"):
            load_model(saved_model)
        saved_model.with_suffix(".json").write_text(json.dumps(header))
        assert load_model(saved_model).config.embed_dim == 24

    def test_loading_draws_no_random_numbers(self, saved_model: Path) -> None:
        state = torch.get_rng_state()
        load_model(saved_model)
        assert torch.equal(torch.get_rng_state(), state)


def make_file_cutter(share: float) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def make_file_filler(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content)


def make_header_changer(**header: object) -> Damage:
    return lambda path: rewrite_file(path, {}, **header)


def make_model_changer(**sizes: object) -> Damage:
    return lambda path: rewrite_file(path, {}, model=read_header(path)["model"] | sizes)


def make_data_changer(**fields: object) -> Damage:
    return make_header_changer(data={"name": "x", "classes": []} | fields)


CUT, NO_FILE, NO_DATA = "was cut short or damaged", "is no safetensors file", "does not say what images"
OF_VERSION = "of version {}, and this vit_course reads version 1"
DAMAGES: list[tuple[Damage, str]] = [
    (Path.unlink, r"no checkpoint .*model\.safetensors"),
    *((make_file_cutter(share), CUT) for share in (0.02, 0.5, 0.99)),
    *((make_file_filler(content), NO_FILE) for content in (b"", b"hello", b"\x00" * 100, b"<html>not found</html>")),
    *((make_header_changer(version=version), OF_VERSION.format(version)) for version in (0, 2, None)),
    (lambda path: rewrite_file(path, {"extra": torch.zeros(2)}), "holds extra, which that model has not"),
    (make_model_changer(num_classes=7), r"head\.weight is \(10, 24\) and not \(7, 24\), and 1 more"),
    (make_model_changer(embed_dim=3_000_000), "do not fit"),  # and cost no memory
    (make_model_changer(depth=10**12), "describes 1000000000000 blocks and holds 32 weights"),  # nor are these built
    (make_model_changer(color="red"), "cannot be.*color"),
    (make_model_changer(embed_dim=25), "cannot be.*25 is not divisible"),
    (make_header_changer(model=None), "has no ViTConfig"),
    *((make_header_changer(data=data), NO_DATA) for data in (None, {})),
    (make_data_changer(mean=["a"], std=[1]), NO_DATA),
    (make_data_changer(mean=[0.5], std=[float("nan")]), NO_DATA),
    (make_data_changer(mean=[0.5, 0.5, 0.5], std=[1, 1, 1]), NO_DATA),
]


class TestBadFiles:
    @pytest.mark.parametrize(("damage", "words"), DAMAGES)
    def test_a_damage_is_named(self, damage: Damage, words: str, saved_model: Path) -> None:
        damage(saved_model)
        with pytest.raises(CheckpointError, match=words):
            load_model(saved_model)

    def test_a_pickle_is_not_loaded(self, saved_model: Path, tmp_path) -> None:
        class Trap:
            def __reduce__(self):
                return (Path.touch, (tmp_path / "sprung",))

        for write in (torch.save, lambda trap, path: path.write_bytes(pickle.dumps(trap))):
            write(Trap(), saved_model)
            with pytest.raises(CheckpointError, match="is a pickle"):
                load_model(saved_model)
        assert not (tmp_path / "sprung").exists()

    def test_a_folder_that_cannot_be_written_is_a_sentence_and_no_traceback(
        self, tiny_model, random_dataset, tmp_path, monkeypatch
    ) -> None:
        denied = Mock(side_effect=PermissionError(13, "Permission denied"))  # root may write everywhere
        monkeypatch.setattr(checkpoints, "write", denied)
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
