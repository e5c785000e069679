"""Staff only: class folders for nbgrader, and sample submissions to try one out."""
