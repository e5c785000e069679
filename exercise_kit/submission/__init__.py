"""What was handed in: found, read against the released lesson, and described for the judge."""
