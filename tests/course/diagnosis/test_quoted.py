"""What README, the site and the pages say of ``diagnose`` is what its benchmark found."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parents[3]
RESULTS = json.loads((ROOT / "benchmarks/results/diagnose.json").read_text("utf-8"))
TRAINED = json.loads((ROOT / "benchmarks/results/broken_vit_all.json").read_text("utf-8"))["rows"]


def read_page(name: str) -> str:
    return " ".join((ROOT / name).read_text("utf-8").split())


def test_of_those_that_accuracy_does_not_tell():
    right, *rows = [(row["name"], row["accuracies"]) for row in TRAINED]
    middle = fmean(right[1])
    beside = [name for name, ends in rows if None not in ends and abs(fmean(ends) - middle) <= 0.02]
    answers = [RESULTS["broken"][name]["answer"] for name in beside]
    counts = {each: answers.count(each) for each in set(answers)}
    words = (
        "of these {} that accuracy does not tell from the right model, it says of {wrong} that they are *wrong* and "
    )
    words += "of {unusual} that they are *unusual*. The other eleven"
    assert words.format(len(beside), **counts) in read_page("docs/diagnose.md")
    assert counts["nothing"] == 11
    found = counts["wrong"] + counts["unusual"]
    words = f"Of {len(beside)} broken ViTs that their accuracy does not tell from the right one it"
    assert f"{words} finds {found}." in read_page("docs/site/index.md")
    assert words + " calls {wrong} wrong and {unusual} unusual.".format(**counts) in read_page("README.md")


def test_beside_another_tool():
    counts, other = RESULTS["counts"]["to be seen"], RESULTS["counts"]["to be seen, by torchtest2"]
    text = read_page("docs/compare.md")
    said = counts["wrong"] + counts["unusual"]
    assert f"of {counts['models']} broken ViTs" in text
    assert f"| `diagnose` | {said} | {counts['name or family']} |" in text
    assert f"| torchtest2 | {other['something said']} |" in text
    assert said >= 0.95 * counts["models"]
    assert counts["name or family"] >= 0.85 * counts["models"]


def test_no_right_model_is_told_wrong():
    told = {name: each["wrong properties"] for name, each in RESULTS["right"].items() if each["wrong"]}
    assert told == {}
    assert len(RESULTS["right"]) > 75


def test_on_public_models():
    public = json.loads((ROOT / "benchmarks/results/diagnose_public.json").read_text("utf-8"))
    slips = [each["slips"] for each in public["by kind"].values()]
    told = [each["told"] for each in public["by kind"].values()]
    assert (sum(slips), sum(told)) == (public["slips"], public["told"])
    text = read_page("docs/diagnose.md")
    assert f"In {public['models with a slip']} of them the reading had found {public['slips']} slips" in text
    assert f"`diagnose` tells {public['told']}" in text
    assert f"Of {public['right models']} right ones it calls none *wrong*" in text
    assert f"Before that it told {public['told before the changes that were made in view of them']} of the" in text
    assert sum(told) >= 0.85 * sum(slips)
    assert public["right models told wrong"] == 0
    for kind, each in list(public["by kind"].items())[:10]:
        assert f"| {kind} | {each['slips']} | {each['told']} |" in text
