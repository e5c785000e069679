"""Known mistakes of lesson 02: positions and the class token."""
