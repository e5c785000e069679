"""What ``diagnose`` says of our broken ViTs, and of right models, ours and others'; counts by kind.

    python benchmarks/diagnose.py [--only broken|right|peer] [--json benchmarks/results/diagnose.json]

A broken ViT is *to be seen* when it computes or learns something else than the right one and does not stop by itself;
those that only whoever knows the weights or the writer's intent could see are listed in ``UNSEEN`` with the reason.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from diagnose_right import find_image_shape, iterate_right_models
from distinguishable import SAME, sort_out_distinguishable
from wrong_models import iterate_wrong_models

from vit_course.config import ViTConfig
from vit_course.diagnosis.answers import Answer, Diagnosis
from vit_course.diagnosis.asking import diagnose
from vit_course.vit import VisionTransformer

RESULTS = Path(__file__).with_name("results") / "diagnose.json"
CONFIG = ViTConfig(image_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=4)
_OTHER_WEIGHTS = "a right ViT with its weights in another order"
_INTENT = "a rate, an eps or a number that its writer could have meant"
UNSEEN = {
    "MultiHeadSelfAttention: qkv cut head by head": _OTHER_WEIGHTS,
    "MultiHeadSelfAttention: query and key swapped": _OTHER_WEIGHTS,
    "MultiHeadSelfAttention: thirds read as query value key": _OTHER_WEIGHTS,
    "MultiHeadSelfAttention: thirds read as value key query": _OTHER_WEIGHTS,
    "MultiHeadSelfAttention: thirds read as key value query": _OTHER_WEIGHTS,
    "MultiHeadSelfAttention: thirds read as value query key": _OTHER_WEIGHTS,
    "EncoderBlock: norms trade places": _OTHER_WEIGHTS,
    "VisionTransformer: blocks in reverse order": _OTHER_WEIGHTS,
    "patchify: channels last inside a token": _OTHER_WEIGHTS,
    "patchify: pixel rows and columns swapped": _OTHER_WEIGHTS,
    "split_heads: every other number to a head": _OTHER_WEIGHTS,
    "split_heads: pieces shuffled together": _OTHER_WEIGHTS,
    "split_heads: number of heads for head dim": _INTENT,
    "MultiHeadSelfAttention: weights dropped": _INTENT,
    "VisionTransformer: dropout nobody asked for": _INTENT,
    "EncoderBlock: the eps of torch": _INTENT,
    "VisionTransformer: final eps left at the default": _INTENT,
    "layer_norm: eps outside the root": _INTENT,
    "layer_norm: eps of its own": _INTENT,
}
# names that tell the same kind of mistake: an answer with one names another's family
FAMILIES = (
    "strips squares transposed reshaped windows pixels unfolded counted overlapping",
    "column transposed",
    "scaled root scaling divided multiplied",
    "softmax",
    "heads batch",
    "graph gradient detached cut",
    "float32 poured",
    "cpu device",
    "dropout dropped",
    "squeezed",
    "place in scratch",
    "norm1 norm2 norms",
    "residual added stream",
    "norm mean statistics deviations squares variance std",
    "positions position",
    "class token",
    "compared projected values",
    "activation relu",
    "block listed",
    "parameters list",
    "layers post norm",
)


def rate_reported_name(key: str, report: Diagnosis) -> str:
    """ "name", "family" or "": how near a report comes to a mistake's name."""
    told = {": ".join(each.mistake) for answer in ("wrong", "unusual") for each in report.of(answer) if each.mistake}
    names = {each.partition(": ")[2] for each in told}
    name = key.partition(": ")[2]
    if name in names:
        return "name"
    words = set(name.split())
    kin = [set(family.split()) for family in FAMILIES if words & set(family.split())]
    return "family" if any(family & set(each.split()) for family in kin for each in names) else ""


def diagnose_broken(config: ViTConfig) -> dict[str, Any]:
    """Return what is said of each of our broken ViTs."""
    torch.manual_seed(0)
    right = VisionTransformer(config)
    wrong = list(iterate_wrong_models())
    _, reasons = sort_out_distinguishable(wrong, config)
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    found = {}
    for each in wrong:
        reason = reasons.get(each.key, "")
        report = diagnose(each.build(right), images)
        kind = "stops by itself" if reason.startswith("stops") else "not from outside" if each.key in UNSEEN else ""
        kind = "computes the same" if reason == f"{SAME}the right model" else kind
        answer = next((str(answer) for answer in (Answer.WRONG, Answer.UNUSUAL) if report.of(answer)), "nothing")
        told = any(one.asked == "runs" for one in report.findings)
        answer = "told with its line" if told and answer == "nothing" else answer
        found[each.key] = {
            "kind": kind or "to be seen",
            "answer": answer,
            "named": rate_reported_name(each.key, report),
        }
    return found


def diagnose_right_models() -> dict[str, dict[str, Any]]:
    """Return what is said of each right model."""
    found = {}
    for family, name, make in iterate_right_models():
        torch.manual_seed(0)
        model = make()
        report = diagnose(model, torch.randn(2, *find_image_shape(model)))
        answers = {str(answer): len(report.of(answer)) for answer in Answer}
        if any(each.asked == "runs" for each in report.findings):
            answers["does not run"] = 1
        found[f"{family}: {name}"] = answers | {"wrong properties": [each.asked for each in report.of("wrong")]}
    return found


def find_extra_torchtest2_complaints(config: ViTConfig, ours: dict[str, Any]) -> dict[str, Any]:
    """Return what torchtest2 says of the same broken ViTs that are to be seen, beyond what it says of the right one.

    Its learning by heart is left out, for time: most broken ViTs pass it.
    """
    from torchtest2 import check_model

    torch.manual_seed(0)
    right = VisionTransformer(config)
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(8) % config.num_classes

    def list_complaints(model: torch.nn.Module) -> list[str]:
        report = check_model(model, images, labels, loss_fn=F.cross_entropy, overfit_steps=0)
        return [each.name for each in report.results if str(each.status) in ("FAIL", "WARN")]

    plain = list_complaints(copy.deepcopy(right))
    chosen = [each for each in iterate_wrong_models() if ours[each.key]["kind"] == "to be seen"]
    return {each.key: sorted(set(list_complaints(each.build(right))) - set(plain)) for each in chosen}


def count_results_by_kind(results: dict[str, Any]) -> dict[str, Any]:
    """Counts by kind."""
    counts: dict[str, Any] = {}
    if "broken" in results:
        kinds = Counter(each["kind"] for each in results["broken"].values())
        for kind in kinds:
            some = [each for each in results["broken"].values() if each["kind"] == kind]
            counts[kind] = {
                "models": len(some),
                **Counter(each["answer"] for each in some),
                "named": sum(each["named"] == "name" for each in some),
                "name or family": sum(bool(each["named"]) for each in some),
            }
    if "torchtest2" in results:
        said = results["torchtest2"].values()
        counts["to be seen, by torchtest2"] = {"models": len(said), "something said": sum(map(bool, said))}
    if "right" in results:
        families = sorted({name.partition(": ")[0] for name in results["right"]})
        for family in families:
            some = [each for name, each in results["right"].items() if name.startswith(f"{family}: ")]
            counts[f"right, {family}"] = {
                "models": len(some),
                "told wrong": sum(bool(each["wrong"]) for each in some),
                "with something unusual": sum(bool(each["unusual"]) for each in some),
                "do not run": sum("does not run" in each for each in some),
            }
    return counts


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("broken", "right", "peer"))
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = json.loads(options.json.read_text("utf-8")) if options.json.exists() else {}
    start = time.perf_counter()
    if options.only in (None, "broken"):
        results["broken"] = diagnose_broken(CONFIG)
    if options.only in (None, "right"):
        results["right"] = diagnose_right_models()
    if options.only == "peer":  # needs torchtest2, which the project does not
        results["torchtest2"] = find_extra_torchtest2_complaints(CONFIG, results["broken"])
    results["counts"] = count_results_by_kind(results)
    results["torch"] = torch.__version__
    options.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(json.dumps(results["counts"], indent=1))
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
