"""The command line of the kit, for a course to take over."""
