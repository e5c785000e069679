"""Evaluates the hidden checks on a student's code, and turns the outcomes into scores."""
