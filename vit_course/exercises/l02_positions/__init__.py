"""Lesson 02: positions and the class token."""

LESSON = "02_positions"
ORDER = ("sinusoidal_positions", "sinusoidal_positions_2d", "add_class_token", "resize_positions")
