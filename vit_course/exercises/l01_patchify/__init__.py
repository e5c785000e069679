"""Lesson 01: images into patches, and patches into tokens."""

LESSON = "01_patchify"
ORDER = ("patchify", "unpatchify", "patch_embedding", "conv_from_linear")
