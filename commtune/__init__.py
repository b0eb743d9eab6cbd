"""commtune: find the environment variables that make communication fast, and prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commtune.api.measuring import (
        Campaign,
        Comparison,
        Result,
        Verification,
        compare,
        load_campaign,
        record,
        tune,
        verify,
    )
    from commtune.api.profiles import Profile
    from commtune.api.store import Store, best, open_store
    from commtune.errors import CommtuneError
    from commtune.kernels.python_bench import Pattern
    from commtune.model import Configuration
    from commtune.spaces.loading import load_space
    from commtune.spaces.space import Space

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

#: The modules of names that are not in ``commtune.api.measuring``.
_HOMES = {
    "CommtuneError": "commtune.errors",
    "Configuration": "commtune.model",
    "Pattern": "commtune.kernels.python_bench",
    "Profile": "commtune.api.profiles",
    "Space": "commtune.spaces.space",
    "Store": "commtune.api.store",
    "best": "commtune.api.store",
    "load_space": "commtune.spaces.loading",
    "open_store": "commtune.api.store",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use, so that commands start fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_HOMES.get(name, "commtune.api.measuring")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
