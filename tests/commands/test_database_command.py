"""``commtune db``."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.commands.setup import database
from commtune.errors import NoAnswer


def test_a_mistyped_file_is_no_database_to_upgrade(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="there is no database at"):
        database.upgrade_schema(str(tmp_path / "typo.db"))
    assert list(tmp_path.iterdir()) == []
