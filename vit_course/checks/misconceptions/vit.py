"""Known mistakes of lesson 05: the whole model."""
