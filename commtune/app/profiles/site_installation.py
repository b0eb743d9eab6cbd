"""Installs the profiles and rules of a campaign as modules for all users of a site."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from commtune.app.profiles.rule_files import CampaignRules, prepare_rules, rule_format_of
from commtune.app.profiles.site_files import install_files, is_installed
from commtune.app.profiles.use import export_profile, require_strength
from commtune.app.setup.installation import build_tuner
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.errors import ExportRefused, MissingComponent, NoAnswer
from commtune.export import render_rule_module
from commtune.export.modules import MODULE_FILES
from commtune.kernels.library_builds import PLUGIN_VARIABLE

#: Folders below that of the installation: one for MODULEPATH, and one for files of the modules.
_MODULES, _RULES = "modulefiles", "rules"


@dataclass(frozen=True)
class Installation:
    """The result of an installation.

    Attributes:
        folder: the folder for ``module use``.
        modules: names of the installed modules.
        refused: reasons for what was not installed, by name of a profile, or ``rules``.
        removed: files of an earlier installation that the campaign no longer has.
    """

    folder: Path
    modules: list[str]
    refused: Mapping[str, str]
    removed: list[Path]


def install_campaign(
    campaign: str,
    folder: Path,
    *,
    db: str | None = None,
    mpi: str | None = None,
    allow_unguarded: bool = False,
    accept_likely: bool = False,
    **least: int | None,
) -> Installation:
    """Installs a module for each profile of a campaign, and for its rules by size, if possible.

    Args:
        folder: the folder of the site, whose parent must exist.
        mpi: the library, for formats of rules that copy parts of it; the campaign's by default.
        least: as for ``require_strength``.

    Raises:
        NoAnswer: the campaign has no profiles.
        ExportRefused: none of it can be installed; with the reasons.
        UserError, CampaignLocked: as for ``install_files``.
    """
    folder = folder.absolute()
    files: dict[str, bytes] = {}
    modules, refused, hints = [], {}, []
    asked = {"allow_unguarded": allow_unguarded, "accept_likely": accept_likely}
    for name, number in _profiles(campaign, db).items():
        try:
            answer = load_profile(db, number)
            require_strength([answer], db, **least)
            made = {form: export_profile(answer, form, None, **asked) for form in MODULE_FILES}
        except ExportRefused as error:
            refused[name] = error.message
            hints.append(error.hint)
        else:
            modules.append(_add_module(files, campaign, name, made))
    try:
        rules = prepare_rules(
            campaign, rule_format_of(campaign, db), db=db, mpi=mpi, accept_likely=accept_likely
        )
        require_strength(rules.answers, db, **least)
        files |= _rule_files(rules, folder, allow_unguarded=allow_unguarded)
        modules.append(_module_name(campaign, "rules"))
    except (ExportRefused, MissingComponent) as error:
        refused["rules"] = error.message
        hints.append(error.hint)
    if not modules:
        if is_installed(folder, campaign):
            where = f"--system-wide {shlex.quote(str(folder))}"
            hints.append(
                "what was installed before is still there: "
                f"commtune uninstall {shlex.quote(campaign)} {where}"
            )
        raise ExportRefused(
            "\n".join(f"{name}: {why}" for name, why in refused.items()),
            hint="\n".join(filter(None, dict.fromkeys(hints))),
        )
    removed = install_files(folder, campaign, files)
    return Installation(folder / _MODULES, modules, refused, removed)


def _profiles(campaign: str, db: str | None) -> dict[str, str]:
    """Returns the numbers of a campaign's profiles by name."""
    found = {one.name: str(one.id) for one in find_profiles(db, campaign)}
    if not found:
        raise NoAnswer(
            f"campaign {campaign} has no profiles", hint="'commtune profiles' lists them"
        )
    return found


def _module_name(campaign: str, name: str) -> str:
    # The environment's list of loaded modules is separated by colons.
    return f"commtune-{campaign}/{name.replace(':', '-')}"


def _add_module(files: dict[str, bytes], campaign: str, name: str, made: Mapping[str, str]) -> str:
    module = _module_name(campaign, name)
    for form, text in made.items():
        files[f"{_MODULES}/{module}{MODULE_FILES[form].suffix}"] = text.encode()
    return module


def _rule_files(rules: CampaignRules, folder: Path, *, allow_unguarded: bool) -> dict[str, bytes]:
    """Returns files of rules, NCCL's plugin if needed, and the modules that load them."""
    campaign = rules.stored.name
    main = folder / _RULES / campaign / "rules.txt"
    texts = zip(rules.export.paths(main), rules.export.files, strict=True)
    files = {str(path.relative_to(folder)): one.text.encode() for path, one in texts}
    load = rules.load(main)
    if PLUGIN_VARIABLE in load:
        plugin = f"{_RULES}/{campaign}/{load[PLUGIN_VARIABLE]}"
        files[plugin] = build_tuner().read_bytes()
        load[PLUGIN_VARIABLE] = str(folder / plugin)
    made = {
        form: render_rule_module(
            form, rules.format, rules.table, load, str(main), allow_unguarded=allow_unguarded
        )
        for form in MODULE_FILES
    }
    _add_module(files, campaign, "rules", made)
    return files
