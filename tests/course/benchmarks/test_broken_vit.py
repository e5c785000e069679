"""benchmarks/broken_vit.py: a run that was stopped goes on, and nothing is written by halves."""

import json

import pytest
from broken_vit import RESULTS, RIGHT, SELECTIONS, Row, known, load, save, table, train_row
from wrong_models import wrong_models

from vit_course.data import shapes
from vit_course.training import TrainingSettings

MODELS = {model.key: model for model in wrong_models()}


@pytest.fixture
def row():
    made = Row("Mlp: no activation")
    made.add(0, 0.41, [2.1, 1.9], 12.34, None)
    return made


def test_rows_survive_a_round_trip(tmp_path, row):
    then = {"torch": "2.x", "settings": {"epochs": 3}}
    save(tmp_path / "rows.json", then, [Row(RIGHT), row], {"Mlp: hidden dim fixed at four": "same"})
    assert load(tmp_path / "rows.json", then, [RIGHT, row.name]) == [Row(RIGHT), row]
    assert not list(tmp_path.glob("*.part"))


def test_rows_of_other_conditions_are_not_lost(tmp_path, row):
    save(tmp_path / "rows.json", {"torch": "2.x", "settings": {"epochs": 3}}, [row], {})
    with pytest.raises(ValueError, match="another settings: give another --output"):
        load(tmp_path / "rows.json", {"torch": "2.x", "settings": {"epochs": 4}}, [row.name])


def test_rows_that_nobody_ran_are_listed(tmp_path, row):
    save(tmp_path / "rows.json", {}, [row, Row("Mlp: the tanh form")], {})
    assert json.loads((tmp_path / "rows.json").read_text())["not_run_yet"] == ["Mlp: the tanh form"]
    assert "not run yet" in table([row, Row("Mlp: the tanh form")], {})


def test_conditions_are_what_json_gives_back_without_the_seed():
    images = shapes(40)
    found = known(images, images, TrainingSettings(3, seed=5))
    assert json.loads(json.dumps(found)) == found
    assert found == known(images, images, TrainingSettings(3, seed=6))
    assert found["settings"]["epochs"] == 3


def test_a_loss_that_is_not_finite_is_an_outcome():
    images = shapes(64)
    row = Row("layer_norm: deviations never squared")
    settings = TrainingSettings(1, batch_size=32, learning_rate=1e4, gradient_clip=None)
    train_row(row, MODELS[row.name], images, images, settings)
    assert row.seeds == [0]
    assert (row.accuracies[0] is None) == (row.stopped[0] is not None)


def test_the_same_seed_gives_the_same_row():
    images = shapes(64)
    rows = [Row(RIGHT), Row(RIGHT)]
    for row in rows:
        train_row(row, None, images, images, TrainingSettings(1, batch_size=32))
    assert rows[0].accuracies == rows[1].accuracies
    assert rows[0].train_losses == rows[1].train_losses


def test_the_table_names_rows_and_reasons(row):
    text = table([row], {"Mlp: hidden dim fixed at four": "same as the right model"})
    assert "41.0%" in text
    assert "same as the right model" in text


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=list(SELECTIONS))
def test_a_run_of_today_goes_on_with_what_is_kept(selection):
    path, images = RESULTS / selection.file, shapes(1)
    now = known(images, images, TrainingSettings(selection.epochs))
    if path.exists():
        result = json.loads(path.read_text())
        now |= {name: result[name] for name in ("device", "torch", "data")}
        assert result["data"]["train_images"] == selection.train_images
    assert len(load(path, now, [RIGHT, *(selection.keys or MODELS)])) == 1 + len(selection.keys or MODELS)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("broken_vit*.json")), ids=lambda path: path.stem)
def test_kept_results_name_models_that_exist(path):
    result = json.loads(path.read_text())
    names = {row["name"] for row in result["rows"]} - {RIGHT}
    assert names <= set(MODELS)
    assert names.isdisjoint(result["not_trained"])
    for row in (Row(**each) for each in result["rows"]):
        assert len({len(row.seeds), len(row.accuracies), len(row.train_losses), len(row.stopped)}) == 1
