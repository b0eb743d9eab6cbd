"""What was special about a profile's runs: fields, where it was the first line of its note."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision = "r0004"

_PROFILES = sa.table(
    "profiles",
    sa.column("id", sa.BigInteger()),
    sa.column("note", sa.Text()),
    sa.column("conditions", sa.JSON()),
)
#: How the first line of a note began where it told of conditions; the rest says what could still
#: be hidden.
_TOLD = ("measured beside", "emulated nodes", "timed:", "pattern:")
_PARTS = re.compile(
    r"(?:measured (?P<beside>beside .*?)|emulated nodes: (?P<emulated_nodes>\d+).*?)?"
    r"(?:(?:; |^)timed: (?P<timing>.*?))?(?:(?:; |^)pattern: (?P<pattern>.*))?"
)


def upgrade() -> None:
    """Goes to this schema, and takes the notes apart."""
    column = sa.Column("conditions", sa.JSON(), nullable=False, server_default=sa.text("'{}'"))
    op.add_column("profiles", column)
    connection = op.get_bind()
    for row in connection.execute(sa.select(_PROFILES.c.id, _PROFILES.c.note)).all():
        conditions, note = _taken_apart(row.note)
        changed = sa.update(_PROFILES).where(_PROFILES.c.id == row.id)
        connection.execute(changed.values(conditions=conditions, note=note))


def downgrade() -> None:
    """Goes back to notes that tell of the conditions in their first line."""
    connection = op.get_bind()
    for row in connection.execute(sa.select(_PROFILES)).all():
        lines = [_told(row.conditions), row.note]
        note = "\n".join(filter(None, lines))
        changed = sa.update(_PROFILES).where(_PROFILES.c.id == row.id)
        connection.execute(changed.values(note=note))
    op.drop_column("profiles", "conditions")


def _taken_apart(note: str) -> tuple[dict[str, Any], str]:
    lines = note.splitlines()
    tells = bool(lines) and lines[0].startswith(_TOLD)
    found = _PARTS.fullmatch(lines[0]) if tells else None
    if found is None:
        return {}, "; ".join(lines)
    told: dict[str, Any] = {name: said for name, said in found.groupdict().items() if said}
    if "emulated_nodes" in told:
        told["emulated_nodes"] = int(told["emulated_nodes"])
    return told, "; ".join(lines[1:])


def _told(conditions: dict[str, Any]) -> str:
    emulated = conditions.get("emulated_nodes")
    said = [
        f"measured {conditions['beside']}" if conditions.get("beside") else "",
        f"emulated nodes: {emulated}, over sockets on one machine" if emulated else "",
        f"timed: {conditions['timing']}" if conditions.get("timing") else "",
        f"pattern: {conditions['pattern']}" if conditions.get("pattern") else "",
    ]
    return "; ".join(filter(None, said))
