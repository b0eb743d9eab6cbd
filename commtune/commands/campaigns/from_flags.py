"""Campaigns without a file: what the flags say, the rest as the embedded default has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commtune.campaign.file import CampaignSpec, parse_campaign
from commtune.errors import CampaignError, UserError
from commtune.model import Operation, content_key

#: Keys of a campaign file by the flags that are called otherwise.
_FLAGS = {
    "operation": "op",
    "ablation": "ablate",
    "confirmation": "confirm",
    "guard_operations": "guard",
}
#: Keys of a campaign file that have no flag.
_WITHOUT_FLAG = ("campaign", "workload", "budget")


def flag_name(key: str) -> str:
    """How a key of a campaign file is written on the command line: ``--minimum-gain``."""
    return f"--{_FLAGS.get(key, key).replace('_', '-')}"


def given_keys(**values: Any) -> dict[str, Any]:
    """What was given: neither ``None``, nor empty."""
    return {name: value for name, value in values.items() if value not in (None, {}, ())}


def first_flag(document: Mapping[str, Any]) -> str:
    """The first flag that was given; empty where none was."""
    for key, value in document.items():
        return first_flag(value) if isinstance(value, dict) else flag_name(key)
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
    known = {flag_key for flag_key in _keys(whole) if flag_key not in _WITHOUT_FLAG}
    try:
        # JSON is YAML; so a wrong flag meets the same checks as a wrong file.
        return parse_campaign(json.dumps(whole), Path.cwd())
    except CampaignError as error:
        raise UserError(_by_flag(error.message, known), hint=error.hint) from error


def _keys(document: Mapping[str, Any]) -> set[str]:
    nested = [_keys(value) for value in document.values() if isinstance(value, dict)]
    return set(document).union(*nested)


def _by_flag(message: str, known: set[str]) -> str:
    """The message with the flag's name in the place of the key's in a file."""
    key, separator, rest = message.partition(": ")
    name = key.removeprefix("workload.").removeprefix("budget.")
    is_flag = separator and name.partition("[")[0] in known
    return f"{flag_name(name)}: {rest}" if is_flag else message


def _name(document: Mapping[str, Any], workload: Mapping[str, Any], mpi: str) -> str:
    """The same flags give the same name, so that calling again continues."""
    parts = [workload.get("operation", "allreduce"), mpi, f"s{document.get('seed') or 1}"]
    if extra := {**workload, **given_keys(space=document.get("space"))}:
        parts.append(content_key(extra)[:4])
    return "-".join(parts)
