"""Lesson 10: what was added to the Vision Transformer since 2020."""

LESSON = "10_modern"
ORDER = (
    *("drop_path", "layer_scale", "add_registers", "rotary_2d", "is_rotary"),
    *("qk_norm_attention", "random_masking"),
)
