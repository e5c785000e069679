"""A kit for courses that are graded by hidden checks: it checks, diagnoses, judges in a sandbox, reports and simulates.

It knows torch and notebooks; what it has to know of a course comes as one :class:`exercise_kit.engine.course.Course`.
"""
