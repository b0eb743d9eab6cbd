"""``commtune tune``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from commtune.commands import options as flags
from commtune.db.connection.location import shown_url
from commtune.documents.nearest import require_known


def tune_command(
    campaign: Annotated[
        Path | None,
        typer.Argument(help="campaign file; without one, the options describe the campaign"),
    ] = None,
    op: flags.OpOption = None,
    ranks: flags.RanksOption = None,
    sizes: flags.SizesOption = None,
    space: Annotated[str | None, typer.Option(help="search space: a preset or a file")] = None,
    mpi: flags.MpiOption = None,
    search: Annotated[
        str | None, typer.Option(help="wall time of the search [50s or more]")
    ] = None,
    ablation: Annotated[
        str | None,
        typer.Option(
            "--ablate", help="wall time of the ablation, which removes unneeded variables [20s]"
        ),
    ] = None,
    confirmation: Annotated[
        str | None, typer.Option("--confirm", help="wall time of the confirmation [30s]")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="maximum number of configurations to try")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the search [1]")] = None,
    learn_from: Annotated[
        list[str] | None,
        typer.Option(
            help="an earlier campaign whose best is tried first, or auto for all, or none; "
            "may be repeated [auto]"
        ),
    ] = None,
    minimum_gain: Annotated[
        str | None, typer.Option(help="smallest speedup worth recommending [2%]")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="with xccl: blocking: each operation is waited for; batched: several together "
            "[whichever varies least between launches]"
        ),
    ] = None,
    operations: Annotated[int | None, typer.Option(help="batched: size of a batch [20]")] = None,
    graph: Annotated[
        str | None, typer.Option(help="yes: launch each batch as one graph (batched only)")
    ] = None,
    guard: Annotated[
        list[str] | None, typer.Option(help="another operation that profiles must not slow down")
    ] = None,
    name: Annotated[str | None, typer.Option(help="name of the campaign")] = None,
    backend: flags.BackendOption = None,
    db: flags.DbOption = None,
    json_output: flags.JsonOption = False,
    take_over: flags.TakeOverOption = False,
    replay: Annotated[
        Path | None, typer.Option(help="replay this recording instead of measuring")
    ] = None,
) -> None:
    """Tune a workload: search, ablate, confirm, store profiles. Run it again to resume."""
    # Most of a second of imports, which help does without.
    from commtune.commands.campaigns.tuning import given_keys, run_campaign

    document = given_keys(
        name=name, space=space, mpi=mpi,
        workload=given_keys(operation=op, ranks=ranks, sizes=sizes, backend=backend),
        budget=given_keys(
            search=search, ablation=ablation, confirmation=confirmation, trials=trials
        ),
        timing=given_keys(
            mode=mode, operations=operations,
            graph=graph and require_known("--graph", graph, ("yes", "no")) == "yes",
        ),
        seed=seed, minimum_gain=minimum_gain, guard_operations=guard or (),
        learn_from=learn_from or (),
    )  # fmt: skip
    run_campaign(
        campaign, document, replay, db, again=_again(campaign, replay, db, sys.argv[1:]),
        json_output=json_output, take_over=take_over,
    )  # fmt: skip


def _again(
    campaign: Path | None, replay: Path | None, db: str | None, arguments: Sequence[str]
) -> str:
    """The command that goes on, with all that was asked for this time."""
    if campaign is None and replay is None:
        return shlex.join([flags.called_as(), *map(shown_url, arguments)])
    from_file = ["--replay", str(replay)] if replay else []
    tune = [flags.called_as(), "tune", str(campaign or "CAMPAIGN.yaml"), *from_file]
    return f"{shlex.join(tune)}{flags.database_flag(db)}   (with a larger 'budget' in the file)"
