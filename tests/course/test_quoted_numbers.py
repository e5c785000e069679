"""Numbers that lessons and pages quote are those of the logs that they name."""

from __future__ import annotations

import json
import math
from math import sqrt
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import pytest
import torch

from exercise_kit.authoring.lesson import read_lesson
from exercise_kit.engine.lesson_answers import load_right_objects
from vit_course.metrics import paired_interval
from vit_course.recipes import RECIPES
from vit_course.staff.quoted import LUNCHES
from vit_course.trained import DIGEST

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def read_lesson_text(lesson: str) -> str:
    """A lesson's text, its lines joined."""
    cells = read_lesson(ROOT, ROOT / "solutions" / f"{lesson}.py").cells
    return " ".join(word for cell in cells for word in cell.source.split())


def read_page(path: str) -> str:
    """A page's text, its lines joined."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def read_note(name: str) -> str:
    """A side note's text, its lines joined."""
    return read_page(f"docs/site/notes/{name}.md")


START, TRAINING, EXPERIMENTS = (read_lesson_text(name) for name in ("00_start", "06_training", "07_experiments"))
SEEDS, PAIRS, AND_CNN, BROKEN, OVERSURE = (
    read_note(name) for name in ("three_seeds", "pairing", "vit_and_cnn", "broken_vits", "overconfidence")
)


def read_results(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / name).read_text())


def list_percents(accuracies: list[float]) -> str:
    *first, last = (f"{each:.1f}" for each in accuracies)
    return f"{', '.join(first)} and {last} %"


def write_table_cell(accuracies: list[float]) -> str:
    return ", ".join(f"{each:.1f}" for each in accuracies)


def write_interval(arm: list[float], baseline: list[float]) -> str:
    """The mean of the paired differences, and half the width of its 95 % t interval, as lessons write it."""
    gap, half = paired_interval(arm, baseline)
    return f"{gap:+.1f} ± {half:.1f}".replace("-", "−")


CIFAR = read_results("lesson_cifar.json")
ARMS = {arm: [100 * run["validation_accuracy"][-1] for run in runs.values()] for arm, runs in CIFAR["results"].items()}
BASELINES = {
    "few images, shifted and flipped": "few images",
    "few images, shifted, flipped and mixed": "few images",
    "few images, shifted, flipped, stochastic depth": "few images",
    "lab sheet": "sine positions",
    "lab sheet, softmax before the loss": "lab sheet",
    "small positions, scrambled": "small positions",
}


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_of_the_experiments_is_quoted_from_its_runs(arm):
    assert len(ARMS[arm]) == 3
    text = AND_CNN if arm == "convolutions" else EXPERIMENTS
    assert list_percents(ARMS[arm]) in text
    if arm not in ("base", "few images"):
        assert write_interval(ARMS[arm], ARMS[BASELINES.get(arm, "base")]) in text


def test_how_long_the_six_experiments_took_is_quoted_from_their_runs():
    later = ("scrambled", "small positions, scrambled", "convolutions")
    seconds = [run["seconds"][0] for arm, runs in CIFAR["results"].items() if arm not in later for run in runs.values()]
    assert f"are {len(seconds)} trainings, which took us {sum(seconds) / 60:.0f} minutes of one CPU core" in EXPERIMENTS
    assert 75 < median(seconds) < 80
    assert "half of them less than 80 seconds each" in EXPERIMENTS


def test_which_intervals_hold_0_is_said_as_it_is():
    beyond = {
        arm
        for arm in ARMS.keys() - {"base", "few images"}
        if abs((found := paired_interval(ARMS[arm], ARMS[BASELINES.get(arm, "base")]))[0]) > found[1]
    }
    assert ARMS.keys() - beyond == {"base", "few images", "patches of 4", "mean of the tokens", "scrambled"}
    gap, half = paired_interval(ARMS["no positions"], ARMS["small positions"])
    assert abs(gap) < half


@pytest.mark.parametrize("arm", sorted(ARMS.keys() - {"base", "few images"} - BASELINES.keys()))
def test_which_verdicts_hang_on_pairs_is_said_as_it_is(arm):
    gap, paired = paired_interval(ARMS[arm], ARMS["base"])
    unpaired = 2.78 * sqrt((stdev(ARMS[arm]) ** 2 + stdev(ARMS["base"]) ** 2) / 3)
    turns = (abs(gap) > paired) != (abs(gap) > unpaired)
    assert turns == (arm in ("sine positions", "patches of 4", "mean of the tokens"))
    if turns:
        quoted = f"{gap:+.1f} ± {paired:.1f} with".replace("-", "−")
        assert any(f"{quoted}{pairs}, ± {unpaired:.1f} without" in PAIRS for pairs in (" pairs", ""))


def test_the_convnet_is_trained_at_the_best_of_the_rates_that_were_tried():
    rates = CIFAR["convnet_rates"]
    assert CIFAR["arms"]["convolutions"]["learning_rate"] == float(max(rates, key=lambda rate: rates[rate]))
    assert list_percents([100 * accuracy for accuracy in rates.values()]) in AND_CNN


def test_first_epochs_and_overfitting_are_reported_as_they_were():
    base = CIFAR["results"]["base"]["0"]
    first, *_, last = (100 * share for share in base["validation_accuracy"])
    assert f"{first:.1f} % right after the first epoch and {last:.1f} % after the sixth" in TRAINING
    first, second = ([f"{base[f'{which}_loss'][epoch]:.2f}" for which in ("validation", "train")] for epoch in (0, 1))
    assert f"({' and '.join(first)}, then {' and '.join(second)})" in TRAINING
    for seed, run in CIFAR["results"]["few images"].items():
        losses, accuracies = run["validation_loss"], run["validation_accuracy"]
        best = losses.index(min(losses))
        assert f"from {100 * accuracies[best]:.1f} to {100 * accuracies[-1]:.1f} %" in TRAINING
        if seed == "0":
            quoted = f"after epoch {best + 1} ({losses[best]:.2f}), and {losses[-1]:.2f} after epoch {len(losses)}"
            assert quoted in TRAINING


def test_models_to_hand_in_reach_what_the_table_of_lesson_07_promises():
    first, with_muon = (read_results("hand_in.json")["results"][name] for name in ("as they are", "patches of 4, Muon"))
    shares = [100 * first[f"{split}_accuracy"] for split in ("validation", "test")]
    assert "got {:.1f} % of the validation photos and {:.1f} % of all test photos".format(*shares) in EXPERIMENTS
    assert f"Patches of 4 with Muon reached {100 * with_muon['test_accuracy']:.1f} %" in EXPERIMENTS
    wide = [read_results(f"hand_in/wide-{seed}.json") for seed in range(3)]
    reached, minutes = [100 * each["test"]["top1"] for each in wide], [each["seconds"] / 60 for each in wide]
    assert f"row {min(reached):.1f} to {max(reached):.1f} % (three seeds)" in EXPERIMENTS
    assert f"| {min(minutes):.0f} to {max(minutes):.0f} |" in EXPERIMENTS
    coffee = [read_results(f"recipes/cpu-coffee-{seed}.json") for seed in range(3)]
    reached = [100 * each["test"]["top1"] for each in coffee]
    work = sum(each["cpu_seconds"] for each in coffee) / len(coffee) / 60
    assert f"{min(reached):.1f} to {max(reached):.1f} % (three seeds) for {work:.0f} minutes of one core" in EXPERIMENTS
    assert 50 < shares[1] < 60
    assert with_muon["test_accuracy"] > 0.65
    for run, rows in ((first, "| 50 % | + 1.5 | as they are"), (with_muon, "| 65 % | + 1.5 | the same")):
        assert f"{rows} | {run['seconds'] / 60:.0f} |" in EXPERIMENTS


@pytest.mark.parametrize("arm", ["constant rate", "no weight decay", "SGD, 0.1"])
def test_what_each_training_tool_adds_is_quoted_from_its_runs(arm):
    runs = read_results("training_tools.json")["results"]
    each = [100 * run["accuracy"] for run in runs[arm].values()]
    assert f"| {write_table_cell(each)} | {write_interval(each, ARMS['base'])} |" in TRAINING
    others = {rate: 100 * runs[f"SGD, {rate}"]["0"]["accuracy"] for rate in (0.03, 0.3)}
    assert f"tried with seed 0 (0.03 reached {others[0.03]:.1f} %, 0.3 reached {others[0.3]:.1f} %)" in TRAINING


MODERN, MODERN_RUNS = read_lesson_text("10_modern"), read_results("modern.json")["results"]
CHANGES = {
    arm: [100 * run["validation_accuracy"][-1] for run in runs.values()]
    for arm, runs in MODERN_RUNS.items()
    if " at " not in arm  # a rate that was tried, from one seed
}


WITH_SCALE = ("", ", LayerScale")


def list_last_losses(arm: str) -> list[float]:
    return [run["validation_loss"][-1] for run in MODERN_RUNS[arm].values()]


def write_loss_interval(arm: str, baseline: str) -> str:
    gap, half = paired_interval(list_last_losses(arm), list_last_losses(baseline))
    return f"{gap:+.2f} ± {half:.2f}".replace("-", "−")


@pytest.mark.parametrize("arm", CHANGES)
def test_every_change_of_lesson_10_is_quoted_from_its_runs(arm):
    assert len(CHANGES[arm]) == 3
    group, _, change = arm.partition(", ")
    is_baseline = arm == "plain" or any(other.startswith(f"{arm}, ") for other in CHANGES)
    baseline = CHANGES[group if change else "plain"]
    difference = "" if is_baseline else f"{write_interval(CHANGES[arm], baseline)} "
    name = arm.replace("rotary positions", "rotary, not learned")
    assert f"| {name} | {write_table_cell(CHANGES[arm])} | {difference}|" in MODERN


def test_what_lesson_10_compares_with_the_plain_model_follows_from_its_runs():
    assert f"normal rate ({write_interval(CHANGES['high rate, QK-norm'], CHANGES['plain'])})" in MODERN
    assert f"than four blocks ({write_interval(CHANGES['sixteen blocks'], CHANGES['plain'])})" in MODERN
    assert f"than the four ({write_interval(CHANGES['sixteen blocks, LayerScale'], CHANGES['plain'])})" in MODERN
    assert MODERN.count(f"of their loss, {write_loss_interval('rotary positions', 'plain')}, contains 0") == 2


def test_how_long_the_experiment_takes_is_quoted_from_its_runs():
    seconds = {arm: sum(sum(run["seconds"]) for run in MODERN_RUNS[arm].values()) for arm in CHANGES}
    assert f"that took us {sum(seconds.values()) / 60:.0f} minutes" in MODERN
    always = sum(seconds[arm] for arm in ("plain", "high rate", "high rate, QK-norm"))
    shortest, *_, longest = sorted(seconds[arm] for arm in list(CHANGES)[1:7])
    assert 18 * 60 < always + 2 * shortest < always + 2 * longest < 22 * 60
    assert "are 15 models, and took us about twenty minutes" in MODERN


def test_rotary_positions_are_compared_with_the_other_positions_of_lesson_07():
    rotary = CHANGES["rotary positions"]
    none, small, sine = (ARMS[f"{name} positions"] for name in ("no", "small", "sine"))
    assert f"({list_percents(none)}) rotary ones gain {write_interval(rotary, none).lstrip('+')} points" in MODERN
    against = write_interval(rotary, small).lstrip("+")
    assert f"do ({list_percents(small)}), {against}." in MODERN
    assert f"rotary wins by {against} points" in MODERN
    assert f"these runs show no difference ({write_interval(rotary, sine)})" in MODERN


def test_lesson_10_sets_its_changes_beside_what_lesson_07_found():
    assert (
        f"gained {write_interval(ARMS['few images, shifted and flipped'], ARMS['few images']).lstrip('+')} points"
        in MODERN
    )
    assert f"reached {list_percents(ARMS['convolutions'])} on the same images" in MODERN
    assert f"The best row here has {max(map(max, CHANGES.values())):.1f} % at most" in MODERN


def test_how_often_three_seeds_show_a_gain_is_what_chance_makes_of_it():
    noise = torch.randn(40_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shares = {}
    for gain in (2, 4):
        differences = gain + 1.27 * noise  # the spread of the test above
        shares[gain] = (differences.mean(1) > 4.303 * differences.std(1) / sqrt(3)).double().mean().item()
    assert shares == pytest.approx({2: 1 / 3, 4: 4 / 5}, abs=0.03)
    assert "a true gain of four points would show in about four tables out of five, one of two points in one" in MODERN


def test_what_three_seeds_can_show_follows_from_the_plain_table():
    pairs = [(each, CHANGES["plain"]) for arm, each in list(CHANGES.items())[1:8]]
    spread = median(stdev([one - other for one, other in zip(*pair, strict=True)]) for pair in pairs)
    assert f"a standard deviation of {spread:.1f} points" in MODERN
    assert f"an interval of ± {median(paired_interval(*pair)[1] for pair in pairs):.1f}:" in MODERN
    assert 2.306 * spread / sqrt(9) < 1 < 2.365 * spread / sqrt(8)  # Student's t of nine and of eight seeds
    assert "For ± 1 it would take nine seeds" in MODERN


def test_drop_path_slows_overfitting_and_its_best_epoch_is_no_better():
    names = ("few images", "few images, DropPath")
    runs = [[run["validation_loss"] for run in MODERN_RUNS[arm].values()] for arm in names]
    lowest = [[min(losses) for losses in each] for each in runs]
    epochs = [losses.index(min(losses)) + 1 for each in runs for losses in each]
    without, with_it = (f"{min(ends):.2f} to {max(ends):.2f}" for ends in map(list_last_losses, names))
    assert f"it is {without} without and {with_it} with it" in MODERN
    assert min(map(min, map(list_last_losses, names))) > math.log(10)
    assert f"after epochs {min(epochs)} to {max(epochs)}" in MODERN
    first, second = ("{:.2f}, {:.2f} and {:.2f}".format(*each) for each in lowest)
    assert f"{first} without, {second} with it" in MODERN
    gap, half = paired_interval(lowest[1], lowest[0])
    assert f"({gap:+.2f} ± {half:.2f})" in MODERN
    assert write_loss_interval(*reversed(names)).lstrip("−") in MODERN


def test_few_images_make_a_model_sure_and_not_wrong():
    rises = []
    for arm in ("few images", "few images, DropPath"):
        for run in MODERN_RUNS[arm].values():
            lowest = run["validation_loss"].index(min(run["validation_loss"]))
            rises.append(100 * (run["validation_accuracy"][-1] - run["validation_accuracy"][lowest]))
    assert f"accuracy is {min(rises):.1f} to {max(rises):.1f} points higher than at that one" in MODERN


def test_sixteen_blocks_are_compared_at_the_best_of_the_rates_that_were_tried():
    first = {arm.removeprefix("sixteen blocks"): runs["0"] for arm, runs in MODERN_RUNS.items() if "sixteen" in arm}
    right = {arm: f"{100 * run['validation_accuracy'][-1]:.1f} %" for arm, run in first.items()}
    for suffix in WITH_SCALE:
        tried = {arm: run["validation_loss"][-1] for arm, run in first.items() if ("Layer" in arm) == bool(suffix)}
        assert min(tried, key=lambda arm: tried[arm]) == suffix  # 0.002, the rate of the table
    without = ", ".join(f"{right[f' at {rate}']} at {rate}" for rate in ("0.004", "0.001"))
    without += f" and {right[' at 0.0005']} at 0.0005"
    assert f"{right[', LayerScale']} at 0.002 and {right[' at 0.001, LayerScale']} at 0.001" in MODERN
    assert f"{right['']} at 0.002, {without}" in MODERN
    ends = [[run["train_loss"][-1] for run in MODERN_RUNS[f"sixteen blocks{name}"].values()] for name in WITH_SCALE]
    quoted = [f"{min(each):.2f} to {max(each):.2f}" for each in ends]
    assert f"{quoted[0]} without LayerScale, and at {quoted[1]} with it" in MODERN


SHORT = read_results("lesson_modern.json")["short"]


def test_what_short_cells_of_lesson_10_print_is_quoted():
    growth, largest = SHORT["growth"], SHORT["largest_weights"]
    assert f"grew to {growth['None']:.2f} times" in MODERN
    assert f"to {growth['0.1']:.2f} times with a LayerScale of 0.1" in MODERN
    assert f"{growth['0.0001']:.2f}" == "1.00"
    ratios = [longest / middle for middle, longest in SHORT["lengths"]]
    assert f"is {min(ratios):.1f} to {max(ratios):.1f} times as long as the median" in MODERN
    without, with_norms = zip(*largest.values(), strict=True)
    assert "grew from {:.2f} to {:.2f} and {:.2f}".format(*without) in MODERN
    assert {f"the largest weight stayed at {each:.2f}" in MODERN for each in with_norms} == {True}
    assert with_norms[0] > without[0]
    ranges = [f"{min(each):.1f} to {max(each):.1f}" for each in SHORT["speed_up"].values()]
    assert "{} times as fast with 65 tokens, {} times with 257, and {} times with 1,025".format(*ranges) in read_note(
        "what_else"
    )


def test_larger_images_are_quoted_from_their_runs():
    runs = list(read_results("lesson_modern.json")["by_side"].values())
    rows = {"plain": "learned, table resized", "rotary": "rotary, places 0, 1, 2, …"}
    rows |= {"rotary, between": "rotary, places between the old ones"}
    for name, words in rows.items():
        means = (mean([run[name][side] for run in runs]) for side in ("32", "48", "64"))
        assert f"| {words} | {' | '.join(f'{each:.1f}' for each in means)} |" in MODERN
    of_table, of_rotary = ([run[name]["32"] - run[name]["64"] for run in runs] for name in ("plain", "rotary, between"))
    gap, half = paired_interval(of_table, of_rotary)
    assert f"lose {mean(of_rotary):.1f} points at 64 pixels, the table loses {mean(of_table):.1f}" in MODERN
    assert f"losses, {gap:.1f} ± {half:.1f}, contains 0" in MODERN
    first = runs[0]
    assert f"has {first['plain']['48']:.1f} % at 48 pixels and {first['plain']['64']:.1f} % at 64" in MODERN
    assert f"only {first['rotary']['48']:.1f} and {first['rotary']['64']:.1f} %" in MODERN
    assert all(run["rotary"]["32"] == run["rotary, between"]["32"] for run in runs), "one model, one grid"


def test_the_masked_autoencoder_is_quoted_as_it_was():
    logged = read_results("lesson_modern.json")
    runs = list(logged["painted"].values())
    trained, fresh = ([run[name][0] for run in runs] for name in ("trained", "fresh"))
    pixels, held_back = logged["pixels"]["best"]
    as_features, small = logged["pixels"]["as features"]
    assert len(runs) == 3
    assert f"{list_percents(trained)} after 1,500 steps" in MODERN
    assert f"{list_percents(fresh)} for encoders that were never trained" in MODERN
    assert f"a lead of {write_interval(trained, fresh).lstrip('+')} points" in MODERN
    lead = write_interval(trained, [pixels] * 3).lstrip("+")
    assert f"The pixels have {pixels:.1f} %, and the lead over them, {lead}, does not show" in MODERN
    assert {run[name][1] for run in runs for name in ("trained", "fresh")} == {small}
    assert f"{small:g}, the smallest that we tried, for features" in MODERN
    assert f"and {held_back:g} for pixels" in MODERN
    assert f"the pixels have only {as_features:.1f} %" in MODERN
    assert {f"{run['loss']:.2f}" for run in runs} == {"0.40"}
    assert "Our three trainings ended at 0.40" in MODERN
    width = min(logged["blur"], key=logged["blur"].__getitem__)
    assert f"the best blur, {width} pixels wide, has a loss of {logged['blur'][width]:.2f}" in MODERN


def test_the_short_cells_measure_what_is_logged():
    growth, largest_weights = load_right_objects(
        ROOT / "solutions" / "10_modern.py", ("growth", "largest_weights"), "vit_course"
    )
    assert growth(0.1) == pytest.approx(SHORT["growth"]["0.1"], abs=1e-3)
    assert largest_weights(3) == pytest.approx(SHORT["largest_weights"]["3"], abs=1e-3)


INSIDE = read_results("inside.json")
LOOK, NEAR, ARISES = read_lesson_text("08_inside"), read_note("near_and_far"), read_note("where_the_answer_arises")


def list_accuracies_when_covered(name: str, column: str, models: str = "drawings") -> list[float]:
    """Per cent right, of each run, without the patches that a map names most or least; or with random ones covered."""
    each = [found["covering"][name] for found in INSIDE[models].values()]
    return [100 * (one[column] if column else mean(one) if isinstance(one, list) else one) for one in each]


def test_covered_drawings_are_quoted_as_they_were():
    least, random = list_accuracies_when_covered("last block", "least"), list_accuracies_when_covered("random", "")
    assert all(one < other for one, other in zip(least, random, strict=True))
    assert f"{list_percents(least)} were right; with random ones covered, {list_percents(random)}" in LOOK
    best = list_accuracies_when_covered("rollout", "most"), list_accuracies_when_covered("rollout", "least")
    assert f"lowest in the first ({list_percents(best[0])}), highest in the second ({list_percents(best[1])})" in LOOK
    fresh = list_accuracies_when_covered("fresh model", "most")
    assert f"With what it names most covered, {list_percents(fresh)} were right, far fewer" in LOOK
    assert max(fresh) < min(random) - 20
    for other in ("last block", "fresh model"):
        assert all(one < two for one, two in zip(best[0], list_accuracies_when_covered(other, "most"), strict=True))
        assert all(one > two for one, two in zip(best[1], list_accuracies_when_covered(other, "least"), strict=True))
    gradient = list_accuracies_when_covered("gradient", "most")
    ordered = zip(best[0], gradient, list_accuracies_when_covered("fresh model", "most"), strict=True)
    assert all(rollout < found < fresh for rollout, found, fresh in ordered)
    assert f"with what it names most covered, {list_percents(gradient)} are right" in LOOK


def test_what_is_said_of_silenced_heads_follows_from_the_runs():
    found = [run["ablation"] for run in INSIDE["drawings"].values()]
    missed = {way: [max(each[way][0]) < min(each[way][-1]) for each in found] for way in ("mean", "zeros")}
    assert (sum(missed["mean"]), sum(missed["zeros"])) == (3, 2)
    assert "in each of our three runs, with zeros in two of them" in LOOK
    gentler = {
        block: sum(
            one > other for each in found for one, other in zip(each["mean"][block], each["zeros"][block], strict=True)
        )
        for block in (0, -1)
    }
    assert f"{gentler[-1]} of the 12 of the last block, but more in {12 - gentler[0]} of the 12 of block 0" in LOOK


def test_what_08_says_of_the_course_s_model_is_what_its_benchmark_found():
    alone, random = (
        f"{mean(list_accuracies_when_covered(name, '', 'photos')):.1f} %" for name in ("nothing", "random")
    )
    assert f"Nothing covered gives {alone}, random patches {random}" in LOOK
    titles = {"last block": "the last block", "rollout": "rollout", "fresh model": "the fresh model's rollout"}
    titles |= {"gradient": "the gradient"}
    for name, title in titles.items():
        row = " | ".join(
            f"{mean(list_accuracies_when_covered(name, column, 'photos')):.1f}" for column in ("most", "least")
        )
        assert f"| by {title} | {row} |" in LOOK
    photos = INSIDE["photos"]["0"]
    start, *later = photos["class_token"]
    assert f"the class token had {start:.1f} % after block 0, then {list_percents(later)}" in ARISES
    assert f"the patches had {list_percents(photos['patches'])}" in ARISES
    for run in INSIDE["photos"].values():
        first, near, third, last = run["nearer_than_control"]
        assert all(0.55 < head < 1.5 for head in first), "0.6 to 1.5 pixels"
        assert all(1.9 < head < 5.1 for head in near), "by two to five pixels"
        assert all(-0.1 < head < 2 for head in third), "0 to 2"
        assert all(abs(head) < 0.21 for head in last), "within a fifth of a pixel"


def test_the_gaps_of_maps_of_photos_follow_from_their_columns():
    def measure_map_gap(name: str, beyond: str = "") -> str:
        """Of the columns of a map, or how far it is beyond that of another map."""
        maps = [
            [mean(list_accuracies_when_covered(each, column, "photos")) for column in ("least", "most")]
            for each in (name, beyond)
            if each
        ]
        own, *other = (least - most for least, most in maps)
        variances = (share * (100 - share) / 600 for columns in maps for share in columns)
        return f"{own - sum(other):.1f} ± {1.96 * sqrt(sum(variances)):.1f}"

    said = (
        f"is {measure_map_gap('rollout')} points for rollout, {measure_map_gap('last block')} for the last block, "
        f"and {measure_map_gap('gradient')} for"
    )
    assert said in LOOK
    assert f"The fresh model's map has {measure_map_gap('fresh model')}:" in LOOK
    beyond = {name: measure_map_gap(name, "fresh model") for name in ("rollout", "last block", "gradient")}
    assert f"larger, by {beyond['rollout']} and {beyond['last block']}; for the gradient ({beyond['gradient']})" in LOOK
    columns = (list_accuracies_when_covered("gradient", column, "photos") for column in ("least", "most"))
    each = [f"{least - most:.1f}" for least, most in zip(*columns, strict=True)]
    assert f"the gradient's gap is {', '.join(each[:2])} and {each[2]} points" in LOOK


def test_the_heads_of_three_models_of_drawings_are_quoted_as_logged():
    near, shares = (
        {std: [run[f"positions from {std}"][name] for run in INSIDE["heads"].values()] for std in ("0.02", "0.5")}
        for name in ("nearer_than_control", "shares")
    )
    heads = {std: [head for run in runs for block in run for head in block] for std, runs in near.items()}
    assert 1.6 < max(heads["0.02"]) < 1.7
    assert "no head looks more than 1.7 pixels nearer than its own control" in LOOK
    assert f"{sum(abs(head) < 1 for head in heads['0.02'])} of {len(heads['0.02'])} are within one pixel of it" in LOOK
    most = {std: f"{max(of_it):.1f}" for std, of_it in heads.items()}
    assert f"{most['0.5']} pixels nearer than its control; with small positions it was {most['0.02']}" in NEAR
    first = [run[0][0] for run in shares["0.02"]]
    later = [share for run in shares["0.02"] for block in run[1:] for share in block]
    assert f"{min(first):.0%} to {max(first):.0%} for".replace("% ", " % ").replace(" % to", " to") in LOOK
    assert f"the shares are {100 * min(later):.0f} to {100 * max(later):.0f} %" in LOOK
    assert f"already gives {INSIDE['photos_before_any_block']:.1f} %" in ARISES
    of_head, of_probe = INSIDE["photos_read_by_the_head"], INSIDE["photos"]["0"]["class_token"]
    assert f"In our run {list_percents(of_head)}. After block 0 the head gets half of what the probe found" in ARISES
    assert of_head[0] / of_probe[0] == pytest.approx(0.5, abs=0.02)
    assert f"after block 2 it is still {of_probe[2] - of_head[2]:.0f} points behind" in ARISES
    assert abs(of_head[3] - of_probe[3]) < 2, "after the last the two are about equal"
    for run in INSIDE["photos"].values():
        behind = [patches - token for patches, token in zip(run["patches"], run["class_token"], strict=True)]
        assert all(2.5 < each < 7.5 for each in behind[:2]), "by 3 to 7 points"
        assert all(each < 0 for each in behind[2:])


def read_model_accuracies(name: str) -> dict[str, list[float]]:
    """The accuracies of the right model and of eight broken ones, in per cent."""
    return {row["name"]: [100 * each for each in row["accuracies"]] for row in read_results(name)["rows"]}


FAIR_BET = read_model_accuracies("fair_bet.json")


def test_the_table_of_broken_models_is_that_of_its_benchmark():
    for name, row in FAIR_BET.items():
        against = "" if name == "right" else f" {write_interval(row, FAIR_BET['right'])}"
        assert f"| {write_table_cell(row)} | {mean(row):.1f} |{against} |" in EXPERIMENTS


def test_what_is_said_of_training_losses_follows_from_the_runs():
    rows = {row["name"]: row for row in read_results("fair_bet.json")["rows"]}
    right = rows.pop("right")
    clearly: dict[bool, int] = {True: 0, False: 0}
    for row in rows.values():
        gap, half = paired_interval(row["accuracies"], right["accuracies"])
        loss, noise = paired_interval(row["train_losses"], right["train_losses"])
        if abs(gap) <= half and abs(loss) > noise:
            clearly[loss < 0] += 1
    assert clearly == {True: 2, False: 1}
    assert "of the five, two end clearly *below* the right model" in START
    assert "and one clearly above it" in START


def test_what_is_said_of_single_broken_models_is_what_they_reached():
    found = {name: mean(row) for name, row in FAIR_BET.items()}
    scrambled, right = found["PatchEmbedding: reshaped where transposed"], found["right"]
    assert sum(share > right for share in found.values()) == 2
    assert f"{found['PatchEmbedding: embedding in column order']:.1f} %, the right one {right:.1f} %" in START
    words = f"right on {right:.1f} % of the test photos, the one with reshaped patches on {scrambled:.1f} %"
    assert words in START
    unscaled = found["MultiHeadSelfAttention: heads not scaled"]
    assert f"still ended at {unscaled:.1f} % against {right:.1f} %" in read_lesson_text("03_attention")
    bare = found["MultiHeadSelfAttention: projection not used"]
    assert f"without it reached {bare:.1f} %, with it {right:.1f} %" in read_note("attention")


def test_what_positions_take_from_the_lead_of_the_scramble_is_quoted():
    leads = [
        [one - other for one, other in zip(ARMS[arm], ARMS[baseline], strict=True)]
        for arm, baseline in (("small positions, scrambled", "small positions"), ("scrambled", "base"))
    ]
    assert f"they differ by {write_interval(*leads).lstrip('+')}" in EXPERIMENTS


def test_a_rise_of_the_validation_loss_is_overconfidence_as_logged():
    logged = CIFAR["overconfidence"]
    best, last = logged["sure_when_wrong"]
    assert f"{best:.0%} sure".replace("%", " %") + " of its wrong answers after the best epoch" in OVERSURE
    assert f"and {last:.0%} after the last".replace("%", " %") in OVERSURE
    chosen = min(logged["loss_of_halves"], key=lambda divisor: logged["loss_of_halves"][divisor][0])
    before, after = (logged["loss_of_halves"][divisor][1] for divisor in ("1", chosen))
    assert f"a temperature of {chosen} took the second half from {before:.2f} to {after:.2f}" in OVERSURE


def test_losses_with_augmentation_and_seconds_are_those_of_the_runs():
    arms = [arm for arm in ARMS if arm.startswith("few images")]
    runs = [CIFAR["results"][arm]["0"] for arm in arms]
    train, validation = ([run[name][-1] for run in runs] for name in ("train_loss", "validation_loss"))
    ways = ("as they are", "shifted and flipped", "with mixup", "with stochastic depth")
    assert ", ".join(f"{loss:.2f} {way}" for loss, way in zip(train, ways, strict=True)) in EXPERIMENTS
    *first, last = (f"{loss:.2f}" for loss in validation)
    assert f"validation loss {', '.join(first)} and {last}" in EXPERIMENTS
    for arm, way in ((arms[2], "mixup is worth"), (arms[3], "stochastic depth")):
        assert f"{way} {write_interval(ARMS[arm], ARMS[arms[1]])}" in EXPERIMENTS
    seconds = [sum(run["seconds"]) for run in CIFAR["results"]["base"].values()]
    assert f"({min(seconds):.0f} to {max(seconds):.0f} seconds)" in TRAINING
    slow = CIFAR["results"]["patches of 4"].values()
    assert f"three trainings took {sum(sum(run['seconds']) for run in slow) / 60:.0f} minutes" in EXPERIMENTS


def test_the_first_table_was_as_it_is_quoted():
    found = read_model_accuracies("broken_vit_classics.json")
    for name in ("PatchEmbedding: reshaped where transposed", "MultiHeadSelfAttention: heads split by view"):
        assert f"by {write_interval(found[name], found['right']).lstrip('+')}" in EXPERIMENTS


def test_three_of_the_first_twenty_intervals_between_equals_miss_0():
    torch.manual_seed(0)
    one, other = torch.randn(2, 100_000, 3)
    differences = (one - other)[:20]
    missed = differences.mean(1).abs() > 4.30 * differences.std(1) / sqrt(3)
    assert missed.sum() == 3
    assert "Three intervals miss 0" in SEEDS


def test_how_many_seeds_a_difference_takes_is_what_chance_makes_of_it():
    noise = torch.randn(40_000, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shown = {}
    for count, t, size in ((3, 4.30, 3.5), (10, 2.26, 1), (40, 2.02, 0.5), (3, 4.30, 1)):
        seen = noise[:, :count] + size
        shown[count, size] = (seen.mean(1).abs() > t * seen.std(1) / sqrt(count)).double().mean().item()
    assert min(shown[3, 3.5], shown[10, 1], shown[40, 0.5]) > 0.78
    assert shown[3, 1] < 0.2
    assert "One of 1 *s* takes about ten seeds, one of half an *s* about forty." in EXPERIMENTS
    assert "Less than one time in five." in SEEDS


def test_looking_after_every_seed_is_wrong_one_time_in_seven():
    noise = torch.randn(40_000, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    claimed = torch.zeros(len(noise), dtype=torch.bool)
    for count, t in zip(range(3, 9), (4.30, 3.18, 2.78, 2.57, 2.45, 2.36), strict=True):
        seen = noise[:, :count]
        claimed |= seen.mean(1).abs() > t * seen.std(1) / sqrt(count)
    assert claimed.double().mean() == pytest.approx(1 / 7, abs=0.01)
    assert "and stop at eight: then you are wrong one time in seven" in EXPERIMENTS


def test_the_count_of_broken_models_is_that_of_its_benchmark():
    rows = {row["name"]: row["accuracies"] for row in read_results("broken_vit_all.json")["rows"]}
    right = mean(accuracies := rows.pop("right"))
    gaps = [mean(each) - right if None not in each else -right for each in rows.values()]
    beside, above, below = (
        sum(abs(gap) <= 0.02 for gap in gaps),
        sum(gap > 0.02 for gap in gaps),
        sum(gap < -0.02 for gap in gaps),
    )
    assert (len(rows), beside, above, below) == (122, 89, 5, 28)
    for number in (len(rows), beside, below):
        assert f"{number} " in BROKEN
    seeds = [100 * each for each in accuracies]
    noise = 4.30 * stdev(seeds) * sqrt(4 / 3)
    ends = "{:.2f}, {:.2f} and {:.2f} %".format(*seeds)
    assert f"end at {ends}, with a standard deviation *s* of {stdev(seeds):.2f}" in BROKEN
    assert f"should lie, 19 times in 20, within ± {noise:.1f} points" in BROKEN
    assert sum(noise < abs(100 * gap) <= 2 for gap in gaps) == 9
    lead, shared, bare = (
        100 * (rows[f"VisionTransformer: {name}"][0] - right)
        for name in ("all tokens into the head", "one block used depth times", "no final norm")
    )
    assert f"The largest lead, {lead:.1f} points" in BROKEN
    assert f"the shared block ended {-shared:.1f} points below the right model" in BROKEN
    assert f"the missing norm {bare:.1f} above it" in BROKEN
    ends = f"{beside} end within two points of the right one, five above that and {below} below"
    assert f"of {len(rows)} broken ViTs, {ends}" in read_page("docs/diagnose.md")


def test_the_fair_bet_is_told_as_it_was():
    gaps = [paired_interval(row, FAIR_BET["right"]) for name, row in FAIR_BET.items() if name != "right"]
    assert (len(gaps), sum(abs(gap) <= half for gap, half in gaps), sum(gap > half for gap, half in gaps)) == (8, 5, 0)
    assert "Five of the eight cannot be told from the correct one by their accuracy" in read_page("README.md")
    assert "none of eight was above the right model by more than chance" in read_page("docs/diagnose.md")
    halves = [half for gap, half in gaps if abs(gap) <= half]
    assert f"it reaches {min(halves):.1f} to {max(halves):.1f} points to either side" in read_note("nine_models")


def test_the_same_training_twice_differs_as_lesson_10_says():
    once, again = (read_results(name)["results"]["few images"] for name in ("modern.json", "lesson_cifar.json"))
    ends = [[100 * runs[seed]["validation_accuracy"][-1] for seed in "012"] for runs in (once, again)]
    first, second, third = (f"{each:.1f}" for each in ends[1])
    assert f"with {first}, {second} and {third} %" in MODERN
    apart = max(abs(one - other) for one, other in zip(*ends, strict=True))
    assert f"the accuracies are up to {apart:.2f} points apart" in MODERN


def test_the_model_that_comes_with_the_course_is_as_good_as_is_said():
    run = read_results("recipes/cpu-course-0.json")
    share, minutes = f"{100 * run['test']['top1']:.1f} %", f"{run['seconds'] / 60:.0f} minutes"
    card, transfer = read_page("vit_course/weights/README.md"), read_lesson_text("09_fine_tuning")
    assert share in read_lesson_text("05_vit")
    assert share in transfer
    assert all(minutes in text for text in (transfer, LOOK, card))
    assert f"{100 * run['test']['top1']:.2f} % of 10,000" in card
    assert DIGEST in card


def test_lunches_that_were_tried_are_quoted_as_logged():
    logs = {name: read_results(f"{name}.json") for name in LUNCHES}
    *before, recipe = logs.values()
    first, slower = (logs[f"cpu_lunch/class-token-faster-0{where}"] for where in ("", "-float32"))
    assert first["definition"] == slower["definition"]
    assert {each["precision"] for each in logs.values()} == {"bf16", "fp32"}
    page, longer = read_page("docs/train.md"), slower["cpu_seconds"] / first["cpu_seconds"]
    assert f"took 2.4 times as long with one thread; two threads worked {longer:.1f} times as long" in page
    assert f"would take about {recipe['cpu_seconds'] / longer / 60:.0f} minutes of one core" in page
    assert all(recipe["test"]["top1"] > each["test"]["top1"] for each in before)
    others = (f"{100 * read_results(f'recipes/cpu-lunch-{seed}.json')['test']['top1']:.2f}" for seed in (1, 2))
    assert f"The recipe's other seeds ended at {' and '.join(others)} % of the test images." in page
    on_gpu = {each["name"]: each["validation_accuracy"] for each in read_results("gpu/unfinished_lunches.json")["runs"]}
    lead = on_gpu["slow59"][40] - on_gpu["mean59"][40]
    assert f"the smaller were {100 * lead:.1f} points ahead" in page
    assert f"There `cpu-lunch` ran, its first seed for {recipe['seconds'] / 60:.0f} minutes by the clock" in page
    assert f"it was right on {100 * on_gpu['wide44'][39]:.1f} % of them after 40 of 44" in page
    wide = logs["cpu_lunch/wide-class-token-faster-0"]
    assert f"with {wide['epochs']} epochs for {slower['epochs']}, ended level on the images held back" in page
    assert abs(wide["validation"]["top1"] - slower["validation"]["top1"]) < 0.002


def test_the_course_s_model_starts_at_random_so_that_lessons_see_what_training_has_written():
    course, lunch = RECIPES["cpu-course"], RECIPES["cpu-lunch"]
    assert not any((course.mimetic, course.whitened, course.settings.growth))
    assert lunch.mimetic
    torch.manual_seed(0)
    alike = []
    for recipe in (lunch, course):
        table = recipe.build(course.config).positions[0, 1:].detach().unflatten(0, (8, 8))
        alike.append(torch.cosine_similarity(table[:, 1:], table[:, :-1], dim=2).mean().item())
    assert f"neighbors in a row have a cosine of {alike[0]:.2f} before the first step" in read_page("docs/train.md")
    assert abs(alike[1]) < 0.1


def test_what_a_step_costs_on_a_cpu_is_what_its_logs_say():
    logged = read_results("cpu_step.json")
    took = logged["milliseconds"]
    assert f"took it {took['float32'] / took['bfloat16']:.1f} times as long" in read_page("docs/train.md")
    words = "took {float32:.0f} ms of one core in float32, {autocast:.0f} under autocast and {bfloat16:.0f} so"
    assert words.format(**took) in read_page("vit_course/training/hardware.py")
    speeds = logged["operations_per_second"]
    shares = {name: f"{100 * speeds[name] / rate:.0f} %" for name, rate in logged["of_products"].items()}
    words = "reaches {bfloat16} of the speed of its own matrix products, in float32 {float32}"
    assert words.format(**shares) in read_note("cpu_race")
    before, after = (read_results(f"cpu_step_avx2{when}.json")["milliseconds"]["float32"] for when in ("_before", ""))
    words = f"took {before:.0f} ms of one core so, and takes {after:.0f} (benchmarks"
    assert words in read_page("vit_course/training/muon.py")
