"""``python -m vit_course`` is ``vit-course``."""

from vit_course.cli import main

main()
