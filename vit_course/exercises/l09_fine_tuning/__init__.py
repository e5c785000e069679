"""Lesson 09: a trained model for a task of one's own."""

LESSON = "09_fine_tuning"
ORDER = ("replace_head", "extract_features", "linear_probe", "fine_tuning_groups")
