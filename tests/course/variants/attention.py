"""Right variants."""

RIGHT: dict = {}
