"""What commtune does, as functions: the commands and the Python API both stand on these.

The law of this package: a use case takes typed arguments, returns a typed result, never prints,
and raises ``CommtuneError``. What it has to say on its way goes to a ``Reporter``. Adapters
(databases, launchers, benchmarks) are built by ``commtune.wiring`` alone; commands only parse
their arguments and print results.
"""
