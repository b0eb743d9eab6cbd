"""Exports rule files, by which a library chooses algorithms by message size at run time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from commtune.errors import ExportRefused
from commtune.export.document import one_line
from commtune.export.rules.intel_mpi import INTEL_MPI
from commtune.export.rules.mpich import MPICH
from commtune.export.rules.nccl import NCCL_TUNER
from commtune.export.rules.openmpi import OPENMPI, OPENMPI_JSON
from commtune.export.rules.rccl import RCCL_TUNER
from commtune.export.rules.rule_file import RuleExport, RuleFormat, describe_rules
from commtune.export.rules.table import RuleTable
from commtune.formatting import format_sizes
from commtune.model import Configuration
from commtune.spaces.preset_choice import is_version_in

_ALL = (OPENMPI, OPENMPI_JSON, MPICH, INTEL_MPI, NCCL_TUNER, RCCL_TUNER)
RULE_FORMATS = {chosen.name: chosen for chosen in _ALL}


def render_rules(format: RuleFormat, table: RuleTable, library: Path | None) -> RuleExport:
    """Writes a rule table as the files of a format.

    Args:
        library: folder of the library, or a file with its own rules, for formats that copy parts
            of it.

    Raises:
        ExportRefused: the format is for another library, or can't represent the rules.
        MissingComponent: the library is not found.
    """
    _refuse_another_library(format, table)
    if format.between_nodes and any(rule.nodes > 1 for rule in table.rules):
        raise ExportRefused(
            f"{format.name} is for one node: between nodes {format.between_nodes}",
            hint="export a profile by itself: --format sh",
        )
    expressible = {name for word in table.operations for name in format.expressible(word)}
    # Settings that all rules share become environment variables of the process. Those that a file
    # can express stay there, so that other sizes are not affected.
    process = {n: v for n, v in _common_settings(table).items() if n not in expressible}
    rules = [replace(rule, settings=_without(rule.settings, process)) for rule in table.rules]
    documents = [replace(one, pinned={**one.pinned, **process}) for one in table.documents]
    by_size = replace(table, documents=tuple(documents), rules=tuple(rules))
    _refuse_inexpressible(by_size, format)
    if not by_size.operations:
        raise ExportRefused(
            f"{format.name} can't say by size any of what the profiles set: {', '.join(process)}",
            hint="export a profile by itself: --format sh",
        )
    environment = {**documents[0].pinned, **format.switches}
    draft = RuleExport(tuple(format.write(by_size, [], library)), environment)
    remarks = _rule_remarks(table, format, draft.load(Path("FILE")))
    return RuleExport(tuple(format.write(by_size, remarks, library)), environment)


def _common_settings(table: RuleTable) -> dict[str, str]:
    """Returns the settings that all rules share, which can be set for the whole process."""
    first, *others = [rule.settings for rule in table.rules]
    return {n: v for n, v in first.items() if all(other.get(n) == v for other in others)}


def _without(settings: Configuration, names: Collection[str]) -> Configuration:
    return Configuration({name: value for name, value in settings.items() if name not in names})


def _refuse_inexpressible(table: RuleTable, format: RuleFormat) -> None:
    """Refuses rules with settings that the format can't express, by an ExportRefused."""
    for rule in table.rules:
        left = sorted(set(rule.settings) - format.expressible(rule.operation))
        if left:
            sizes = format_sizes(rule.bytes_low, rule.bytes_high)
            raise ExportRefused(
                f"{format.name} can't say by size what {rule.profile} sets: {', '.join(left)}",
                hint=f"for {sizes} only, export that profile by itself: --format sh\n"
                "or tune with these variables pinned or left out",
            )


def _rule_remarks(table: RuleTable, format: RuleFormat, load: Mapping[str, str]) -> list[str]:
    """Returns remarks on origin, rules, speedups, and how to load, verify and undo them."""
    settings = [one_line(f"  export {name}={value}") for name, value in load.items()]
    verify = ["Verify: commtune verify --export FILE", "Undo: start without these variables"]
    return [*describe_rules(table, format), "Load:", *settings, *verify]


def formats_for(library: str, version: str) -> list[str]:
    """Returns the names of the formats that a version of a library reads."""
    return [
        name
        for name, one in RULE_FORMATS.items()
        if one.library == library and is_version_in(version, one.versions)
    ]


def _refuse_another_library(format: RuleFormat, table: RuleTable) -> None:
    fitting = formats_for(table.library, table.version)
    if format.name in fitting:
        return
    measured = f"{table.library} {table.version}"
    raise ExportRefused(
        f"{format.name} is for {format.library} {format.versions}; the campaign measured "
        f"{measured}",
        hint=f"for {measured}: "
        + (", ".join(fitting) or "no file of rules; export a profile by itself: --format sh"),
    )
