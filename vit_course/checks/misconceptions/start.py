"""Known mistakes of lesson 00: first steps."""
