"""Which mistakes are settings of one formula, so that any two of them can be made at once.

A module here for each group of exercises; importing one declares its parts to :mod:`exercise_kit.engine.two_mistakes`.
A setting is the mistake alone again: a test holds each against the misconception that it belongs to.
"""
