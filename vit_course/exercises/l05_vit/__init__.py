"""Lesson 05: the whole model."""

LESSON = "05_vit"
ORDER = ("vision_transformer", "count_parameters", "load_torchvision")
