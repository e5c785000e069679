"""The exercises of the course: public checks, known mistakes, and what they are measured with."""
