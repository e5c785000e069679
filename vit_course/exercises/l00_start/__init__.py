"""Lesson 00: first steps."""

LESSON = "00_start"
ORDER = ("normalize_images",)
