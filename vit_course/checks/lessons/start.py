"""Public checks of lesson 00: first steps."""
