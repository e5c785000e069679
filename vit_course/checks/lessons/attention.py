"""Public checks of lesson 03: attention."""
