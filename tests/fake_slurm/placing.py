"""Lists of nodes in Slurm's short form, and which nodes a job gets."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fake_slurm.state import Json


def expand(text: str) -> list[str]:
    """``n[1-2],n4`` gives n1, n2, n4."""
    names: list[str] = []
    for prefix, ranges, plain in re.findall(r"([\w-]+)\[([\d,-]+)\]|([\w-]+)", text):
        for part in ranges.split(",") if ranges else []:
            low, _, high = part.partition("-")
            numbers = range(int(low), int(high or low) + 1)
            names += [f"{prefix}{number:0{len(low)}}" for number in numbers]
        names += [plain] if plain else []
    return names


def compact(names: Sequence[str]) -> str:
    """n1, n2, n4 gives ``n[1-2,4]``; names that end in no number stay as they are."""
    split = [re.fullmatch(r"(.*?)([1-9]\d*)", name) for name in names]
    if len(names) < 2 or not all(split) or len({found[1] for found in split if found}) > 1:
        return ",".join(names)
    numbers = sorted(int(found[2]) for found in split if found)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    prefix = next(found[1] for found in split if found)
    return f"{prefix}[{','.join(parts)}]"


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
