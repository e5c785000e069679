"""Grades one submission: its code is run in workers, its checks are asked there, and the outcomes become a score."""
