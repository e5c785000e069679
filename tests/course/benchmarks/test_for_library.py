"""What broken_vit.py writes for the library, and what the library makes of it."""

import json

from broken_vit import RESULTS, RIGHT, SELECTIONS, Row
from for_library import LIBRARY, findings

from exercise_kit.engine.in_training import InTraining, TrainingEffect, effect_of

REASONS = {
    "Mlp: same": "same logits and gradients as the right model",
    "Mlp: twin": "same logits and gradients as Mlp: no activation",
    "Mlp: error": "stops with RuntimeError: sizes",
}


def row(name, accuracy, loss, why=None):
    made = Row(name)
    for seed in range(2):
        made.add(seed, accuracy and accuracy + seed / 100, [2.2, loss], 1.0, why)
    return made


def test_the_library_reads_what_is_written():
    wrong = [row("Mlp: no activation", 0.2, 2.0), row("Mlp: nan", None, 2.0, "the loss is NaN"), Row("Mlp: waiting")]
    known = json.loads(json.dumps(findings(row(RIGHT, 0.4, 1.6), wrong, REASONS, 10)))
    assert known["right"] == {"accuracy": 0.405, "loss": 1.6, "spread": 0.01, "seeds": 2, "classes": 10}
    worse = TrainingEffect(InTraining.WORSE, 0.205, 0.405)
    assert effect_of("Mlp: no activation", known) == effect_of("Mlp: twin", known) == worse
    assert effect_of("Mlp: same", known).kind == InTraining.UNSEEN
    assert effect_of("Mlp: error", known).kind == effect_of("Mlp: nan", known).kind == InTraining.STOPS
    assert effect_of("Mlp: waiting", known).kind == InTraining.UNMEASURED


def test_the_packaged_file_is_what_the_kept_results_say():
    result = json.loads((RESULTS / SELECTIONS["all"].file).read_text())
    right, *wrong = (Row(**each) for each in result["rows"])
    assert right.name == RIGHT
    made = findings(right, wrong, result["not_trained"], result["model"]["num_classes"])
    assert json.loads(LIBRARY.read_text()) == made, "run benchmarks/broken_vit.py with --list: it writes the file anew"
