"""What the library tells of a mistake in training: the outcome of broken_vit.py, in as few numbers as will do."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from distinguishable import RIGHT_MODEL, SAME

if TYPE_CHECKING:
    from broken_vit import Row

# in the library's sentences
TRAINED = {
    "model": "a small ViT",
    "data": "CIFAR-10",
    "test_data": "CIFAR-10's test images",
    "bugs_in": "a Vision Transformer",
}
LIBRARY = Path(__file__).parents[1] / "vit_course" / "exercises" / "in_training.json"


def collect_training_outcomes(
    right: Row, wrong: list[Row], reasons: dict[str, str], num_classes: int
) -> dict[str, Any]:
    """Return what exercise_kit.engine.exercise reads: what became of the right model, and of each mistake by its key.

    Args:
        right: the row of the right model.
        wrong: the rows of all others, those that nobody has run yet too, of which nothing is told.
        reasons: why each of the mistakes was not trained that were not.
        num_classes: from which the library knows the loss of a model that guesses.
    """
    measured = [accuracy for accuracy in right.accuracies if accuracy is not None]
    finding = _describe_outcome(right) | {"spread": round(max(measured) - min(measured), 4), "seeds": len(measured)}
    mistakes = {row.name: _describe_outcome(row) for row in wrong if row.seeds} | {
        key: _describe_why_not_trained(reason) for key, reason in reasons.items()
    }
    right_one = finding | {"classes": num_classes}
    return {"trained": TRAINED, "right": right_one, "mistakes": dict(sorted(mistakes.items()))}


def _describe_outcome(row: Row) -> dict[str, Any]:
    """Means over the seeds, the training loss that of the last epoch; or why training stopped."""
    if why := next((each for each in row.stopped if each), None):
        return {"stops": why}
    accuracies = [accuracy for accuracy in row.accuracies if accuracy is not None]
    losses = [each[-1] for each in row.train_losses if each]
    return {"accuracy": round(mean(accuracies), 4), "loss": round(mean(losses), 4)}


def _describe_why_not_trained(reason: str) -> dict[str, str]:
    if not reason.startswith(SAME):
        return {"stops": reason.removeprefix("stops with ")}
    same = reason.removeprefix(SAME)
    return {"same_as": "right" if same == RIGHT_MODEL else same}
