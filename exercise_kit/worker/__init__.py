"""The inside of the sandbox: what runs beside a student's code, and the messages that the judge exchanges with it.

A warm process loads this folder as a package of its own called ``worker``, so its modules import torch, IPython and
each other; of the course only a child imports what its lesson's view holds: records and training fixtures.
The judge uses :mod:`wire` and :mod:`values` from here.
"""
