"""Many submissions: jobs, kept results, the command line's `grade`."""
