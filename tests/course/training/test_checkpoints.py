from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from vit_course.training import CheckpointError, TrainingSettings, checkpoints, fit, load_model, save_model

Damage = Callable[[Path], object]


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


def cut(share: float) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def fill(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content)


def change(**header: object) -> Damage:
    return lambda path: rewrite(path, **header)


def change_model(**sizes: object) -> Damage:
    return lambda path: rewrite(path, model=header_of(path)["model"] | sizes)


def change_data(**fields: object) -> Damage:
    return change(data={"name": "x", "classes": []} | fields)


CUT, NO_FILE, NO_DATA = "was cut short or damaged", "is no safetensors file", "does not say what images"
OF_VERSION = "of version {}, and this vit_course reads version 1"
DAMAGES: list[tuple[Damage, str]] = [
    (Path.unlink, r"no checkpoint .*model\.safetensors"),
    *((cut(share), CUT) for share in (0.02, 0.5, 0.99)),
    *((fill(content), NO_FILE) for content in (b"", b"hello", b"\x00" * 100, b"<html>not found</html>")),
    *((change(version=version), OF_VERSION.format(version)) for version in (0, 2, None)),
    (change_model(num_classes=7), r"head\.weight is \(10, 24\) and not \(7, 24\), and 1 more"),
    (change_model(embed_dim=3_000_000), "do not fit"),  # and cost no memory
    (change_model(depth=10**12), "describes 1000000000000 blocks and holds 32 weights"),  # nor are these built
    (change_model(color="red"), "cannot be.*color"),
    (change_model(embed_dim=25), "cannot be.*25 is not divisible"),
    (change(model=None), "has no ViTConfig"),
    *((change(data=data), NO_DATA) for data in (None, {})),
    (change_data(mean=["a"], std=[1]), NO_DATA),
    (change_data(mean=[0.5], std=[float("nan")]), NO_DATA),
    (change_data(mean=[0.5, 0.5, 0.5], std=[1, 1, 1]), NO_DATA),
]


class TestBadFiles:
    @pytest.mark.parametrize(("damage", "words"), DAMAGES)
    def test_a_damage_is_named(self, damage: Damage, words: str, saved: Path) -> None:
        damage(saved)
        with pytest.raises(CheckpointError, match=words):
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
