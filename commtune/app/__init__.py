"""The use cases of commtune, as functions for the commands and for the Python API.

A use case takes typed arguments, returns a typed result, never prints, and raises
``CommtuneError``. Its messages go to a ``Reporter``; commands parse arguments and print results.
"""
