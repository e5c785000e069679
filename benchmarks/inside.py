"""What lesson 08 quotes of its two models: covered patches, heads taken out, how far heads look, what probes read.

    python benchmarks/inside.py --data cifar10.npz

Measures with the functions that the lesson itself defines, read from solutions/08_inside.py. The small model of the
drawings is trained anew from three seeds; the model of the photos is the one that comes with the course, seen through
three draws of photos, the first of them the lesson's. Takes twelve minutes on a core; a run that was stopped goes on
where it was. Writes results/inside.json.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from arms import Log, collect_conditions, make_parser
from lesson_cifar import define_from_lesson, define_from_note
from torch import Tensor

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, ImageDataset, load_npz, shapes, train_validation_split
from vit_course.interpret import attention_rollout, mean_attention_distance, record
from vit_course.trained import DIGEST, trained_vit
from vit_course.training import TrainingSettings, fit
from vit_course.vit import VisionTransformer

RESULTS = Path(__file__).parent / "results" / "inside.json"
SEEDS = (0, 1, 2)
SMALL = ViTConfig(image_size=32, patch_size=4, embed_dim=64, depth=3, num_heads=4, mlp_ratio=2.0)


def load_lesson_functions(model: VisionTransformer, pictures: ImageDataset) -> dict[str, Any]:
    """The functions of lesson 08, which look for model, config and pictures among their own global names."""
    names: dict[str, Any] = {"torch": torch, "F": F, "record": record}
    names |= {"model": model.eval(), "config": model.config, "pictures": pictures}
    return define_from_note("where_the_answer_arises", define_from_lesson("08_inside", names))


def measure_covering(lesson: dict[str, Any], fresh: VisionTransformer, images: Tensor) -> dict[str, Any]:
    """Accuracy with nothing covered, with random patches covered, and with those that each map names most and least."""
    covered, right, look, taken = (lesson[name] for name in ("covered", "right", "look", "taken"))
    weights = look(images)[1]
    seen = {
        "last block": taken(weights[-1]).mean(dim=1).flatten(1),  # (images, num_patches)
        "rollout": taken(attention_rollout(weights)[:, None]).flatten(1),
        "fresh model": taken(attention_rollout(look(images, fresh)[1])[:, None]).flatten(1),
        "gradient": lesson["gradient_map"](images),
    }
    generator = torch.Generator().manual_seed(0)
    orders = torch.rand(10, len(images), lesson["config"].num_patches, generator=generator).argsort(dim=2)
    found: dict[str, Any] = {"nothing": right(images), "random": [right(covered(images, order)) for order in orders]}
    for name, shares in seen.items():
        most, least = (covered(images, shares.argsort(dim=1, descending=way)) for way in (True, False))
        found[name] = {"most": right(most), "least": right(least)}
    return found


def measure_head_distances(lesson: dict[str, Any], images: Tensor) -> list[list[float]]:
    """For each block and head: by how many pixels it looks nearer than its control."""
    config, weights = lesson["config"], lesson["look"](images)[1]
    each = [
        mean_attention_distance(lesson["averaged"](layer), config.grid_size, config.patch_size)
        - mean_attention_distance(layer, config.grid_size, config.patch_size)
        for layer in weights
    ]
    return [layer.tolist() for layer in each]


def train_on_drawings(config: ViTConfig, seed: int) -> tuple[VisionTransformer, ImageDataset, float]:
    """A model of the drawings, 1,000 that it has not seen, and its accuracy on them."""
    torch.manual_seed(seed)
    model = VisionTransformer(config)
    train, pictures = train_validation_split(shapes(7000), 1000)
    shifted = Augmentation(max_shift=2)
    settings = TrainingSettings(
        6, 64, learning_rate=2e-3, muon_learning_rate=0.02, augmentation=shifted, seed=seed, device="cpu"
    )
    history = fit(model, train, pictures, settings, progress=False)
    return model, pictures, history.validation_accuracy[-1]


def measure_heads(seed: int) -> dict[str, Any]:
    """Models of the drawings: by how much heads look nearer than their controls, and attention's share in a token."""
    found: dict[str, Any] = {}
    for name, std in (("positions from 0.02", 0.02), ("positions from 0.5", 0.5)):
        model, pictures, _ = train_on_drawings(replace(SMALL, position_std=std), seed)
        lesson, images = load_lesson_functions(model, pictures), pictures.images[:200]
        found[name] = {
            "nearer_than_control": measure_head_distances(lesson, images),
            "shares": lesson["attention_shares"](images),
        }
    return found


def measure_small_model(seed: int) -> dict[str, Any]:
    """The model of the drawings, trained from a seed: covering and ablation on the first 500 it has not seen."""
    model, pictures, accuracy = train_on_drawings(SMALL, seed)
    lesson, images = load_lesson_functions(model, pictures), pictures.images[:500]
    torch.manual_seed(1)
    ablation = {
        name: [
            [lesson["right_without"](block, head, images, mean) for head in range(SMALL.num_heads)]
            for block in range(SMALL.depth)
        ]
        for name, mean in (("zeros", False), ("mean", True))
    }
    covered = measure_covering(lesson, VisionTransformer(SMALL).eval(), images)
    return {"accuracy": accuracy, "covering": covered, "ablation": ablation}


def load_course_photos(data: Path, draw: int) -> ImageDataset:
    """The photos of a draw; the first draw is the lesson's, the first photos."""
    saved = trained_vit()
    test = replace(load_npz(data, "test"), mean=saved.mean, std=saved.std)
    if not draw:
        return test.subset(slice(4_000))
    return test.subset(torch.randperm(len(test), generator=torch.Generator().manual_seed(draw))[:4_000])


def probe_patches_before_blocks(data: Path) -> float:
    """Return what a probe reads from the mean patch of the lesson's photos."""
    saved, test = trained_vit(), load_course_photos(data, 0)
    with torch.no_grad():
        patches = saved.model.eval().patch_embedding(test.normalize(test.images)).mean(dim=1)
    return float(load_lesson_functions(saved.model, test)["probed"](patches, test.labels))


def measure_head_after_each_block(data: Path) -> list[float]:
    """Return what the course's model's own head reads from the class token after each block, on the lesson's photos."""
    test = load_course_photos(data, 0)
    lesson = load_lesson_functions(trained_vit().model, test)
    return [lesson["head_reads"](pair, test.labels) for pair in lesson["token_means"](test.images)]


def measure_course_model(data: Path, draw: int) -> dict[str, Any]:
    """The course's model: covering on 200 test photos, distances on 100, and what probes read after each block."""
    saved, test = trained_vit(), load_course_photos(data, draw)
    lesson = load_lesson_functions(saved.model, test)
    torch.manual_seed(1)
    fresh = VisionTransformer(saved.config).eval()
    after = lesson["token_means"](test.images)
    return {
        "covering": measure_covering(lesson, fresh, test.images[:200]),
        "nearer_than_control": measure_head_distances(lesson, test.images[:100]),
        "class_token": [lesson["probed"](pair[:, 0], test.labels) for pair in after],
        "patches": [lesson["probed"](pair[:, 1], test.labels) for pair in after],
    }


def main() -> None:
    arguments = make_parser(__doc__, RESULTS).parse_args()
    torch.set_num_threads(1)
    log = Log(arguments.output, collect_conditions("inside", model=DIGEST))
    log.measure_once("photos_before_any_block", by=partial(probe_patches_before_blocks, arguments.data))
    log.measure_once("photos_read_by_the_head", by=partial(measure_head_after_each_block, arguments.data))
    ways = {
        "photos": partial(measure_course_model, arguments.data),
        "drawings": measure_small_model,
        "heads": measure_heads,
    }
    for seed in SEEDS:
        for name, measure in ways.items():
            log.measure_once(name, str(seed), by=partial(measure, seed))
    for name in ("photos", "drawings"):
        for seed, found in log.found[name].items():
            for way, each in found["covering"].items():
                print(f"{name}, {seed}, covered by {way:11} {each}")


if __name__ == "__main__":
    main()
