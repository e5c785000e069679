"""Lesson 03: attention."""

LESSON = "03_attention"
ORDER = ("scaled_dot_product_attention", "split_heads", "multi_head_self_attention", "is_attention")
