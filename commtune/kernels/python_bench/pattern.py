"""Patterns of messages that users write in Python.

A pattern is a class that says, for a size, which messages there are::

    class Shift(Pattern):
        def define(self):
            for rank in range(self.ranks):
                self.add(rank, (rank + 1) % self.ranks, self.size)

Messages of one part may all be under way at once. A pattern is a part itself; where some messages
have to wait for others it has further parts, and ``run`` says in which order they go.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.messages import MessagePattern


class Pattern(MessagePattern):
    """A communication pattern for one size; subclasses say in ``define`` what it is.

    Attributes:
        ranks: how many there are.
        size: bytes, as the campaign's ``sizes`` say them; what they mean is the pattern's affair.
        comm: all ranks, an mpi4py communicator; there while it is measured, ``None`` before.
    """

    @classmethod
    def measure(cls, sizes: Sequence[int], **options: Any) -> list[dict[str, Any]]:
        """Measures the pattern at these sizes (bytes); call it on all ranks.

        Args:
            options: as on the command line, with ``_`` for ``-``: ``dtype``, ``time_cap`` ...

        Returns:
            The measurement records of the contract on rank 0, nothing on the others.

        Raises:
            UsageFault: an option, or a message of the pattern, is wrong.
        """
        from commtune.kernels.python_bench.running import measure_pattern

        return measure_pattern(cls, sizes, options)


def load_pattern(named: str) -> type[Pattern]:
    """The class that ``FILE.py:CLASS`` names; CLASS may be left out where the file has one.

    Raises:
        UsageFault: there is no such file or class.
    """
    written, _, name = named.partition(".py:")
    path = Path(written + ".py" if name else named)
    if not path.is_file():
        raise UsageFault(f"--python: there is no file {path}")
    module_name = f"commtune_pattern_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UsageFault(f"--python: {path} is no Python file; its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.resolve().parent))  # what lies beside it can be imported
    spec.loader.exec_module(module)
    found = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Pattern) and value is not Pattern
    }
    if not name and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    there = ", ".join(sorted(found)) or "none"
    wanted = f"there is no pattern '{name}' in {path}" if name else f"{path} has several patterns"
    raise UsageFault(f"--python: {wanted}; subclasses of Pattern there: {there}")
