"""Metrics, against small cases that can be counted by hand and against naive loops."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import pytest
import torch
from torch import Tensor

from vit_course.metrics import (
    calibration_error,
    confusion_matrix,
    measure,
    paired_interval,
    spread,
    top_k,
    worst_confusions,
)


@pytest.fixture(autouse=True, scope="module")
def sklearn_metrics() -> ModuleType:
    return pytest.importorskip("sklearn.metrics", reason="precision, recall and F1 come from scikit-learn")


def make_logits(*guesses: int, num_classes: int = 3, sure: float = 2.0) -> Tensor:
    """Logits whose largest entry stands at each guess."""
    return sure * torch.nn.functional.one_hot(torch.tensor(guesses), num_classes).float()


def make_random_logits_and_labels(num_images: int = 400, num_classes: int = 7) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, num_classes, (num_images,), generator=generator)
    noise = torch.randn(num_images, num_classes, generator=generator)
    return noise + 1.5 * torch.nn.functional.one_hot(labels, num_classes), labels


class TestMeasure:
    def test_precision_recall_and_f1_of_a_case_counted_by_hand(self) -> None:
        # class 0: found 2 of 3, of 2 guesses both right; class 1: 1 of 1, of 3 guesses one right; class 2: 0 of 1
        metrics = measure(make_logits(0, 0, 1, 1, 1), torch.tensor([0, 0, 0, 1, 2]))
        assert metrics.top1 == pytest.approx(3 / 5)
        assert metrics.macro_precision == pytest.approx((1 + 1 / 3 + 0) / 3)
        assert metrics.macro_recall == pytest.approx((2 / 3 + 1 + 0) / 3)
        assert metrics.macro_f1 == pytest.approx((4 / 5 + 1 / 2 + 0) / 3)
        assert metrics.micro_precision == metrics.micro_recall == pytest.approx(metrics.top1)
        assert metrics.micro_f1 == pytest.approx(metrics.top1)
        assert metrics.num_images == 5

    def test_the_loss_is_the_mean_cross_entropy(self) -> None:
        metrics = measure(torch.zeros(4, 10), torch.arange(4))
        assert metrics.loss == pytest.approx(math.log(10))

    def test_half_precision_logits_will_do(self) -> None:
        logits, labels = make_random_logits_and_labels()
        assert measure(logits.bfloat16(), labels).top1 == pytest.approx(measure(logits, labels).top1, abs=0.02)

    @pytest.mark.parametrize(
        ("logits", "labels", "words"),
        [
            (torch.zeros(3, 2), torch.zeros(4, dtype=torch.int64), r"logits must be .* \(3, 2\) and \(4,\)"),
            (torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), "no image"),
            (torch.tensor([[0.0, torch.nan], [1, 0]]), torch.tensor([0, 1]), "1 of 2 images have a logit that is NaN"),
        ],
    )
    def test_what_cannot_be_measured_is_refused(self, logits: Tensor, labels: Tensor, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            measure(logits, labels)


class TestTopK:
    def test_it_counts_what_a_sorted_list_would(self) -> None:
        logits, labels = make_random_logits_and_labels()
        naive = sum(
            label in sorted(range(7), key=lambda c, row=row: -row[c])[:3]
            for row, label in zip(logits.tolist(), labels.tolist(), strict=True)
        )
        assert top_k(logits, labels, 3) == pytest.approx(naive / len(labels))

    def test_with_few_classes_top_5_is_certain(self) -> None:
        assert top_k(*make_random_logits_and_labels(num_classes=4), 5) == 1.0


class TestCalibration:
    def test_it_equals_the_definition_in_a_loop(self) -> None:
        logits, labels = make_random_logits_and_labels()
        probabilities = logits.softmax(-1)
        confidence, guesses = probabilities.max(-1)
        naive = 0.0
        for number in range(15):
            inside = (confidence > number / 15) & (confidence <= (number + 1) / 15)
            if inside.any():
                right = (guesses == labels)[inside].float().mean()
                naive += abs(right - confidence[inside].mean()).item() * inside.sum().item() / len(labels)
        assert calibration_error(probabilities, labels) == pytest.approx(naive, abs=1e-6)

    def test_sure_and_always_wrong_is_the_largest_error(self) -> None:
        assert calibration_error(torch.tensor([[1.0, 0.0]]), torch.tensor([1])) == pytest.approx(1)


class TestConfusions:
    def test_rows_are_classes_and_columns_guesses(self) -> None:
        matrix = confusion_matrix(torch.tensor([0, 0, 2]), torch.tensor([1, 0, 2]), 4)
        assert matrix.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]

    def test_a_lesson_needs_no_scikit_learn_for_it(
        self, monkeypatch: pytest.MonkeyPatch, sklearn_metrics: ModuleType
    ) -> None:
        logits, labels = make_random_logits_and_labels()
        wanted = sklearn_metrics.confusion_matrix(labels, logits.argmax(dim=-1), labels=range(7)).tolist()
        for name in ("sklearn", "sklearn.metrics"):
            monkeypatch.setitem(sys.modules, name, None)
        assert confusion_matrix(labels, logits.argmax(dim=-1), 7).tolist() == wanted

    def test_the_worst_is_the_largest_share_of_its_class(self) -> None:
        labels = torch.tensor([0] * 10 + [1] * 2)
        guesses = [1] * 3 + [0] * 7 + [2, 1]  # 3 of 10 zeros are taken for one; 1 of 2 ones for two
        worst = worst_confusions(make_logits(*guesses), labels, 5)
        assert [(each.label, each.guess, each.count, each.share) for each in worst] == [(1, 2, 1, 0.5), (0, 1, 3, 0.3)]

    def test_the_most_confident_mistake_comes_first(self) -> None:
        logits = torch.stack([make_logits(1, sure=sure)[0] for sure in (1.0, 3.0, 2.0)])
        assert worst_confusions(logits, torch.zeros(3, dtype=torch.int64), 1)[0].images == (1, 2, 0)

    def test_no_mistake_no_confusion(self) -> None:
        assert worst_confusions(make_logits(0, 1), torch.tensor([0, 1]), 3) == []


class TestSpread:
    def test_it_is_the_sample_deviation(self) -> None:
        found = spread([0.9, 0.92, 0.94])
        assert (found.mean, found.deviation, found.count) == (pytest.approx(0.92), pytest.approx(0.02), 3)

    def test_one_seed_has_no_spread(self) -> None:
        assert spread([0.9]).deviation is None

    def test_no_seed_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no seed"):
            spread([])


class TestPairedInterval:
    def test_three_differences(self) -> None:
        gap, half = paired_interval([51.0, 54.0, 54.0], [50.0, 52.0, 51.0])
        assert gap == pytest.approx(2)
        assert half == pytest.approx(4.303 / 3**0.5, abs=1e-3)

    @pytest.mark.parametrize(
        ("accuracies", "baseline"), [([50.0], [51.0]), ([50.0, 51.0], [51.0]), ([5.0] * 7, [5.0] * 7)]
    )
    def test_too_few_too_many_and_unpaired(self, accuracies: list[float], baseline: list[float]) -> None:
        with pytest.raises(ValueError, match="2 to 6"):
            paired_interval(accuracies, baseline)
