"""What is wrong with a ViT that nobody here wrote, by what it does: :func:`vit_course.diagnose`."""
