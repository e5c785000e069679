"""Right answers of many kinds, by exercise: what a check must never refuse."""
