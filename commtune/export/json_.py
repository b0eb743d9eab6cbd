"""JSON, for programs: the environment, and the evidence in numbers (seconds, bytes)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from commtune.export.document import ExportDocument, Format, GuardVerdict
from commtune.formatting import without_infinities

_SCHEMA = "commtune-profile/1"


def _write(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    content = {
        "schema": _SCHEMA,
        "remarks": lines,
        "environment": document.variables(),
        "pinned": sorted(document.pinned),
        "left_unset": sorted(document.unset),
        "profile": _profile(document),
        "guards_hold": guards.hold,
        "guard_tolerance": guards.tolerance,
        "origin": {
            "campaign": document.campaign,
            "system": document.system,
            "fingerprint": document.fingerprint,
            "stack": document.stack,
            "created": document.created,
            "commtune": document.commtune_version,
        },
    }
    data = without_infinities(content)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _profile(document: ExportDocument) -> dict[str, Any]:
    profile = document.profile
    plain = ("name", "operation", "backend", "ranks", "nodes", "bytes_low", "bytes_high", "level")
    values: dict[str, Any] = {name: getattr(profile, name) for name in plain}
    values["minimum_gain"] = profile.minimum_gain
    values["points"] = [asdict(point) for point in profile.points]
    values["guards"] = [asdict(point) for point in profile.guards]
    return values


FORMAT = Format(
    "json", _write, "read .environment", lambda names: "start without " + ", ".join(names)
)
