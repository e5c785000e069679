"""Exit statuses by which a child says why it ended."""

OUT_OF_MEMORY = 77
BROKEN = 78
OUT_OF_DISK = 79
