"""Known mistakes of lesson 03: attention."""
