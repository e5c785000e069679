"""From `solutions/NN_topic.py`, the one source of a lesson, to its two notebooks."""
