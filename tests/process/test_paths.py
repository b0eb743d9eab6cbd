"""What is at a path: the same words with every Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import commtune
from commtune.paths import exists, is_file, is_folder


def test_what_is_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("file")
    told = {
        name: (exists(path), is_file(path), is_folder(path))
        for name in (".", "file", "link", "none", "file/below", "loop", "with\0nul")
        for path in [tmp_path / name]
    }
    assert told == {
        ".": (True, False, True),
        "file": (True, True, False),
        "link": (True, True, False),
    } | dict.fromkeys(("none", "file/below", "loop", "with\0nul"), (False, False, False))


@pytest.mark.parametrize("ask", [exists, is_file, is_folder])
def test_where_nobody_can_tell_that_is_said(ask: object, tmp_path: Path) -> None:
    assert callable(ask)
    with pytest.raises(OSError, match="too long"):
        ask(tmp_path / ("x" * 300))


def test_no_module_asks_in_a_way_that_depends_on_the_python() -> None:
    packaged = {"entry.is_file()"}  # of the package itself, which may be no path
    root = Path(commtune.__file__).parent
    found = {
        (str(file.relative_to(root)), asked)
        for file in root.rglob("*.py")
        if file.name != "paths.py"
        for asked in re.findall(r"[\w)\]]+\.(?:exists|is_file|is_dir)\(\)", file.read_text())
    }
    assert {one for one in found if one[1] not in packaged} == set()
