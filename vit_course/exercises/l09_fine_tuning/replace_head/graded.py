"""What only grading asks of ``replace_head``."""

from __future__ import annotations

from exercise_kit.engine.expect import expect_no_device_mismatch
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l09_fine_tuning.replace_head import claims


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
