"""Campaigns without a file: the embedded default, and the same by flags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from commtune.campaign.file import CampaignSpec, parse_campaign
from commtune.errors import CampaignError, UserError
from commtune.model import Operation, content_key


@dataclass(frozen=True)
class Flags:
    """What the command line may say instead of a campaign file; ``None`` leaves the default."""

    name: str | None = None
    space: str | None = None
    mpi: str | None = None
    operation: str | None = None
    ranks: int | None = None
    sizes: str | None = None
    search: str | None = None
    ablation: str | None = None
    confirmation: str | None = None
    trials: int | None = None
    seed: int | None = None
    minimum_gain: str | None = None
    guards: Sequence[str] = ()
    backend: str | None = None


def flag_name(name: str) -> str:
    """How a field of ``Flags`` is written on the command line."""
    short = {"operation": "op", "ablation": "ablate", "confirmation": "confirm", "guards": "guard"}
    return f"--{short.get(name, name).replace('_', '-')}"


def quick_campaign(flags: Flags, space: str, mpi: str) -> CampaignSpec:
    """The campaign that flags describe.

    Args:
        space: the space to use where the flags name none.
        mpi: which MPI was found, for the campaign's name.
    """
    workload = _given(
        operation=flags.operation,
        ranks=flags.ranks,
        sizes=_sizes(flags.sizes),
        backend=flags.backend,
    )
    budget = _given(
        search=flags.search,
        ablation=flags.ablation,
        confirmation=flags.confirmation,
        trials=flags.trials,
    )
    document = {
        "campaign": 1,
        "name": flags.name or _name(flags, workload, mpi),
        "space": flags.space or space,
        "mpi": flags.mpi or "auto",
        "workload": workload,
        "budget": budget,
        **_given(seed=flags.seed, minimum_gain=flags.minimum_gain),
        **({"guard_operations": list(flags.guards)} if flags.guards else {}),
    }
    if flags.operation == Operation.MATRIX:
        raise UserError(
            "--op matrix needs a file of messages, which only a campaign file names",
            hint="'commtune init' writes one; add `workload: {operation: matrix, matrix: FILE}`",
        )
    try:
        # JSON is YAML; so a wrong flag meets the same checks as a wrong file.
        return parse_campaign(json.dumps(document), Path.cwd())
    except CampaignError as error:
        raise UserError(_by_flag(error.message), hint=error.hint) from error


def _by_flag(message: str) -> str:
    """The message with the flag's name in the place of the key's in a file."""
    key, separator, rest = message.partition(": ")
    name = (
        key.removeprefix("workload.").removeprefix("budget.").replace("guard_operations", "guards")
    )
    known = {field.name for field in fields(Flags)}
    return (
        f"{flag_name(name)}: {rest}" if separator and name.partition("[")[0] in known else message
    )


def _name(flags: Flags, workload: dict[str, Any], mpi: str) -> str:
    """The same flags give the same name, so that calling again goes on."""
    parts = [flags.operation or "allreduce", mpi, f"s{flags.seed or 1}"]
    if extra := {**workload, **_given(space=flags.space)}:
        parts.append(content_key(extra)[:4])
    return "-".join(parts)


def _sizes(text: str | None) -> Any:
    if text is None or ".." in text:
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
