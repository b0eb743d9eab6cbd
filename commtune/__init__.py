"""commtune: find the environment variables that make communication fast, and prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commtune.api import (
        Campaign,
        Comparison,
        Configuration,
        Pattern,
        Profile,
        Result,
        Space,
        Store,
        Verification,
        best,
        compare,
        load_campaign,
        load_space,
        open_store,
        record,
        tune,
        verify,
    )
    from commtune.errors import CommtuneError

__version__ = "0.1.0"

__all__ = [
    "Campaign",
    "CommtuneError",
    "Comparison",
    "Configuration",
    "Pattern",
    "Profile",
    "Result",
    "Space",
    "Store",
    "Verification",
    "__version__",
    "best",
    "compare",
    "load_campaign",
    "load_space",
    "open_store",
    "record",
    "tune",
    "verify",
]

#: Names that don't need the whole API: a pattern is imported by every rank of a run.
_HOMES = {
    "CommtuneError": "commtune.errors",
    "Pattern": "commtune.kernels.python_bench",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, and no more: commands start fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_HOMES.get(name, "commtune.api")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
