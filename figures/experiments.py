"""Figure of lesson 07: every arm of the experiments, a dot for each seed."""

from __future__ import annotations

from statistics import mean

from canvas import Canvas
from style import BACKGROUND, BLUE, HAIR, QUIET, VERMILION, save_all_figures
from training import list_runs_of_arm, read_results

GROUPS = {
    "1 positions": {
        "none": "no positions",
        "sine": "sine positions",
        "from 0.02": "small positions",
        "from 0.5": "base",
    },
    "2 softmax": {"logits into the loss": "base", "softmax before the loss": "softmax before the loss"},
    "3 patch": {"16 pixels": "patches of 16", "8 pixels": "base", "4 pixels": "patches of 4"},
    "4 pooling": {"class token": "base", "mean of the tokens": "mean of the tokens"},
    "5 few images": {
        "as they are": "few images",
        "shifted and flipped": "few images, shifted and flipped",
        "and mixed": "few images, shifted, flipped and mixed",
        "or stochastic depth": "few images, shifted, flipped, stochastic depth",
    },
    "6 lab sheet": {
        "64 wide, sine": "sine positions",
        "16 wide, sine": "lab sheet",
        "the same, softmax first": "lab sheet, softmax before the loss",
    },
}


def cifar_experiments() -> Canvas:
    """Every arm of the six experiments, a dot for each seed."""
    log = read_results()
    rows = sum(len(group) for group in GROUPS.values())
    height = 108 + 30 * rows + 36 * len(GROUPS) + 56
    subtitle = f"Validation images right at the end;\n{log['data']['num_validation']:,} images, one mark for each seed."
    canvas = Canvas(height, "Six experiments, three seeds each", subtitle)
    left, right, low, high = 214, 392, 25.0, 55.0
    y, notes = 108.0, []
    bottom = height - 52
    for tick in range(25, 56, 5):
        x = left + (right - left) * (tick - low) / (high - low)
        canvas.line([(x, 98), (x, bottom)], HAIR, 1)
        canvas.text(x, bottom + 14, f"{tick}", 12, QUIET, align="center")
    for group, arms in GROUPS.items():
        canvas.text(24, y + 12, group, 13, weight="bold")
        y += 24
        for name, arm in arms.items():
            accuracies = [100 * run["validation_accuracy"][-1] for run in list_runs_of_arm(log, arm)]
            canvas.text(36, y + 12, name, 12.5)
            for seed, accuracy in enumerate(accuracies):
                x = left + (right - left) * (accuracy - low) / (high - low)
                level = y + 3 + 9 * seed
                if arm == "base":
                    canvas.box(x - 4.5, level - 4.5, 9, 9, BACKGROUND, BLUE, line=2, radius=0)
                else:
                    canvas.disc(x, level, 4.5, "", VERMILION)
            canvas.text(456, y + 12, f"{mean(accuracies):.1f} %", 12.5, align="right", weight="bold")
            notes.append(f"{group[2:]}, {name}: {', '.join(f'{accuracy:.1f}' for accuracy in accuracies)}")
            y += 30
        y += 12
    canvas.text(456, 94, "mean", 12, QUIET, align="right")
    canvas.text(24, bottom + 34, "validation images right, %", 12.5)
    canvas.text(456, bottom + 34, "squares: the same arm throughout", 12, QUIET, align="right")
    return canvas.describe(
        "Accuracy on validation images of every arm of the six experiments, one dot for each of three seeds.",
        f"""One line for each arm, grouped by experiment, with a mark for each seed, one above the other; the arm that
        all experiments share has blue squares, the others discs. Per cent of the validation images right:
        {"; ".join(notes)}.""",
    )


FIGURES = {"cifar_experiments": cifar_experiments}

if __name__ == "__main__":
    save_all_figures(FIGURES)
