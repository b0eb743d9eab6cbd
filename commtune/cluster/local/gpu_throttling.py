"""GPUs that held back their clocks during a run, from the benchmark's footer.

That is written down and shown, and nothing is compared by it: a configuration that moves more data
draws more power, so that it may itself be why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What somebody set, which holds for all runs alike.
_CHOSEN = frozenset({"none", "idle", "gpu-idle", "applications-clocks", "display-clock"})


def find_throttled_ranks(footer: Mapping[str, Any] | None) -> str:
    """Which ranks' GPUs were slowed down before or after the sizes, and why; else empty."""
    ranks = (footer or {}).get("gpus")
    told = []
    for rank, states in enumerate(ranks if isinstance(ranks, list) else []):
        if reasons := _reasons(states):
            told.append(f"rank {rank} {', '.join(reasons)}")
    return f"GPUs were slowed down: {'; '.join(told)}" if told else ""


def _reasons(states: object) -> list[str]:
    """Reasons of a rank, before and after, each once; whatever is no list of words is none."""
    found: dict[str, None] = {}
    for state in states.values() if isinstance(states, Mapping) else ():
        throttle = state.get("throttle") if isinstance(state, Mapping) else None
        words = throttle if isinstance(throttle, list) else []
        found.update(dict.fromkeys(str(word) for word in words if word not in _CHOSEN))
    return list(found)
