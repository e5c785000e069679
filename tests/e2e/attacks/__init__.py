"""The attack corpus: hostile submissions, each with the score that its author has earned."""
