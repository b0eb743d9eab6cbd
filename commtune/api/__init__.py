"""The Python API: what ``import commtune`` gives. Its page is docs/python-api.md."""

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
from commtune.kernels.python_bench import Pattern
from commtune.model import Configuration
from commtune.spaces.loading import load_space
from commtune.spaces.space import Space

__all__ = [
    "Campaign",
    "Comparison",
    "Configuration",
    "Pattern",
    "Profile",
    "Result",
    "Space",
    "Store",
    "Verification",
    "best",
    "compare",
    "load_campaign",
    "load_space",
    "open_store",
    "record",
    "tune",
    "verify",
]
