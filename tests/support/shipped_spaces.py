"""What `commtune spaces list` says of each shipped space, from the spaces themselves.

    .venv/bin/python tests/support/shipped_spaces.py

writes it again, after a change of a space or of a catalogue.
"""

from __future__ import annotations

import json
from pathlib import Path

import commtune
from commtune.commands.reference.spaces import describe_space
from commtune.spaces.loading import list_presets, load_space

_FILE = Path(commtune.__file__).parent / "spaces/shipped.json"


def check_shipped_spaces() -> None:
    """Fails where the list is not what the spaces say today."""
    shipped = _FILE.read_text(encoding="utf-8")
    assert shipped == _text(), "write it again: python tests/support/shipped_spaces.py"


def _text() -> str:
    # A line each, so that a change shows what changed.
    lines = (json.dumps(describe_space(load_space(name))) for name in list_presets())
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    _FILE.write_text(_text(), encoding="utf-8")
