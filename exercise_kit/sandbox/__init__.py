"""The judge's end of the sandbox: the warm process, its workers, and a student who answers from one."""
