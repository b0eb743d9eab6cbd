"""Exports profiles as files to load: env, sh, csh, fish, JSON, and module files.

``render_profile`` returns the text, or refuses profiles that must not be used; it does no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from commtune.errors import ExportRefused, UnknownName
from commtune.export.document import ExportDocument, Format, profile_remarks, refuse_simulated
from commtune.export.formats import FORMATS
from commtune.export.modules import MODULE_FILES, Module
from commtune.export.rules import RULE_FORMATS
from commtune.export.rules.rule_file import RuleFormat, describe_rules
from commtune.export.rules.table import RuleTable
from commtune.formatting import describe_speedup
from commtune.model import PYTHON_BACKENDS, Backend, Operation, Profile, Verdict
from commtune.wording import describe_verdict, suggest_verification

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def render_profile(
    format: str,
    document: ExportDocument,
    *,
    allow_unguarded: bool = False,
    accept_likely: bool = False,
) -> str:
    """Returns the text of a file that sets a profile's variables, with its evidence as comments.

    Args:
        allow_unguarded: whether to write a module file without (good) guards, with a warning.
        accept_likely: whether to write a profile whose speedup is likely but not proven, with a
            warning.

    Raises:
        UnknownName: there is no such format.
        ExportRefused: the profile claims no speedup, is not proven, is simulated, or has a name
            or value that the format can't represent; or, for a module file, its guards don't hold.
    """
    if format not in FORMATS:
        hint = f"one of {', '.join(FORMATS)}; for a campaign: {', '.join(RULE_FORMATS)}"
        raise UnknownName(f"no export format named '{format}'", hint=hint)
    chosen = FORMATS[format]
    is_likely = document.profile.verdict is Verdict.LIKELY
    _refuse_without_gain(document, accept_likely=accept_likely)
    _refuse_unfit(chosen, document.variables())
    unguarded = chosen.general and not document.guards.hold
    if unguarded and not allow_unguarded:
        raise _without_guards(document)
    undo = chosen.undo(list(document.variables()))
    lines = profile_remarks(document, chosen.load, undo)
    warnings = [*(_NOT_PROVEN if is_likely else []), *(_UNGUARDED if unguarded else [])]
    return chosen.write(document, [*warnings, *lines])


def render_rule_module(
    format: str,
    rules: RuleFormat,
    table: RuleTable,
    load: Mapping[str, str],
    file: str,
    *,
    allow_unguarded: bool = False,
) -> str:
    """Returns the text of a module file that refers to rule files by their paths.

    Args:
        format: ``lmod`` or ``tcl``.
        load: the variables with the paths of rule files, and further variables.
        file: path of the main rule file.

    Raises:
        ExportRefused: as for a module file of a profile, for any profile that the rules use.
    """
    unguarded = [document for document in table.documents if not document.guards.hold]
    if unguarded and not allow_unguarded:
        raise _without_guards(unguarded[0])
    _refuse_unfit(FORMATS[format], dict(load))
    lines = describe_rules(table, rules)
    scope = f"{lines[1]} The variables beside the files hold for the whole process."
    said = [
        *(_UNGUARDED if unguarded else []),
        *lines,
        f"Verify: commtune verify --export {file}",
    ]
    campaign = table.documents[0].campaign
    module = Module(f"commtune rules of {campaign}", lines[0], scope, said, load)
    return MODULE_FILES[format].write(module)


_NOT_PROVEN = [
    "WARNING: NOT PROVEN. The speedup is likely; the campaign could not show it. Where there is",
    "no speedup, one size in twenty looks like this. commtune verify measures it in fresh runs.",
    "",
]
_UNGUARDED = [
    "WARNING: NOT FOR GENERAL USE. Other operations were not shown to be unharmed by these",
    "settings. Load this for programs that do little else than the operation named below.",
    "",
]


def _refuse_without_gain(document: ExportDocument, *, accept_likely: bool) -> None:
    profile = document.profile
    refuse_simulated(profile, f"profile {profile.name}")
    again = suggest_verification(document.campaign, profile.name)
    if profile.verdict is Verdict.WITHDRAWN:
        raise ExportRefused(f"profile {profile.name} was withdrawn ({profile.note})", hint=again)
    if profile.verdict is Verdict.LIKELY:
        if not accept_likely:
            raise ExportRefused(
                f"profile {profile.name} is {profile.note or describe_verdict(profile.verdict)}",
                hint=f"{again}\nor take it as it is, with a warning in the file: --accept likely",
            )
        return
    if profile.verdict is not Verdict.FASTER or profile.configuration.is_default:
        raise ExportRefused(
            f"profile {profile.name} is not faster than the default "
            f"({describe_verdict(profile.verdict)}): there is nothing to export",
            hint="keep the default, or continue the campaign with a larger budget",
        )


def _refuse_unfit(chosen: Format, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        if not _NAME.fullmatch(name):
            raise ExportRefused(f"{name!r} is not a valid name for an environment variable")
        if not name.startswith(chosen.prefixes or ""):
            beginnings = " and ".join(f"{prefix}..." for prefix in chosen.prefixes)
            raise ExportRefused(
                f"format {chosen.name} can't carry {name}: only {beginnings} are read from it",
                hint="a format for all variables: sh, env",
            )
        reason = _impossible(value) or chosen.unfit(value)
        if reason:
            raise ExportRefused(
                f"format {chosen.name} can't carry the value of {name}: {reason}",
                hint="try another format: " + ", ".join(n for n in FORMATS if n != chosen.name),
            )


def _impossible(value: str) -> str:
    """Returns why neither environments nor text files can have a value; empty if they can."""
    if "\0" in value:
        return "a NUL character"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "it is not text"
    return ""


def _without_guards(document: ExportDocument) -> ExportRefused:
    profile, guards = document.profile, document.guards
    judged = (("is slower", guards.hurt), ("is not shown unharmed", guards.unclear))
    wrong = [
        f"{point.operation} {words}: {describe_speedup(point.gain, point.bytes, point.speed)}"
        for words, points in judged
        for point in points
    ]
    reason = "; ".join(wrong) or "no other operation was measured under it"
    return ExportRefused(
        f"a module file is for general use, and profile {profile.name} was made for "
        f"{profile.operation} only: {reason}",
        hint=_guard_hint(profile, bool(wrong)),
    )


_AS_IT_IS = "export it as sh or env for programs that need it"


def _guard_hint(profile: Profile, measured: bool) -> str:
    if measured:
        return f"{_AS_IT_IS}, or add --allow-unguarded"
    is_pattern = profile.backend in PYTHON_BACKENDS
    is_own = Operation(profile.operation).is_own
    if profile.backend == Backend.COMMAND or (is_own and not is_pattern):
        return (
            f"a command has no other operations to measure: {_AS_IT_IS}, or add --allow-unguarded"
        )
    wanted = (Operation.BROADCAST, Operation.ALLTOALL, Operation.ALLREDUCE)
    names = [name for name in wanted if name != profile.operation][:2]
    flags = " ".join(f"--guard {name}" for name in names)
    return (
        f"measure others under it: tune again with the same flags and {flags}; with a campaign "
        f"file, add to it: guard_operations: [{', '.join(names)}]\n{_AS_IT_IS}"
    )
