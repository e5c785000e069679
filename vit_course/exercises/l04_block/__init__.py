"""Lesson 04: the encoder block."""

LESSON = "04_block"
ORDER = ("layer_norm", "is_layer_norm", "mlp", "encoder_block")
