"""The former name of ``python -m commtune.kernels.python_bench``."""

# Importing it runs it, as -m does.
from commtune.kernels.python_bench import __main__ as __main__
