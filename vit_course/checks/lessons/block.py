"""Public checks of lesson 04: the encoder block."""
