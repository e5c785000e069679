"""What `vit-course grade --json` wrote, as the files that a school's systems read: one module a system."""
