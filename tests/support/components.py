"""Programs that some tests need: missing ones skip on a laptop and fail in CI."""

from __future__ import annotations

import os

import pytest

#: Before a command: for root, what takes the right to go where permissions say no.
UNPRIVILEGED = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
)


def require_component(name: str, found: bool) -> None:
    """Goes on if the component was found; else skips, or fails where all must be there.

    CI sets COMMTUNE_TESTS_REQUIRE_ALL=1, so that a test is never skipped there in silence.
    """
    if found:
        return
    reason = f"needs {name}, which this machine lacks"
    if os.environ.get("COMMTUNE_TESTS_REQUIRE_ALL") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
