"""``commtune findings list`` and ``reproduce``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from commtune.campaign.reproducing import YOUR_PROJECT, write_reproduction
from commtune.commands.options import JsonOption, called_as, print_json
from commtune.documents.files import write_new_file, writing_file
from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.errors import UnknownName, UserError
from commtune.formatting import format_count, format_size, wrap_text
from commtune.systems.findings import Finding, NamedFinding, all_findings
from commtune.systems.loading import list_systems

if TYPE_CHECKING:
    from commtune.campaign.loading import CampaignSpec


def _sections(found: Sequence[NamedFinding]) -> Iterator[str]:
    effects = [one for one in found if one.finding.setting]
    rest = [one for one in found if not one.finding.setting]
    sources = list(dict.fromkeys(one.source for one in (*effects, *rest)))
    for title, group in (("effects of settings", effects), ("observations", rest)):
        if group:
            yield "\n".join([title, *(line for one in group for line in _described(one, sources))])
    numbered = (_wrap(f"[{number}] {source}", "  ") for number, source in enumerate(sources, 1))
    yield "\n".join(["sources", *numbered])


def _described(one: NamedFinding, sources: Sequence[str]) -> Iterator[str]:
    found = one.finding
    yield _wrap(f"{one.name}: {found.says}", "  ")
    if found.setting and found.expected:
        setting = " ".join(f"{name}={value}" for name, value in found.setting.items())
        most = "up to " if found.expected.up_to else ""
        yield _wrap(f"{setting}: {most}{found.expected.factor:g}x in {found.expected.of}")
    source = f"[{sources.index(one.source) + 1}, {found.section}]"
    yield _wrap(" ".join(filter(None, (_where(found), source))))
    if found.note:
        yield _wrap(found.note)


def _where(found: Finding) -> str:
    words = [", ".join(found.systems), ", ".join(found.libraries), ", ".join(found.operations)]
    if found.least_bytes is not None:
        words.append(f"from {format_size(found.least_bytes)}")
    if found.most_bytes is not None:
        words.append(f"to {format_size(found.most_bytes)}")
    if found.least_nodes is not None:
        words.append(f"from {found.least_nodes} nodes")
    if found.most_nodes is not None:
        words.append(f"to {format_count(found.most_nodes, 'node')}")
    return "; ".join(word for word in words if word)


def _wrap(line: str, first: str = "      ") -> str:
    return wrap_text(line, first=first, indent="      ")


def findings_list_command(
    system: Annotated[
        str | None, typer.Option(help="only those on this system, by its name in 'systems list'")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List published results for the described systems, for campaigns to reproduce."""
    if system and system not in list_systems():
        raise UnknownName(
            f"no system is called {quote_value(system)}",
            hint=suggest_nearest(system, list_systems()),
        )
    found = [one for one in all_findings() if not system or system in one.finding.systems]
    if json_output:
        rows = [
            {"name": one.name, **one.finding.model_dump(mode="json"), "source": one.source}
            for one in found
        ]
        print_json(rows)
    elif not found:
        print(f"no paper that commtune knows measured on {system}")
    else:
        print("\n\n".join(_sections(found)))


def findings_reproduce_command(
    name: Annotated[str, typer.Argument(help="a finding, by its name in 'list'")],
    system: Annotated[
        str | None, typer.Option(help="the system, where the paper measured on several")
    ] = None,
    account: Annotated[str, typer.Option(help="your project, for its jobs")] = YOUR_PROJECT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="folder to write to; else it is printed")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the job scripts of the campaigns instead")
    ] = False,
) -> None:
    """Write the campaigns that repeat a published result on its system."""
    known = {one.name: one for one in all_findings()}
    if name not in known:
        raise UnknownName(
            f"there is no finding {quote_value(name)}",
            hint=suggest_nearest(name, known) or f"{called_as()} findings list",
        )
    chosen = _system(known[name], system)
    texts = write_reproduction(known[name], chosen, account)
    if output is None and not dry_run:
        print("---\n".join(texts), end="")
        return
    from commtune.campaign.loading import parse_campaign  # lists and texts don't wait for it

    folder = output or Path()
    for text in texts:
        spec = parse_campaign(text, folder)
        file = folder / f"{spec.plan.name}.yaml"
        if dry_run:
            _print_job(spec, file)
            continue
        with writing_file(file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
        write_new_file(file, text, "name another folder")
        edit = f"put your project for {YOUR_PROJECT}, then " if account == YOUR_PROJECT else ""
        verb = "tune" if spec.system and spec.system.scheduler else "submit"
        print(f"wrote {file}; {edit}on {chosen}: {called_as()} {verb} {shlex.quote(str(file))}")


def _print_job(spec: CampaignSpec, file: Path) -> None:
    from commtune.app.campaigns.submitting import example_allocation

    for remark in spec.remarks:
        print(remark, file=sys.stderr)
    print(f"# {file}\n{example_allocation(spec, file)}", end="")


def _system(named: NamedFinding, asked: str | None) -> str:
    on = named.finding.systems
    if asked or len(on) == 1:
        return asked or on[0]
    raise UserError(
        f"{named.name} was measured on {' and '.join(on)}",
        hint=f"{called_as()} findings reproduce {named.name} --system {on[0]}",
    )
