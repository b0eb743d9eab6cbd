"""A made-up space, and a machine on which it is known what is fast."""

from __future__ import annotations

from made_up_spaces import made_up_space

from commtune.model import Configuration

SPACE = made_up_space("""
  - {name: BUFFER, kind: power-of-two, range: [1024, 65536], source: test}
  - {name: ALGORITHM, kind: choice, values: [ring, tree, hang, bad], source: test}
  - {name: NOTHING, kind: integer, range: [1, 9], source: test}
  - {name: NEITHER, kind: bool, source: test}
""")


def truth(configuration: Configuration, size: int) -> float:
    """A large buffer is 1.5x faster at large sizes, and a ring hurts small ones."""
    base = 1e-6 + size / 5e9
    if size >= 65536 and int(configuration.get("BUFFER", "8192")) >= 32768:
        base /= 1.5
    if size <= 1024 and configuration.get("ALGORITHM") == "ring":
        base *= 2
    return base
