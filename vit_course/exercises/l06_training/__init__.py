"""Lesson 06: training."""

LESSON = "06_training"
ORDER = (
    "split_indices",
    "train_one_epoch",
    "evaluate",
    "warmup_cosine",
    "parameter_groups",
    "early_stopping",
)
