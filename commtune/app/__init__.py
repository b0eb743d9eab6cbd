"""The use cases of commtune, as functions for the commands and for the Python API.

A use case takes typed arguments, returns a typed result, never prints, and raises
``CommtuneError``. Its messages go to a ``Reporter``. Only ``commtune.wiring`` builds adapters
(databases, launchers, benchmarks); commands only parse arguments and print results.
"""
