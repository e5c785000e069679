"""What lesson 09 quotes of probes and fine-tuning is what its log holds."""

from __future__ import annotations

import pytest

from tests.course.test_quoted_numbers import (
    list_percents,
    read_lesson_text,
    read_note,
    read_results,
    write_interval,
    write_table_cell,
)

LOG = read_results("fine_tuning.json")
RUNS, SHOWN = LOG["runs"].values(), LOG["shown"]
TRANSFER = read_lesson_text("09_fine_tuning")
LAYERS, COPIES, LORA = (read_note(name) for name in ("which_layer", "near_copies", "lora"))
WAYS_THAT_TRAIN = ("fine-tuning", "from nothing")
OF_EARLIER = "probe, block 2"
EARLIER = [OF_EARLIER, f"{OF_EARLIER}, moved images"]


def read_accuracies_by_way(per_class: int) -> dict[str, list[float]]:
    """Per cent of the test images right, for each way to learn from so many images a class."""
    found: dict[str, list[float]] = {}
    for run in RUNS:
        if (run["task"], run["per_class"]) == ("test", per_class):
            found.setdefault(run["way"], []).append(100 * run["accuracy"])
    return found


# 10, 100 and 1,000 images a class
FEW, MANY, MOST = map(read_accuracies_by_way, (10, 100, 1000))


def list_draws(key: str) -> list[float]:
    """Per cent of the test images right, for a probe of three draws of images."""
    return [100 * SHOWN[f"{key}, draw {seed}"] for seed in range(3)]


def choose_best_rate(tried: dict[float, float]) -> float:
    """The rate with the highest accuracy; of equals the largest."""
    return max(tried, key=lambda rate: (tried[rate], rate))


@pytest.mark.parametrize(("per_class", "found"), [(10, FEW), (100, MANY)], ids=["10 images", "100 images"])
def test_every_way_is_quoted_from_its_runs(per_class, found):
    each = [found[way] for way in ("probe", "probe, moved images", "fine-tuning", "from nothing")]
    assert [len(accuracies) for accuracies in each] == [3] * 4
    assert f"| {per_class} | {' | '.join(map(write_table_cell, each))} |" in TRANSFER
    gaps = [write_interval(accuracies, each[0]) for accuracies in each[1:]]
    assert f"| minus the probe | | {' | '.join(gaps)} |" in TRANSFER


def test_the_answer_to_which_way_gives_the_intervals_of_its_table():
    fine, nothing = ([write_interval(found[way], found["probe"]) for found in (FEW, MANY)] for way in WAYS_THAT_TRAIN)
    assert f"({fine[0]} and {fine[1]} points)" in TRANSFER
    assert f"({nothing[0]}); at 100 the interval contains 0 ({nothing[1]})" in TRANSFER


def test_the_lead_of_fine_tuning_over_a_probe_that_sees_what_it_sees_is_quoted():
    leads = (write_interval(found["fine-tuning"], found["probe, moved images"]) for found in (FEW, MANY))
    few, many = (lead.lstrip("+") for lead in leads)
    assert f"(by {few} and {many})" in TRANSFER
    assert f"by {few} points at 10 images per class and by {many} at 100" in TRANSFER


@pytest.mark.parametrize(
    ("way", "per_class", "best"),
    [
        ("probe", 10, "1e-1"),
        ("probe", 100, "1e-1"),
        ("probe", 1000, "1e-5"),
        ("probe, moved images", 10, "3e-1"),
        ("probe, moved images", 100, "1e-2"),
    ],
)
def test_the_weight_decay_of_the_probe_is_the_best_of_a_range_that_goes_beyond_it(way, per_class, best):
    wanted = ("tuning", way, per_class)
    tried = {run["rate"]: run["accuracy"] for run in RUNS if (run["task"], run["way"], run["per_class"]) == wanted}
    assert choose_best_rate(tried) == float(best)
    assert min(tried) < float(best) < max(tried)
    name = "MOVED_DECAYS" if "moved" in way else "WEIGHT_DECAYS"
    decays = TRANSFER.partition(f"{name} = {{")[2].partition("}")[0]
    assert f"{per_class}: {best}" in decays.split(", ")


def test_the_largest_task_is_quoted_from_its_run():
    probe, fine, nothing = (MOST[way] for way in ("probe", *WAYS_THAT_TRAIN))
    cells = map(write_table_cell, (probe, fine, nothing))
    assert "| 1,000, one seed | {} | not run | {} | {} |".format(*cells) in TRANSFER
    behind, ahead = fine[0] - nothing[0], nothing[0] - probe[0]
    assert f"is {behind:.1f} points behind fine-tuning and {ahead:.1f} points ahead of the probe" in TRANSFER


@pytest.mark.parametrize(
    ("way", "title"),
    [
        ("fine-tuning", "random, backbone 0.0003, head 0.003"),
        ("both rates low", "random, 0.0003 for all"),
        ("both rates high", "random, 0.003 for all"),
        ("one rate, zero head", "zero, 0.003 for all"),
        ("one rate, probe first", "fitted first (a probe), 0.003 for all"),
    ],
)
def test_the_table_of_learning_rates_is_that_of_its_benchmark(way, title):
    found, two = MANY[way], MANY["fine-tuning"]
    if way == "fine-tuning":
        against = ""
    elif len(found) == 1:
        against = f"{found[0] - two[0]:+.1f}".replace("-", "−")
    else:
        against = write_interval(found, two)
    assert " ".join(f"| {title} | {', '.join(f'{each:.1f}' for each in found)} | {against} |".split()) in TRANSFER


@pytest.mark.parametrize(
    ("way", "title"),
    [
        ("probe", "the head (the probe) | 970"),
        ("LoRA", "the head, and LoRA of rank 4 | 7,114"),
        ("last block", "the head, the norm and the last block | 75,946"),
        ("fine-tuning", "all (fine-tuning) | 311,338"),
    ],
)
def test_what_learns_is_compared_with_fine_tuning(way, title):
    found, everything = MANY[way], MANY["fine-tuning"]
    assert len(found) == 3
    against = f" {write_interval(found, everything)} |" if way != "fine-tuning" else " |"
    assert f"| {title} | {write_table_cell(found)} |{against}" in LORA


@pytest.mark.parametrize(
    ("way", "chosen"), [("LoRA", "0.003 for all that learns"), ("last block", "0.003 for the last")]
)
def test_what_learns_does_so_at_the_best_rate_of_the_other_task(way, chosen):
    runs = [run for run in RUNS if run["way"] == way]
    tried = {run["rate"]: run["accuracy"] for run in runs if run["task"] == "tuning"}
    best = choose_best_rate(tried)
    assert min(tried) < best < max(tried)
    assert chosen.startswith(f"{best} ")
    assert chosen in LORA
    assert {run["rate"] for run in runs if run["task"] == "test"} == {best}


def test_the_starts_of_the_head_are_compared_at_one_rate():
    random, zero, fitted = (MANY[f"one rate{start}"][0] for start in ("", ", zero head", ", probe first"))
    words = f"the zero head was {random - zero:.1f} points lower and the fitted head {fitted - random:.1f} higher"
    assert words in TRANSFER


def test_the_choice_of_one_rate_is_quoted():
    tried = {(run["way"], run["rate"]): 100 * run["accuracy"] for run in RUNS if run["task"] == "tuning"}
    one = {rate: accuracy for (way, rate), accuracy in tried.items() if way == "one rate"}
    assert choose_best_rate(one) == 0.003 < max(one)
    assert f"reach {list_percents([one[rate] for rate in (0.0001, 0.0003, 0.001, 0.003, 0.01)])}" in TRANSFER
    assert f"the chosen pair {tried['fine-tuning', 0.0003]:.1f} %" in TRANSFER


@pytest.mark.parametrize("name", ["features", "logits", "fresh features", "pixels"])
def test_what_a_probe_is_fitted_on_is_quoted(name):
    key = name.replace("fresh features", "never trained")
    assert f"| {name} | {write_table_cell(list_draws(key))} |" in TRANSFER
    decay = SHOWN[f"{key}: weight decay"]
    assert any(f'report("{name}", {each},' in TRANSFER for each in (decay, f"{decay:.0e}".replace("-0", "-")))


def test_the_probes_of_each_block_are_quoted():
    places = [(name, block) for name in ("class token", "mean patch") for block in range(4)]
    shares = {(name, block): list_draws(f"{name} after block {block}") for name, block in places}
    for block in range(4):
        cells = " | ".join(write_table_cell(shares[name, block]) for name in ("class token", "mean patch"))
        assert f"| {block} | {cells} |" in LAYERS
    back = {name: write_interval(shares[name, 3], shares[name, 2]) for name in ("class token", "mean patch")}
    assert f"the last block is a step back from block 2: {back['class token']} points" in LAYERS
    assert f"The mean of the patches loses {back['mean patch'].lstrip('−')} points there" in LAYERS
    features = list_draws("features")
    assert f"even after the first: by {write_interval(shares['mean patch', 0], features).lstrip('+')}." in LAYERS
    assert all(min(shares["mean patch", block]) > max(features) for block in range(4))
    best = [max(range(4), key=lambda block: shares["class token", block][seed]) for seed in range(3)]
    assert best == [2, 2, 2]
    others = [SHOWN[f"class token after block {block}: other superclasses"] for block in range(4)]
    assert max(others) == others[2]
    words = f"is right on {100 * others[2]:.1f} % of theirs after block 2, and on {100 * others[3]:.1f} % after block 3"
    assert words in LAYERS
    for name in ("class token", "mean patch"):
        decays = [f"{SHOWN[f'{name} after block {block}: weight decay']:.0e}".replace("-0", "-") for block in range(4)]
        assert f'"{name}": ({", ".join(decays)})' in LAYERS


def test_a_probe_of_an_earlier_block_beside_fine_tuning_is_quoted():
    for per_class, found in ((10, FEW), (100, MANY)):
        fine = found["fine-tuning"]
        cells = " | ".join(write_table_cell(found[way]) for way in (*EARLIER, "fine-tuning"))
        assert f"| {per_class} | {cells} |" in LAYERS
        assert f"| minus fine-tuning | {' | '.join(write_interval(found[way], fine) for way in EARLIER)} | |" in LAYERS
    fine, plain = (write_table_cell(MOST[way]) for way in ("fine-tuning", OF_EARLIER))
    assert f"| 1,000, one seed | {plain} | not run | {fine} |" in LAYERS
    ahead = write_interval(FEW[EARLIER[1]], FEW["fine-tuning"]).lstrip("+")
    behind = write_interval(MANY["fine-tuning"], MANY[EARLIER[1]]).lstrip("+")
    assert f"is {ahead} points *ahead* of fine-tuning at 10 images per class, and {behind} behind at 100" in TRANSFER
    assert f"LoRA leads it by {write_interval(MANY['LoRA'], MANY[OF_EARLIER]).lstrip('+')}." in LORA


def test_the_gap_between_probe_and_fine_tuning_grows_as_the_question_says():
    gaps = [found["fine-tuning"][0] - found["probe"][0] for found in (MANY, MOST)]
    said = "our probe was {:.0f} points behind fine-tuning at 100 images per class, and {:.0f} at 1,000"
    assert said.format(*gaps) in TRANSFER


def test_fresh_features_are_below_pixels_and_above_logits():
    fresh, pixels, logits = map(list_draws, ("never trained", "pixels", "logits"))
    less = [write_interval(*pair).lstrip("+") for pair in ((fresh, logits), (pixels, fresh))]
    assert f"nobody has trained, by {less[0]} points, and those give {less[1]} less than the pixels" in TRANSFER


def test_the_old_answers_and_the_near_copy_are_quoted():
    people = SHOWN["people called dog"] + SHOWN["people called cat"]
    land = [SHOWN[f"large natural outdoor scenes called {each}"] for each in ("airplane", "ship")]
    assert f"calls {100 * people:.0f} % of the people a dog or a cat, and {100 * sum(land):.0f} %" in TRANSFER
    assert f"one photo twice, with a cosine of {SHOWN['most alike test and training image']:.3f}" in COPIES
    assert SHOWN["pairs with a cosine above 0.999"] == 1
    assert f"it is right on {100 * SHOWN['nearest training image right']:.1f} %" in TRANSFER


def test_what_09_shows_of_another_resolution_is_what_its_benchmark_found():
    shown = {name: 100 * share for name, share in SHOWN.items()}
    resized, anew = shown["positions resized"], shown["positions drawn anew"]
    for words in (
        f"{shown['features, draw 0']:.1f} % at 32 pixels",
        f"{resized:.1f} % at 48 pixels with resized positions",
        f"With positions drawn anew it had {anew:.1f} %",
        f"reaches {shown['positions resized, old probe']:.1f} % at 48",
    ):
        assert words in TRANSFER


@pytest.mark.parametrize("decay", ["0.0001", "0.001", "0.01", "0.1"])
def test_the_table_of_the_leak_is_that_of_its_benchmark(decay):
    cells = [
        f"{100 * SHOWN[f'{split}, {decay}: {images}']:.0f} %"
        for split in ("mirrored, then divided", "divided, then mirrored")
        for images in ("held back", "new")
    ]
    assert f"| {decay} | {' | '.join(cells)} |" in TRANSFER
