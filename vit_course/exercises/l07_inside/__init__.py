"""Lesson 07: a look inside."""

LESSON = "07_inside"
ORDER = ("attention_rollout", "mean_attention_distance", "predict_with_attention")
