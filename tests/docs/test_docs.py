"""The documentation against the program: links, commands, keys, examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import typer
import yaml
from pydantic import BaseModel
from typer.core import TyperCommand, TyperGroup, TyperOption

from commtune.campaign.job_keys import JobsPart
from commtune.campaign.loading import load_campaign
from commtune.campaign.schema import CampaignFile
from commtune.cli import make_app
from commtune.model import Operation
from commtune.spaces.loading import list_presets, load_space
from commtune.systems.loading import list_systems

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Pages that MkDocs doesn't see; it checks the links of all others.
OUTSIDE = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES = [*OUTSIDE, *sorted(DOCS.rglob("*.md"))]
CAMPAIGNS = [
    *sorted((ROOT / "examples").glob("*.yaml")),
    ROOT / "commtune" / "commands" / "campaign_example.yaml",
]
#: The keys of a campaign file's parts that have no default.
NEEDED = {
    "": {"campaign": 1, "name": "a", "space": "mpich-host"},
    "aggressor": {"pattern": "incast", "nodes": 2},
}
#: A key, or an entry of a list, that stands in a comment.
_COMMENTED_KEY = re.compile(r"^# (?=[a-z_]+: *[\[{\d]|[a-z_]+:$|  - )", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def links(page: Path) -> Iterator[str]:
    """Link targets of a page; not those inside code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    yield from _LINK.findall(prose)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and MkDocs make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    assert not broken


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert {page for page in pages if page not in listed} == set()


def commands(group: TyperGroup, path: str = "commtune") -> Iterator[tuple[str, TyperCommand]]:
    """All commands with their full names."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path} {name}")
        elif isinstance(command, TyperCommand):
            yield f"{path} {name}", command


def sections(page: Path) -> dict[str, str]:
    """Texts of a page by heading."""
    parts = re.split(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


COMMANDS = dict(commands(make_app()))


def options(command: TyperCommand) -> set[str]:
    """The options of a command, in all their spellings."""
    found = (p for p in command.params if isinstance(p, TyperOption))
    return {word for option in found for word in option.opts} - {"--help", "-h"}


def test_every_command_and_no_other_is_documented() -> None:
    assert len(COMMANDS) > 10
    headings = {title for title in sections(DOCS / "commands.md") if title.startswith("commtune ")}
    groups = {name.rpartition(" ")[0] for name in COMMANDS} - {"commtune"}
    assert headings - groups == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_options_documented_are_the_options_there_are(name: str) -> None:
    section = sections(DOCS / "commands.md")[name]
    written = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", section))
    assert options(COMMANDS[name]) - written == set(), "undocumented"
    # A section may speak of another command's option, but not of one that no command has.
    assert written - {word for c in COMMANDS.values() for word in options(c)} == set()


def parts(model: type[BaseModel] = CampaignFile, at: str = "") -> dict[str, type[BaseModel]]:
    """The mappings of a campaign file by the key that they stand under; the file itself is ''.

    Parameters to extend by are in the space reference.
    """
    found = {at: model}
    for name, field in model.model_fields.items():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                found |= parts(part, name)
    return found


def documented(part: str) -> dict[str, str]:
    """Keys and the cells with their defaults in the reference of the campaign file."""
    text = sections(DOCS / "campaign-file.md")[part or "Keys"]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \|[^|]+\| *([^|]*?) *\|", text, re.MULTILINE))
    if part == "pbs":  # what both schedulers are asked stands under slurm; here it is named
        named = set(re.findall(r"`([a-z_]+)`", text)) & JobsPart.model_fields.keys()
        rows |= {name: cell for name, cell in documented("slurm").items() if name in named}
    return rows


@pytest.mark.parametrize("part", parts())
def test_keys_documented_are_the_keys_there_are(part: str) -> None:
    assert sorted(documented(part)) == sorted(parts()[part].model_fields)


def defaults() -> Iterator[tuple[str, str, object]]:
    """Every key that has a default, with the part of the file it belongs to."""
    for at, model in parts().items():
        for name, field in model.model_fields.items():
            whole = isinstance(field.default, BaseModel)
            if not field.is_required() and not whole and name not in parts():
                yield at, name, field.get_default(call_default_factory=True)


def test_defaults_documented_are_the_defaults_there_are() -> None:
    for at, name, default in defaults():
        model, written = parts()[at], re.fullmatch(r"`(.+)`", documented(at)[name])
        if written is None:  # said in words: there is none, or it is worked out
            assert not default, name
            continue
        part = model.model_validate({**NEEDED.get(at, {}), name: yaml.safe_load(written[1])})
        assert getattr(part, name) == default, name


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.name)
def test_example_campaigns_load(path: Path) -> None:
    assert load_campaign(path).plan.space.count() > 1


@pytest.mark.parametrize(
    ("page", "example"),
    [("own-benchmark.md", "halo.py"), ("campaign-file.md", "near_best.py")],
)
def test_the_classes_shown_are_those_of_the_examples(page: str, example: str) -> None:
    shown = re.search(r"```python\n(class .*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] in (ROOT / "examples" / example).read_text()


def test_there_are_examples() -> None:
    assert len(CAMPAIGNS) == 9


@pytest.mark.parametrize("path", [CAMPAIGNS[-1]], ids=lambda path: path.name)
def test_commented_keys_of_the_example_load_as_well(path: Path, tmp_path: Path) -> None:
    """What 'commtune init' offers as a comment is legal once the comment sign is taken away."""
    text = path.read_text(encoding="utf-8")
    offered = _COMMENTED_KEY.sub("", text)
    changed = tmp_path / "campaign.yaml"
    changed.write_text(offered, encoding="utf-8")
    assert set(yaml.safe_load(offered)) > set(yaml.safe_load(text))
    load_campaign(changed)


@pytest.mark.parametrize("page", ["campaign-file.md", "slurm.md"])
def test_campaigns_on_a_page_load(page: str, tmp_path: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"```yaml\n(campaign:.*?)```", text, re.DOTALL)
    assert found
    for number, document in enumerate(found):
        file = tmp_path / f"{number}.yaml"
        file.write_text(document, encoding="utf-8")
        load_campaign(file)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=["readme", "index"])
def test_counts_of_systems_and_operations_are_those_there_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    there = {"systems": len(list_systems()), "operations": len(Operation)}
    found = re.findall(r"(\d+)\s+(?:\[(operations)\]|(systems), from)", text)
    counts = {operations or systems: int(count) for count, operations, systems in found}
    assert "operations" in counts
    assert counts.items() <= there.items()


def test_shipped_spaces_are_in_the_space_reference() -> None:
    text = (DOCS / "spaces.md").read_text(encoding="utf-8")
    missing = [name for name in list_presets() if f"`{name}`" not in text]
    assert not missing
    assert load_space("mpich-host-allreduce").count() > 1000
