"""The attack corpus: hostile submissions of lesson 01, each with the score that its author has earned."""
