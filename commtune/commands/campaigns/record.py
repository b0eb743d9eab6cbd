"""``commtune record``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from commtune.commands import options as flags
from commtune.commands.campaigns.progress import open_reporter
from commtune.paths import exists
from commtune.replay.recording import Recorder


def record_command(
    campaign: Annotated[Path, typer.Argument(help="campaign file: space, workload, timing")],
    out: Annotated[Path, typer.Option("--out", "-o", help="file to record to: NAME.jsonl.gz")],
    runs: Annotated[int, typer.Option(help="runs of every configuration")] = 8,
    limit: Annotated[
        str, typer.Option(help="refuse a recording that would take longer: 30min, 4h")
    ] = "4h",
) -> None:
    """Record runs of every configuration of a space for replay, or continue a recording."""
    from commtune.app.measure.recording import record_campaign
    from commtune.campaign.loading import load_campaign

    spec = load_campaign(campaign)
    try:
        with open_reporter() as tell, flags.keys_are_flags():
            made, configurations = record_campaign(
                spec, out, tell, runs=runs, limit_s=flags.seconds_flag("--limit", limit)
            )
    except KeyboardInterrupt:
        kept = Recorder(out).known
        so_far = f"{kept} keeps what was recorded" if exists(kept) else "nothing is recorded yet"
        again = [flags.called_as(), "record", str(campaign), "--runs", str(runs)]
        print(
            f"commtune: interrupted; {so_far}\n"
            f"  to continue: {shlex.join([*again, '--out', str(out)])}",
            file=sys.stderr,
        )
        sys.exit(130)
    print(f"wrote {out}: {made} runs of {configurations:,} configurations")
