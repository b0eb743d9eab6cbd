"""``python -m commtune.cli``."""

from commtune.cli import main

main()
