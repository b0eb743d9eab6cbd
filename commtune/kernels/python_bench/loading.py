"""Finding a user's pattern: FILE.py:CLASS."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.pattern import Pattern


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
