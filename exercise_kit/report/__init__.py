"""The class report: what a class handed in, what it got wrong, and what to teach next, on one page."""
