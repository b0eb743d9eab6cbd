"""Lists of nodes in Slurm's short form, and which nodes a job gets."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fake_slurm.state import Json


def expand(text: str) -> list[str]:
    """``n[1-2],n4`` gives n1, n2, n4."""
    names: list[str] = []
    prefix = ""
    # A comma outside of brackets separates like the end of them.
    for part in text.replace("[", "[,").replace("]", ",],").split(","):
        if part.endswith("["):
            prefix = part[:-1]
        elif part == "]":
            prefix = ""
        elif part and prefix:
            low, _, high = part.partition("-")
            numbers = range(int(low), int(high or low) + 1)
            names += [f"{prefix}{number:0{len(low)}}" for number in numbers]
        elif part:
            names.append(part)
    return names


def compact(names: Sequence[str]) -> str:
    """n1, n2, n4 gives ``n[1-2,4]``; names that end in no number stay as they are."""
    prefixes = {name[: len(name) - len(_number(name))] for name in names}
    if len(names) < 2 or len(prefixes) > 1 or not all(map(_number, names)):
        return ",".join(names)
    numbers = sorted(int(_number(name)) for name in names)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"{prefixes.pop()}[{','.join(parts)}]"


def _number(name: str) -> str:
    """The digits at the end of a name, without zeros before them."""
    return name[len(name.rstrip("0123456789")) :].lstrip("0")


def place(options: dict[str, str], state: Json, number: int) -> list[str]:
    """The nodes of a job: those asked for, else the next in turn; a node may have many jobs."""
    asked = expand(options.get("nodelist", ""))
    excluded = set(expand(options.get("exclude", "")))
    count = max(int(options.get("nodes") or 1), len(asked))
    free = [
        name
        for name, word in state["nodes"].items()
        if name not in excluded and name not in asked and word in ("idle", "mixed", "allocated")
    ]
    turn = number % len(free) if free else 0
    return sorted((asked + free[turn:] + free[:turn])[:count])
