"""What only grading asks of ``replace_head``."""

from __future__ import annotations

from exercise_kit.engine.expect import expect_no_device_mismatch
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l09_fine_tuning.replace_head import claims


@claims.replace_head.check(graded_only=True, points=0.25, first=claims.the_backbone_keeps_what_it_has_learned)
def the_head_starts_as_pytorch_starts_one(student: Student, probe: Probe) -> None:
    """The new head's numbers are as PyTorch starts those of a Linear: evenly spread up to 1 / √embed_dim."""
    config, _ = claims.draw_config_and_num_classes(probe)
    head = claims.call_and_read_notes(student, probe, config, 128)["head"]
    bound = config.embed_dim**-0.5
    # 1280 numbers and more, or 128: evenly spread from -bound to bound, half of them are within half of it
    for name, least in (("weight", 0.4), ("bias", 0.25)):
        numbers = head[name].double().abs() / bound
        share, most = float((numbers < 0.5).double().mean()), float(numbers.max())
        as_usual = least < share < 1 - least and most <= 1 + 1e-6
        student.note((name, as_usual, most == 0))
        if not as_usual:
            what = "is all zeros" if most == 0 else f"goes up to {most * bound:.3g}, {share:.0%} below {bound / 2:.3g}"
            wanted = f"as a new nn.Linear has them: evenly spread from {-bound:.3g} to {bound:.3g}"
            look = "What does nn.Linear do with its numbers, and who touches them after it?"
            raise Failure(f"the {name} of the new head {what}", wanted, look)


@claims.replace_head.check(graded_only=True, points=0.05, first=claims.the_backbone_keeps_what_it_has_learned)
def the_copy_is_of_the_models_class_and_device(student: Student, probe: Probe) -> None:
    """What comes back is a model of the same class, whose new head has a bias even where the old one had none, and is
    where the model is."""
    config, num_classes = claims.draw_config_and_num_classes(probe)
    notes = claims.call_and_read_notes(student, probe, config, num_classes, "same class", bias=False)
    if not notes["same class"]:
        look = "What does copy.deepcopy give for an object of a class?"
        raise Failure("what comes back is of another class than the model", "a model of the same class", look)
    claims.expect_right_head(student, notes, config, num_classes)
    fields = claims.draw_model_fields(probe, config)
    expect_no_device_mismatch(student, student.run_fixture("rehead_elsewhere", num_classes=num_classes, **fields))
