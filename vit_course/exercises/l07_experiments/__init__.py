"""Lesson 07: experiments, and a model to hand in."""

LESSON = "07_experiments"
ORDER = ("mixup", "vit_cifar")
