"""What the tests of exports share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def connections_of_others() -> Iterator[None]:
    """Lets go of what Optuna and Datasette leave open, so that no later test hears of it."""
    yield
    gc.collect()
