"""``commtune doctor``."""

from __future__ import annotations

import json
from dataclasses import asdict

from commtune.cluster.doctor import Finding, Status, examine
from commtune.commands import text
from commtune.db.location import database_url, sqlite_path

_MARKS = {Status.OK: "ok", Status.MISSING: "missing", Status.WARNING: "warning"}


def run(db: str | None, *, json_output: bool) -> None:
    """Prints what this machine has and lacks."""
    path = sqlite_path(database_url(db))
    findings = list(examine(database=path))
    if json_output:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    rows = [(finding.area, _MARKS[finding.status], finding.what) for finding in findings]
    print(text.columns(("area", "state", "what"), rows))
    if mending := _mending(findings):
        print(f"\nTo mend:\n{mending}")


def _mending(findings: list[Finding]) -> str:
    return "\n".join(f"  {f.mend}" for f in findings if f.mend and f.status is not Status.OK)
