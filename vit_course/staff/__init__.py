"""What only the judge may see: right answers, and the cases of a hidden check. No wheel holds this package."""
