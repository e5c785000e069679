"""Known mistakes of lesson 04: the encoder block."""
