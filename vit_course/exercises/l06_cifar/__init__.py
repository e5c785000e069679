"""Lesson 06: training."""

LESSON = "06_cifar"
ORDER = (
    "split_indices",
    "train_one_epoch",
    "evaluate",
    "warmup_cosine",
    "parameter_groups",
    "early_stopping",
    "vit_cifar",
)
