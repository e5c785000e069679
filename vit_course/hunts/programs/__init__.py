"""Right programs and the comments that spoil them, one module for an exercise; read as text, see `ground`."""
