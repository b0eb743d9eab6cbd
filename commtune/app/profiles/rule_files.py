"""Exports a campaign's recommended profiles as a file of rules by size, and reads such files."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from commtune.app.profiles.use import document_of
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.records import CampaignDescription, ProfileAnswer
from commtune.documents.files import write_file
from commtune.errors import ExportRefused, UserError
from commtune.export.rules import RULE_FORMATS, formats_for, render_rules
from commtune.export.rules.rccl import copied_from
from commtune.export.rules.rule_file import FIRST_LINE, WITHOUT_TABLE, RuleExport, RuleFormat
from commtune.export.rules.table import RuleTable, Span
from commtune.model import Backend, MpiFlavour, MpiInstallation, Verdict, Workload

#: What a note says of the last verification (``compose_note``): a line, unless it says more.
_VERIFIED = r"verified \d{4}-\d\d-\d\d(?: as [^\n;]+)?: \w+"
_FINDING = re.compile(rf"^[^\w\n]*{_VERIFIED}\n|{_VERIFIED}; ", re.MULTILINE)


@dataclass(frozen=True)
class CampaignRules:
    """A campaign's rules in a format.

    Attributes:
        answers: the profiles behind the rules.
        withdrawn: what is said of those that were withdrawn, each.
    """

    format: RuleFormat
    table: RuleTable
    export: RuleExport
    stored: CampaignDescription
    answers: tuple[ProfileAnswer, ...]
    withdrawn: tuple[str, ...]

    def spans(self, operation: str) -> tuple[Span, ...]:
        """Returns an operation's rules over all sizes, as in the files."""
        return self.table.spans(operation, to_all_sizes=self.format.replaces_table)

    def load(self, file: Path) -> dict[str, str]:
        """Returns the variables that load the files, with absolute paths."""
        return self.export.load(file.absolute())


def prepare_rules(
    campaign: str,
    format: str,
    *,
    db: str | None = None,
    mpi: str | None = None,
    accept_likely: bool = False,
    library_rules: Path | None = None,
) -> CampaignRules:
    """Converts a campaign's recommended profiles to rules.

    Args:
        format: a name in ``RULE_FORMATS``.
        mpi: the library, for formats that copy parts of it; the campaign's by default.
        accept_likely: whether to include likely speedups that are not proven.
        library_rules: file of the library's own rules, for formats that copy them.

    Raises:
        UnknownName, NoAnswer: there is no such campaign.
        UserError: another site measured it.
        ExportRefused: the format can't express the profiles, or they claim nothing.
    """
    stored = describe_campaign(db, campaign)
    profiles = find_profiles(db, campaign)
    answers = tuple(load_profile(db, str(one.id)) for one in profiles)
    for answer in answers:
        answer.require_own()
    chosen = RULE_FORMATS[format]
    table = RuleTable.of_documents(
        [document_of(answer) for answer in answers],
        *_library(stored),
        unit=Workload.of_plain(stored.what["workload"]).bytes_of_one_more,
        accept_likely=accept_likely,
    )
    library = library_rules
    if chosen.release_bound and chosen.library == table.library:
        found = find_library(stored, mpi)
        _refuse_other_release(chosen, table, found)
        library = found.prefix
    export = render_rules(chosen, table, library)
    behind = {document.profile.name for document in table.documents}
    used = tuple(answer for answer in answers if answer.profile.name in behind)
    withdrawn = tuple(
        f"{answer.profile.name} was withdrawn ({answer.profile.note})"
        for answer in answers
        if answer.profile.verdict is Verdict.WITHDRAWN
    )
    return CampaignRules(chosen, table, export, stored, used, withdrawn)


def rule_format_of(campaign: str, db: str | None = None) -> str:
    """Returns the format of rules that the campaign's library reads.

    Raises:
        ExportRefused: there is none.
    """
    library, version = _library(describe_campaign(db, campaign))
    if found := formats_for(library, version):
        return found[0]
    raise ExportRefused(f"{library} {version} reads no file of rules that commtune writes")


def _library(stored: CampaignDescription) -> tuple[str, str]:
    """Returns name and version of the campaign's communication library."""
    workload, description = stored.what["workload"], stored.stack.description
    for name in ("nccl", "rccl"):
        if workload["backend"] == Backend.XCCL and name in description:
            return name, str(description[name])
    if not str(workload["backend"]).startswith("mpi-") and workload["backend"] != (
        Backend.PYTHON_HOST
    ):
        raise ExportRefused(f"no file of rules can be made for the backend {workload['backend']}")
    return MpiFlavour(description["mpi"]).library, str(description["version"])


def find_library(stored: CampaignDescription, mpi: str | None) -> MpiInstallation:
    """Returns the MPI of this name, or that of the campaign by default."""
    from commtune.wiring.benchmark_setup import find_named_mpi

    return find_named_mpi(mpi or stored.settings.get("mpi") or "auto")


def _refuse_other_release(format: RuleFormat, table: RuleTable, mpi: MpiInstallation) -> None:
    if (mpi.flavour.library, mpi.version) != (table.library, table.version):
        raise ExportRefused(
            f"{format.release_bound} {table.library} {table.version}, and the MPI found is "
            f"{mpi.flavour.library} {mpi.version}",
            hint="export where that is, or name it: --mpi PREFIX",
        )


def write_rules(rules: CampaignRules, file: Path | None) -> str:
    """Writes the files, and returns how to load them; without a file, returns their text.

    Raises:
        ExportRefused: there are several files, and no name for them.
        UserError, EnvironmentFault: a file can't be written.
    """
    files = rules.export.files
    if file is None:
        if len(files) > 1:
            raise ExportRefused(
                f"{rules.format.name} writes {len(files)} files here: they need a name",
                hint="add -o FILE",
            )
        return files[0].text
    paths = rules.export.paths(file)
    for one, path in zip(files, paths, strict=True):
        write_file(path, one.text)
    untried = rules.format.untried and f"not tried: {rules.format.untried}\n"
    warning = f"warning: {WITHOUT_TABLE}\n" if rules.format.replaces_table else ""
    wrote = "".join(f"wrote {path}\n" for path in paths)
    load = rules.load(file).items()
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in load)
    return wrote + untried + warning + exports


def read_rules(file: Path, *, db: str | None = None, mpi: str | None = None) -> CampaignRules:
    """Returns the rules in a file that commtune exported.

    Raises:
        UserError: it can't be read, or differs from the export; with the difference.
        UnknownName, NoAnswer: its campaign is not in the database.
    """
    text = _read(file)
    found = FIRST_LINE.match(text)
    if found is None or found[2] not in RULE_FORMATS:
        raise UserError(
            f"{file} does not begin as files of rules by commtune export do",
            hint="write it again: commtune export CAMPAIGN --format " + "|".join(RULE_FORMATS),
        )
    rules = prepare_rules(
        found[1],
        found[2],
        db=db,
        mpi=mpi,
        accept_likely="NOT PROVEN" in text,
        library_rules=copied_from(text),
    )
    refuse_changed(file, rules)
    return rules


def refuse_changed(file: Path, rules: CampaignRules) -> None:
    """Refuses files that differ from the export of their rules.

    Raises:
        UserError: a file differs; with the difference.
    """
    for one, path in zip(rules.export.files, rules.export.paths(file), strict=True):
        if why := _difference(_read(path), one.text):
            again = f"commtune export {rules.stored.name} --format {rules.format.name} -o {file}"
            said = "; ".join([f"{path} {why}", *rules.withdrawn])
            raise UserError(said, hint=f"write it again: {again}")


def _read(file: Path) -> str:
    try:
        text = file.read_bytes().decode()
    except OSError as error:
        raise UserError(f"can't read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not text") from error
    if not text:
        raise UserError(f"{file} is empty: the library would ignore it, or fail")
    return text


def _without_findings(text: str) -> str:
    """Returns a file's text without what verifications found since, which changes no rule."""
    return _FINDING.sub("", text)


def _difference(text: str, expected: str) -> str:
    """Describes how a file's text differs from the export; empty if it doesn't."""
    if _without_findings(text) == _without_findings(expected):
        return ""
    if "\r\n" in text:
        return "has line ends of Windows (CRLF)"
    if expected.startswith(text):
        lines = len(expected.splitlines())
        return f"is cut off in line {len(text.splitlines())} of {lines}"
    both = zip_longest(text.splitlines(), expected.splitlines())
    number = next((n for n, (one, other) in enumerate(both, 1) if one != other), 1)
    return f"is not what the export writes for this campaign and library, from line {number} on"
