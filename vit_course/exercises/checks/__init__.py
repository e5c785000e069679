"""The public checks, one module a lesson."""
