"""Public checks of lesson 05: the whole model."""
