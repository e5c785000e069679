"""Lesson 08: a look inside."""

LESSON = "08_inside"
ORDER = ("attention_rollout", "mean_attention_distance", "predict_with_attention")
