"""``commtune record``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from commtune.campaign.file import load_campaign
from commtune.commands.campaigns.progress import make_reporter
from commtune.commands.options import called_as
from commtune.commands.signals import signals_interrupt
from commtune.documents.quantities import QuantityError, parse_seconds
from commtune.errors import UserError
from commtune.replay.recorder import Recorder


def record_command(
    campaign: Annotated[Path, typer.Argument(help="campaign file: space, workload, timing")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the recording: NAME.jsonl.gz")],
    runs: Annotated[int, typer.Option(help="runs of every configuration")] = 8,
    limit: Annotated[str, typer.Option(help="refuse what would take longer: 30min, 4h")] = "4h",
) -> None:
    """Record runs of every configuration of a space for replay, or continue a recording."""
    from commtune.app.recording import record_campaign

    spec = load_campaign(campaign)
    tell = make_reporter()
    try:
        with signals_interrupt():
            made = record_campaign(spec, out, tell, rounds=runs, longest_s=_seconds(limit))
    except KeyboardInterrupt:
        tell.close()
        kept = Recorder(out).known
        so_far = f"{kept} keeps what was recorded" if kept.exists() else "nothing is recorded yet"
        again = [called_as(), "record", str(campaign), "--runs", str(runs), "--out", str(out)]
        print(
            f"commtune: interrupted; {so_far}\n  to continue: {shlex.join(again)}",
            file=sys.stderr,
        )
        sys.exit(130)
    finally:
        tell.close()
    print(f"wrote {out}: {made.runs} runs of {made.configurations:,} configurations")


def _seconds(limit: str) -> float:
    try:
        return parse_seconds(limit)
    except QuantityError as error:
        raise UserError(f"--limit {limit}: {error}", hint="write it like 30min or 4h") from error
