"""benchmarks/broken_vit.py: its kept results are whole, and a run of today goes on with them."""

import json

import pytest
from broken_vit import RESULTS, RIGHT, SELECTIONS, Row, describe_conditions, load_rows
from wrong_models import iterate_wrong_models

from vit_course.data import shapes
from vit_course.training import TrainingSettings

MODELS = {model.key: model for model in iterate_wrong_models()}


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=list(SELECTIONS))
def test_a_run_of_today_goes_on_with_what_is_kept(selection):
    path, images = RESULTS / selection.file, shapes(1)
    now = describe_conditions(images, images, TrainingSettings(selection.epochs))
    if path.exists():
        result = json.loads(path.read_text())
        now |= {name: result[name] for name in ("device", "torch", "data")}
        assert result["data"]["train_images"] == selection.train_images
    assert len(load_rows(path, now, [RIGHT, *(selection.keys or MODELS)])) == 1 + len(selection.keys or MODELS)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("broken_vit*.json")), ids=lambda path: path.stem)
def test_kept_results_name_models_that_exist(path):
    result = json.loads(path.read_text())
    names = {row["name"] for row in result["rows"]} - {RIGHT}
    assert names <= set(MODELS)
    assert names.isdisjoint(result["not_trained"])
    for row in (Row(**each) for each in result["rows"]):
        assert len({len(row.seeds), len(row.accuracies), len(row.train_losses), len(row.stopped)}) == 1
