"""The known mistakes, one module a lesson, each as the wrong implementation that makes it."""
