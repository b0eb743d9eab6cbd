"""``commtune doctor``."""

from __future__ import annotations

import json
from dataclasses import asdict

from commtune.cluster.doctor import Finding, Status, examine
from commtune.cluster.machine import describe_machine
from commtune.cluster.mpi import find_mpi
from commtune.commands import text
from commtune.db.location import database_url, sqlite_path
from commtune.errors import CommtuneError
from commtune.model import MpiInstallation
from commtune.wiring.gpu_doctor import backends

_MARKS = {Status.OK: "ok", Status.MISSING: "missing", Status.WARNING: "warning"}


def run(db: str | None, *, json_output: bool) -> None:
    """Prints what this machine has and lacks."""
    path = sqlite_path(database_url(db))
    findings = [*examine(database=path), *backends(describe_machine(), _mpi())]
    if json_output:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    rows = [(finding.area, _MARKS[finding.status], finding.what) for finding in findings]
    print(text.columns(("area", "state", "what"), rows))
    if mending := _mending(findings):
        print(f"\nTo mend:\n{mending}")


def _mpi() -> MpiInstallation | None:
    """The one that campaigns take; that there is none was said before."""
    try:
        return find_mpi("auto")
    except CommtuneError:
        return None


def _mending(findings: list[Finding]) -> str:
    return "\n".join(f"  {f.mend}" for f in findings if f.mend and f.status is not Status.OK)
