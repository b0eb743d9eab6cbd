"""Campaigns without a file: what the flags say, the rest as the embedded default has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commtune.campaign.file import CampaignSpec, parse_campaign
from commtune.commands.options import flag_of
from commtune.errors import CampaignError, UserError
from commtune.model import Operation, content_key

#: Keys of a campaign file that have no flag.
_WITHOUT_FLAG = ("campaign", "workload", "budget")


def given_keys(**values: Any) -> dict[str, Any]:
    """What was given: neither ``None``, nor empty."""
    return {name: value for name, value in values.items() if value not in (None, {}, ())}


def first_flag(document: Mapping[str, Any]) -> str:
    """The first flag that was given; empty where none was."""
    for key, value in document.items():
        return first_flag(value) if isinstance(value, dict) else flag_of(key)
    return ""


def quick_campaign(document: Mapping[str, Any], space: str, mpi: str) -> CampaignSpec:
    """The campaign that flags describe.

    Args:
        document: what was given, in the keys of a campaign file.
        space: the space to use where none was given.
        mpi: which MPI was found, for the campaign's name.

    Raises:
        UserError: a value is wrong; it is named by its flag.
    """
    workload = dict(document.get("workload", {}))
    if workload.get("operation") == Operation.MATRIX:
        raise UserError(
            "--op matrix needs a file of messages, which only a campaign file names",
            hint="'commtune init' writes one; add `workload: {operation: matrix, matrix: FILE}`",
        )
    sizes = workload.get("sizes")
    if sizes is not None and ".." not in sizes:
        workload["sizes"] = [part.strip() for part in sizes.split(",") if part.strip()]
    default = {"campaign": 1, "name": _name(document, workload, mpi), "space": space}
    whole = {**default, **document, "workload": workload}
    try:
        # JSON is YAML; so a wrong flag meets the same checks as a wrong file.
        return parse_campaign(json.dumps(whole), Path.cwd())
    except CampaignError as error:
        raise UserError(_by_flag(error), hint=error.hint) from error


def _by_flag(error: CampaignError) -> str:
    """The message with the flag's name in the place of the key's in a file."""
    keys = [step for step in error.where if isinstance(step, str)]
    is_flag = error.named and keys and keys[-1] not in _WITHOUT_FLAG
    return f"{flag_of(keys[-1])}: {error.problem}" if is_flag else error.message


def _name(document: Mapping[str, Any], workload: Mapping[str, Any], mpi: str) -> str:
    """The same flags give the same name, so that calling again continues."""
    parts = [workload.get("operation", "allreduce"), mpi, f"s{document.get('seed') or 1}"]
    if extra := {**workload, **given_keys(space=document.get("space"))}:
        parts.append(content_key(extra)[:4])
    return "-".join(parts)
