"""The hidden checks, asked of a student's code, and what becomes of their answers."""
