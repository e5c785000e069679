"""What lesson 09 quotes: probe, fine-tuning and training from nothing, at 10, 100 and 1,000 images a class.

    python benchmarks/fine_tuning.py --data cifar100.npz

The task is ten superclasses of CIFAR-100 for the model that comes with the course, which has seen CIFAR-10 only.
Learning rates and weight decays are chosen on the ten *other* superclasses. Takes about half an hour on two idle cores;
a run that was stopped goes on where it was. Prints tables and writes results/fine_tuning.json.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F
from arms import Log, collect_conditions, make_parser, schedule_learning_rates
from lesson_cifar import define_from_note
from torch import Tensor, nn
from torch.optim import AdamW

from vit_course.data import SUPERCLASSES, Augmentation, Batches, ImageDataset, grouped, load_npz, split_indices
from vit_course.fine_tuning import extract_features, fine_tuning_groups, linear_probe, replace_head
from vit_course.metrics import paired_interval
from vit_course.pretrained import resize_positions
from vit_course.recording import record
from vit_course.trained import DIGEST, trained_vit
from vit_course.training import evaluate, train_one_epoch
from vit_course.vit import VisionTransformer

TASK = (
    *("aquatic mammals", "fish", "flowers", "food containers", "fruit and vegetables"),
    *("household furniture", "insects", "large natural outdoor scenes", "people", "trees"),
)
OTHERS = tuple(name for name in SUPERCLASSES if name not in TASK)
BATCH, WEIGHT_DECAY = 64, 0.05
MOVED = Augmentation(max_shift=2, flip=True)
SEEDS = {10: (0, 1, 2), 100: (0, 1, 2), 1000: (0,)}
# passes over the images: enough updates for the few, and not hours for the many
EPOCHS = {10: 40, 100: 20, 1000: 6}
LONGER = 2  # from nothing a model gets twice the passes
ZERO_HEAD, PROBE_FIRST = "one rate, zero head", "one rate, probe first"
LAST_BLOCK, LORA = "last block", "LoRA"  # what learns beside the head
PROBE, OF_MOVED = "probe", ", moved images"
EARLIER = 2  # the block before the last one
OF_EARLIER = f"probe, block {EARLIER}"  # of the class token after it
TRIED_RATES = {
    "fine-tuning": (1e-4, 3e-4, 1e-3),
    LAST_BLOCK: (3e-4, 1e-3, 3e-3, 1e-2),
    LORA: (1e-3, 3e-3, 1e-2),
    "from nothing": (2.5e-4, 5e-4, 1e-3, 2e-3),
    "one rate": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
}
TRIED_DECAYS = (1e-4, 1e-3, 1e-2, 1e-1)
BEYOND = {10: (3e-1, 1.0, 3.0, 10.0), 100: (3e-1, 1.0), 1000: (1e-6, 1e-5)}  # where the best of those was an outermost
PROBE_DECAY = 1e-1  # of the probe that a fine-tuning begins with: the best at 100 images a class
MORE_DECAYS = (1e-6, 1e-5, *TRIED_DECAYS, 3e-1, 1.0, 3.0, 10.0)  # logits need less than features do, pixels more
HEAD_FACTOR = 10  # the head's rate is so many times the backbone's
MOVED_AT = (10, 100)  # images a class
VERSIONS = 10  # of each image, shifted and mirrored, for a probe that sees what fine-tuning sees
LARGER = 48  # pixels a side
Features = tuple[Tensor, Tensor]  # with their labels
RESULTS = Path(__file__).parent / "results" / "fine_tuning.json"


@dataclass(frozen=True)
class Run:
    """One way to learn a task from so many images a class."""

    way: str
    per_class: int
    seed: int = 0
    rate: float = 0.0  # weight decay of a probe
    head_rate: float = 0.0
    task: str = "test"  # or "tuning"

    @property
    def key(self) -> str:
        return (
            f"{self.task}: {self.way}, {self.per_class} a class, rates {self.rate} {self.head_rate}, seed {self.seed}"
        )


def load_task_images(data: Path, task: str, split: str) -> ImageDataset:
    """The images of a task, with the statistics that the trained model knows."""
    saved = trained_vit()
    dataset = grouped(load_npz(data, split), TASK if task == "test" else OTHERS)
    return replace(dataset, mean=saved.mean, std=saved.std)


def draw_images(dataset: ImageDataset, per_class: int, seed: int) -> ImageDataset:
    """So many images of each class, at random."""
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed))
    labels = dataset.labels[order]
    chosen = [order[labels == label][:per_class] for label in range(len(dataset.classes))]
    return dataset.subset(torch.cat(chosen))


def train(model: nn.Module, run: Run, images: ImageDataset, test: ImageDataset, epochs: int) -> float:
    """Accuracy in [0, 1] on the test images after the last pass."""
    loader = Batches(images, BATCH, MOVED, shuffle=True, seed=run.seed)
    optimizer = AdamW(fine_tuning_groups(model, run.rate, run.head_rate), weight_decay=WEIGHT_DECAY)
    schedule_learning_rates(optimizer, epochs * len(loader))
    for _ in range(epochs):
        train_one_epoch(model, loader, optimizer, "cpu")
    return evaluate(model, Batches(test, 500), "cpu")[1]


def compute_features(model: nn.Module, images: ImageDataset) -> Features:
    """Features and labels, in the order of the images."""
    return extract_features(model, Batches(images, 500), "cpu")


def fit_probe(known: Features, weight_decay: float) -> nn.Linear:
    """A probe of the ten classes."""
    return linear_probe(*known, len(TASK), weight_decay)


def compute_accuracy(head: nn.Linear, new: Features) -> float:
    """Share of new images that a probe gets right."""
    features, labels = new
    return (head(features).argmax(dim=1) == labels).float().mean().item()


def measure_linear_probe(run: Run, images: ImageDataset, test: ImageDataset) -> float:
    """Accuracy in [0, 1] of the linear probe, on the images as they are or on several versions of each."""
    read = (
        compute_earlier_features
        if run.way.startswith(OF_EARLIER)
        else partial(extract_features, trained_vit().model, device="cpu")
    )
    is_moved = run.way.endswith(OF_MOVED)
    loader = Batches(images, 500, MOVED, seed=run.seed) if is_moved else Batches(images, 500)
    # each pass moves them anew
    features, labels = zip(*(read(loader) for _ in range(VERSIONS if is_moved else 1)), strict=True)
    return compute_accuracy(fit_probe((torch.cat(features), torch.cat(labels)), run.rate), read(Batches(test, 500)))


def compute_earlier_features(loader: Batches) -> Features:
    """The class token after the earlier block, scaled as by a norm, (images, embed_dim), and the labels."""
    features, labels = compute_features_by_block(loader, slice(1))
    return features[EARLIER], labels


def add_lora_and_head(model: nn.Module, num_classes: int) -> nn.Module:
    """The model as the function of this name in the side note on LoRA gives it."""
    names = {"torch": torch, "nn": nn, "copy": copy, "replace_head": replace_head}
    adapted: nn.Module = define_from_note("lora", names)["with_lora"](model, num_classes)
    return adapted


def make_start(run: Run, images: ImageDataset) -> nn.Module:
    """The model that a run starts from."""
    saved = trained_vit()
    if run.way == "from nothing":
        return VisionTransformer(saved.config)
    if run.way == LORA:
        return add_lora_and_head(saved.model, len(images.classes))
    model = replace_head(saved.model, len(images.classes))
    if run.way == ZERO_HEAD:
        for parameter in model.get_submodule("head").parameters():
            nn.init.zeros_(parameter)
    if run.way == PROBE_FIRST:
        head = fit_probe(compute_features(saved.model, images), PROBE_DECAY)
        model.get_submodule("head").load_state_dict(head.state_dict())
    if run.way == LAST_BLOCK:
        model.requires_grad_(False)
        for name in (f"blocks.{saved.config.depth - 1}", "norm", "head"):
            model.get_submodule(name).requires_grad_(True)
    return model


def train_and_measure(run: Run, data: Path) -> dict[str, Any]:
    """One run, alone in its process."""
    torch.set_num_threads(1)
    torch.manual_seed(run.seed)
    everything = load_task_images(data, run.task, "train")
    images = draw_images(everything, run.per_class, run.seed)
    test = load_task_images(data, run.task, "test")
    started, epochs = time.perf_counter(), EPOCHS[run.per_class]
    if run.way.startswith("probe"):
        accuracy = measure_linear_probe(run, images, test)
    else:
        passes = LONGER * epochs if run.way == "from nothing" else epochs
        accuracy = train(make_start(run, images), run, images, test, passes)
    return {**asdict(run), "accuracy": round(accuracy, 4), "seconds": round(time.perf_counter() - started, 1)}


def measure_leaky_split(
    model: nn.Module, images: ImageDataset, new: Features, seed: int, mirror_first: bool, weight_decay: float
) -> tuple[float, float]:
    """Accuracy on a fifth of images and their mirror images, and on new ones: divided after mirroring, or before."""
    mirrored = images.images.flip(-1)
    both = replace(images, images=torch.cat([images.images, mirrored]), labels=images.labels.repeat(2))
    features, labels = compute_features(model, both)
    count = len(both) if mirror_first else len(images)
    learned, held = split_indices(count, count // 5, seed)
    if not mirror_first:
        pairs = torch.arange(len(images)).repeat(2)
        learned, held = torch.isin(pairs, learned), torch.isin(pairs, held)
    head = fit_probe((features[learned], labels[learned]), weight_decay)
    return compute_accuracy(head, (features[held], labels[held])), compute_accuracy(head, new)


def measure_leaks(model: nn.Module, train_images: ImageDataset, new: Features) -> dict[str, float]:
    """Measure accuracy under a split that lets mirror images through, by weight decay; means over three seeds."""
    found = {}
    for name, mirror_first in {"mirrored, then divided": True, "divided, then mirrored": False}.items():
        for decay in TRIED_DECAYS:
            runs = [
                measure_leaky_split(model, draw_images(train_images, 20, seed), new, seed, mirror_first, decay)
                for seed in (0, 1, 2)
            ]
            held, fresh = zip(*runs, strict=True)
            found |= {f"{name}, {decay}: held back": mean(held), f"{name}, {decay}: new": mean(fresh)}
    return found


def enlarge_images(images: ImageDataset) -> ImageDataset:
    """The images at another size."""
    larger = F.interpolate(images.images.float(), size=(LARGER, LARGER), mode="bilinear", antialias=True)
    return replace(images, images=larger.round().to(torch.uint8))


def measure_at_larger_size(known: ImageDataset, test: ImageDataset, old_head: nn.Linear) -> dict[str, float]:
    """The trained model at another resolution, its positions resized or drawn anew, with a new probe and the old."""
    saved, found = trained_vit(), {}
    config = replace(saved.config, image_size=LARGER)
    for name in ("resized", "drawn anew"):
        torch.manual_seed(0)
        other, weights = VisionTransformer(config), saved.model.state_dict()
        resized = resize_positions(weights["positions"], saved.config.grid_size, config.grid_size)
        weights["positions"] = resized if name == "resized" else other.positions.detach()
        other.load_state_dict(weights)
        new = compute_features(other, enlarge_images(test))
        found[f"positions {name}"] = compute_accuracy(
            fit_probe(compute_features(other, enlarge_images(known)), PROBE_DECAY), new
        )
        found[f"positions {name}, old probe"] = compute_accuracy(old_head, new)
    return found


def compute_probe_inputs(images: ImageDataset, seed: int) -> dict[str, Features]:
    """List what a probe can be fitted on: the trained model's features or logits, a fresh one's features, pixels."""
    saved = trained_vit()
    torch.manual_seed(seed)
    fresh = VisionTransformer(saved.config)
    features, labels = compute_features(saved.model, images)
    with torch.no_grad():
        logits = saved.model.head(features)
    return {
        "features": (features, labels),
        "logits": (logits, labels),
        "never trained": compute_features(fresh, images),
        "pixels": (images.normalize(images.images).flatten(1), labels),
    }


def measure_probes_by_input(data: Path) -> dict[str, float]:
    """Accuracy of a probe on each input, for three draws, and its weight decay: the best on the other superclasses."""
    images, test = load_task_images(data, "tuning", "train"), load_task_images(data, "tuning", "test")
    known, new = compute_probe_inputs(draw_images(images, 100, 0), 0), compute_probe_inputs(test, 0)
    found = {}
    for name in known:
        tried = {decay: compute_accuracy(fit_probe(known[name], decay), new[name]) for decay in MORE_DECAYS}
        found[f"{name}: weight decay"] = choose_best(tried)
    images, test = load_task_images(data, "test", "train"), load_task_images(data, "test", "test")
    for seed in SEEDS[100]:
        known, new = compute_probe_inputs(draw_images(images, 100, seed), seed), compute_probe_inputs(test, seed)
        for name in known:
            head = fit_probe(known[name], found[f"{name}: weight decay"])
            found[f"{name}, draw {seed}"] = compute_accuracy(head, new[name])
    return found


@torch.no_grad()
def compute_features_by_block(loader: Batches, tokens: slice) -> tuple[list[Tensor], Tensor]:
    """The mean of these tokens after each block, scaled as by a norm, (images, embed_dim), and the labels."""
    saved, found, labels = trained_vit(), [], []
    for images, of_batch in loader:
        stages = record(saved.model, images)
        outputs = [stages[f"blocks.{number}.output"][:, tokens] for number in range(saved.config.depth)]
        found.append([F.layer_norm(each.mean(dim=1), (saved.config.embed_dim,)) for each in outputs])
        labels.append(of_batch)
    return [torch.cat(each) for each in zip(*found, strict=True)], torch.cat(labels)


def tune_probe_by_block(data: Path, tokens: slice) -> list[dict[float, float]]:
    """For each block, weight decay → accuracy of a probe on these tokens, on the other superclasses."""
    images, test = (
        draw_images(load_task_images(data, "tuning", "train"), 100, 0),
        load_task_images(data, "tuning", "test"),
    )
    (known, labels), (new, of_new) = (compute_features_by_block(Batches(each, 500), tokens) for each in (images, test))
    return [
        {decay: compute_accuracy(fit_probe((one, labels), decay), (other, of_new)) for decay in MORE_DECAYS}
        for one, other in zip(known, new, strict=True)
    ]


def measure_probe_by_block(data: Path) -> dict[str, float]:
    """Accuracy of a probe after each block, for three draws; its weight decay, and what it reaches on the others."""
    images, test = load_task_images(data, "test", "train"), load_task_images(data, "test", "test")
    found = {}
    for name, tokens in {"mean patch": slice(1, None), "class token": slice(1)}.items():
        others, (new, of_new) = tune_probe_by_block(data, tokens), compute_features_by_block(Batches(test, 500), tokens)
        decays = [choose_best(tried) for tried in others]
        for number, (decay, tried) in enumerate(zip(decays, others, strict=True)):
            found[f"{name} after block {number}: weight decay"] = decay
            found[f"{name} after block {number}: other superclasses"] = tried[decay]
        for seed in SEEDS[100]:
            known, labels = compute_features_by_block(Batches(draw_images(images, 100, seed), 500), tokens)
            for number, (features, decay) in enumerate(zip(known, decays, strict=True)):
                head = fit_probe((features, labels), decay)
                found[f"{name} after block {number}, draw {seed}"] = compute_accuracy(head, (new[number], of_new))
    return found


def count_old_head_answers(model: VisionTransformer, new: Features) -> dict[str, float]:
    """The three classes that the old head answers most often for each new class, with their shares."""
    features, labels = new
    with torch.no_grad():
        answers = model.head(features).argmax(dim=1)
    known, found = trained_vit().classes, {}
    for label, name in enumerate(TASK):
        shares = answers[labels == label].bincount(minlength=len(known)) / (labels == label).sum()
        found |= {f"{name} called {known[each]}": shares[each].item() for each in shares.argsort(descending=True)[:3]}
    return found


def measure_feature_similarity(known: Features, new: Features) -> dict[str, float]:
    """Return how alike the features of test and training images are."""
    cosines = F.normalize(new[0], dim=1) @ F.normalize(known[0], dim=1).T
    return {
        "most alike test and training image": cosines.max().item(),
        "pairs with a cosine above 0.999": float((cosines > 0.999).sum()),
    }


def measure_nearest_neighbor_accuracy(known: Features, new: Features) -> dict[str, float]:
    """Return how often the nearest training image has the right class."""
    cosines = F.normalize(new[0], dim=1) @ F.normalize(known[0], dim=1).T
    return {"nearest training image right": (known[1][cosines.argmax(dim=1)] == new[1]).float().mean().item()}


def measure_demonstrations(data: Path) -> dict[str, float]:
    """Measure what the lesson shows in seconds: old answers, near-copies, probes, a leak, another resolution."""
    saved = trained_vit()
    train_images, test = load_task_images(data, "test", "train"), load_task_images(data, "test", "test")
    known, new = draw_images(train_images, 100, 0), compute_features(saved.model, test)
    features = compute_features(saved.model, known)
    found = {
        **count_old_head_answers(saved.model, new),
        **measure_feature_similarity(features, new),
        **measure_nearest_neighbor_accuracy(features, new),
        **measure_probes_by_input(data),
        **measure_probe_by_block(data),
        **measure_leaks(saved.model, train_images, new),
        **measure_at_larger_size(known, test, fit_probe(features, PROBE_DECAY)),
    }
    return {name: round(value, 4) for name, value in found.items()}


def list_tuning_runs() -> list[Run]:
    """Return what is tried on the other superclasses: probes at every number of images, the rest at 100 a class."""
    tried = {count: (*TRIED_DECAYS, *BEYOND.get(count, ())) for count in SEEDS}
    probes = [
        Run(way + moved, count, rate=rate, task="tuning")
        for way in (PROBE, OF_EARLIER)
        for moved, counts in (("", SEEDS), (OF_MOVED, MOVED_AT))
        for count in counts
        for rate in tried[count]
    ]
    fine = [
        Run(way, 100, 0, rate, round(HEAD_FACTOR * rate, 6), "tuning")
        for way in ("fine-tuning", LAST_BLOCK)
        for rate in TRIED_RATES[way]
    ]
    with_one = ("from nothing", "one rate", LORA)
    one = [Run(way, 100, 0, rate, rate, "tuning") for way in with_one for rate in TRIED_RATES[way]]
    return [*probes, *fine, *one]


def choose_best(tried: Mapping[float, float]) -> float:
    """The rate, or weight decay, with the highest accuracy; of equals the largest."""
    return max(tried, key=lambda rate: (tried[rate], rate))


def find_best_rate(done: dict[str, dict[str, Any]], way: str, per_class: int) -> float:
    """The rate that was best on the other superclasses."""
    wanted = ("tuning", way, per_class)
    runs = (run for run in done.values() if (run["task"], run["way"], run["per_class"]) == wanted)
    return choose_best({run["rate"]: run["accuracy"] for run in runs})


def test_runs(done: dict[str, dict[str, Any]]) -> list[Run]:
    """What the lesson quotes."""
    fine, nothing, one = (find_best_rate(done, way, 100) for way in ("fine-tuning", "from nothing", "one rate"))
    high, runs = round(HEAD_FACTOR * fine, 6), []
    for count, seeds in SEEDS.items():
        for seed in seeds:
            runs += [Run(way, count, seed, find_best_rate(done, way, count)) for way in (PROBE, OF_EARLIER)]
            runs.append(Run("fine-tuning", count, seed, fine, high))
            runs.append(Run("from nothing", count, seed, nothing, nothing))
    for count in MOVED_AT:
        for way in (PROBE + OF_MOVED, OF_EARLIER + OF_MOVED):
            runs += [Run(way, count, seed, find_best_rate(done, way, count)) for seed in SEEDS[count]]
    block, lora = (find_best_rate(done, way, 100) for way in (LAST_BLOCK, LORA))
    for seed in SEEDS[100]:
        runs.append(Run(LAST_BLOCK, 100, seed, block, round(HEAD_FACTOR * block, 6)))
        runs.append(Run(LORA, 100, seed, lora, lora))
        runs.append(Run("both rates low", 100, seed, fine, fine))
        runs.append(Run("both rates high", 100, seed, high, high))
    runs += [Run(way, 100, 0, one, one) for way in ("one rate", ZERO_HEAD, PROBE_FIRST)]
    return runs


def describe_conditions() -> dict[str, Any]:
    """All that the numbers depend on."""
    training = {"batch_size": BATCH, "weight_decay": WEIGHT_DECAY, "epochs": EPOCHS, "from_nothing_times": LONGER}
    return collect_conditions("fine_tuning", device="cpu, 1 thread", model=DIGEST, task=TASK, training=training)


def format_table(done: dict[str, dict[str, Any]]) -> str:
    """Accuracy on the test images of each way: mean, each seed, and the difference from the probe's."""
    lines = []
    for count in SEEDS:
        at = [run for run in done.values() if run["task"] == "test" and run["per_class"] == count]
        ways = {run["way"]: [100 * each["accuracy"] for each in at if each["way"] == run["way"]] for run in at}
        for way, accuracies in ways.items():
            line = f"{count:5} a class  {way:16} {mean(accuracies):5.1f}   "
            line += "  ".join(f"{accuracy:.1f}" for accuracy in accuracies)
            if way != PROBE and len(accuracies) > 1:
                line += "   from the probe {:+.1f} ± {:.1f}".format(*paired_interval(accuracies, ways[PROBE]))
            lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = make_parser(__doc__, RESULTS, "cifar100.npz")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="runs at a time, a core each (default: 2)")
    arguments = parser.parse_args()
    log = Log(arguments.output, describe_conditions())
    for runs in (list_tuning_runs, lambda: test_runs(log.found["runs"])):
        wanted = {("runs", run.key): (run,) for run in runs()}
        log.measure_missing(wanted, partial(train_and_measure, data=arguments.data), arguments.at_once)
    torch.set_num_threads(1)
    log.measure_once("shown", by=partial(measure_demonstrations, arguments.data))
    print(format_table(log.found["runs"]))


if __name__ == "__main__":
    main()
