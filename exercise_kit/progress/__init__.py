"""What a student has guessed, done and earned: noted in a file of their own, and shown to nobody else."""
