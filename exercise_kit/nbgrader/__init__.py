"""nbgrader: class folders, the steps of autograding and feedback, a rehearsal."""
