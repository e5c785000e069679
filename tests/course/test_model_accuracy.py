"""The exam of a trained model: what is measured, on which images, and what happens where there are none."""

import numpy as np
import pytest
import torch

from exercise_kit.engine.course import NotMeasured
from exercise_kit.engine.probes import Probe
from vit_course.exercises.l07_experiments import model_accuracy
from vit_course.exercises.l07_experiments.model_accuracy import (
    Measured,
    ModelAccuracy,
    draw_colored_squares,
    label_by_reference,
    make_accuracy_for_probe,
    make_accuracy_for_secret,
    read_fingerprint_of_images,
    vit_cifar,
)
from vit_course.exercises.l07_experiments.vit_cifar.claims import SMALL, describe_model
from vit_course.exercises.l07_experiments.weights_file import Refused, list_state_shapes, make_weights_file
from vit_course.metrics import operations_of
from vit_course.vit import VisionTransformer


@pytest.fixture
def images():
    return label_by_reference(draw_colored_squares(Probe("images"), 400))


@pytest.fixture
def data_folder(tmp_path, monkeypatch, images):
    """A folder with 400 test images as CIFAR-10's; of the first half the labels are wrong."""
    monkeypatch.setenv("VIT_COURSE_DATA", str(tmp_path))
    labels = torch.cat([(images.labels[:200] + 1) % 10, images.labels[200:]]).numpy()
    pixels = images.images.permute(0, 2, 3, 1).numpy()
    np.savez(tmp_path / "cifar10.npz", test_images=pixels, test_labels=labels, classes=np.array(images.classes))
    return tmp_path


def test_the_reference_is_right_on_the_made_up_exam_and_others_are_not():
    made_up = make_accuracy_for_probe(Probe("an exam"))
    assert made_up.measure(vit_cifar()).share == 1.0
    other = make_weights_file(Probe("w").weights(list_state_shapes(SMALL)), describe_model(SMALL))
    assert made_up.measure((other, None)).share < 0.5


def test_accuracy_is_exact(images):
    model = VisionTransformer(SMALL).eval()
    weights = Probe("w").weights(list_state_shapes(SMALL))
    model.load_state_dict(weights)
    with torch.no_grad():
        said = model((images.images / 255 - 0.5) / 0.25).argmax(dim=1)
    measured = ModelAccuracy(lambda: images).measure((make_weights_file(weights, describe_model(SMALL)), None))
    assert measured == Measured(int((said == images.labels).sum()), 400)


def test_the_secret_chooses_the_images(data_folder, monkeypatch):
    monkeypatch.setattr(model_accuracy, "MOST_IMAGES", 100)
    found = {make_accuracy_for_secret(bytes([secret])).measure(vit_cifar()) for secret in range(6)}
    assert len(found) > 1
    assert all(measured.count == 100 and 30 < measured.right < 70 for measured in found)
    assert make_accuracy_for_secret(b"\0").measure(vit_cifar()) == make_accuracy_for_secret(b"\0").measure(vit_cifar())


def test_a_larger_model_sees_fewer_images(images, monkeypatch):
    monkeypatch.setattr(model_accuracy, "LEAST_IMAGES", 20)
    monkeypatch.setattr(model_accuracy, "OPERATIONS", 50 * operations_of(SMALL))
    content = make_weights_file(Probe("w").weights(list_state_shapes(SMALL)), describe_model(SMALL))
    assert ModelAccuracy(lambda: images).measure((content, None)).count == 50


def test_a_file_is_measured_once(images, monkeypatch):
    counted = []
    measure = ModelAccuracy(lambda: images)
    monkeypatch.setattr(model_accuracy, "_measure_accuracy", lambda *_: counted.append(1) or Measured(1, 2))
    for _ in range(3):
        measure.measure(vit_cifar())
    assert counted == [1]
    for _ in range(3):
        with pytest.raises(Refused):
            measure.measure((b"no weights", None))


def test_without_images_nothing_is_decided(tmp_path, monkeypatch):
    monkeypatch.setenv("VIT_COURSE_DATA", str(tmp_path / "nothing"))
    with pytest.raises(NotMeasured) as lack:
        make_accuracy_for_secret(b"secret").measure(vit_cifar())
    assert str(tmp_path) not in str(lack.value)
    assert str(tmp_path / "nothing") in lack.value.advice
    with pytest.raises(Refused):  # what cannot be measured anyway is said all the same
        make_accuracy_for_secret(b"secret").measure((b"no weights", None))


def test_damaged_images_and_other_sets_are_reported(data_folder, images):
    measure = make_accuracy_for_secret(b"secret")
    assert measure.measure(vit_cifar()).count == 400
    before = read_fingerprint_of_images()
    path = data_folder / "cifar10.npz"
    np.savez(path, test_images=np.zeros((5, 28, 28), "uint8"), test_labels=np.zeros(5, "int64"), classes=np.arange(10))
    assert read_fingerprint_of_images() != before
    with pytest.raises(NotMeasured) as other:
        measure.measure(vit_cifar())
    assert "none of CIFAR-10" in other.value.advice
    path.write_bytes(b"half of it")
    with pytest.raises(NotMeasured) as damaged:
        measure.measure(vit_cifar())
    assert "cannot be read" in damaged.value.advice


def test_an_accuracy_in_words():
    assert str(Measured(723, 1000)) == "72.3 % of 1000 held-out images (± 2.8 %)"
