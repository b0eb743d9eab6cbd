"""``commtune install`` for a site: what it installs, loaded by real module systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import database_values as given
import pytest
from command_line import CommandLine
from module_systems import (
    MODULE_SHELLS,
    environment_after,
    lmod_line,
    modules_line,
    require_system,
)
from rule_campaigns import Made, make
from stores import opened_store
from tracing_runs import traced_on

from commtune.app.profiles.rule_files import find_library, read_rules
from commtune.app.profiles.rule_verification import prove_rules
from commtune.db.queries.profiles import load_profiles
from commtune.model import Profile, VerificationVerdict

_LINES = {"lmod": lmod_line, "modules": modules_line}


@pytest.fixture
def made(tmp_path: Path, shared_cache: None) -> Made:  # noqa: ARG001
    """A campaign on MPICH, with two profiles for ranges of sizes."""
    traced_on("mpich", tmp_path / "unused")
    return make("mpich", tmp_path)


def _line(made: Made) -> CommandLine:
    return CommandLine(made.folder, {"COMMTUNE_DB": made.database})


def test_users_load_what_was_installed(made: Made) -> None:
    commtune, site = _line(made), made.folder / "site"
    said = commtune.succeed("install", "small", "--system-wide", "site")
    assert said.out.splitlines() == [
        f"module use {site}/modulefiles",
        "module load commtune-small/allreduce-2048-4096",
        "module load commtune-small/allreduce-16384-16384",
        "module load commtune-small/rules",
    ]
    file = site / "rules" / "small" / "rules.txt"
    rules = read_rules(file, db=made.database)
    prove_rules(file, rules, find_library(rules.stored, None))
    for system, line in _LINES.items():
        require_system(system, "bash")
        loaded, output = environment_after(
            MODULE_SHELLS["bash"],
            line("bash", "load commtune-small/rules") + line("bash", "help commtune-small/rules"),
            made.folder,
            MODULEPATH=str(site / "modulefiles"),
        )
        wanted = rules.load(file)
        assert {name: loaded.get(name) for name in wanted} == wanted
        assert "mpich >=5.0,<5.1; measured with 5.0.2" in output
        assert f"Verify: commtune verify --export {file}" in output
        one, _ = environment_after(
            MODULE_SHELLS["bash"],
            line("bash", "load commtune-small/allreduce-2048-4096"),
            made.folder,
            MODULEPATH=str(site / "modulefiles"),
        )
        assert one["MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"] == "ring"
    commtune.succeed("uninstall", "--system-wide", "site")
    assert list(site.iterdir()) == []


def test_modules_of_withdrawn_profiles_are_removed_or_named(made: Made) -> None:
    commtune = _line(made)
    commtune.succeed("install", "small", "--system-wide", "site")

    def withdraw(profile: Profile) -> None:
        worse = given.verification(
            profile=profile.name,
            configuration=profile.configuration,
            finding=VerificationVerdict.WORSE,
        )
        with opened_store(made.database) as store:
            store.add_verification(1, worse)

    small, large = load_profiles(made.database, "small")
    withdraw(small)
    said = commtune.succeed("install", "small", "--system-wide", "site")
    assert f"left out: {small.name}: profile {small.name} was withdrawn (verified " in said.out
    assert f"module load commtune-small/{small.name}" not in said.out
    assert not [*made.folder.glob(f"site/modulefiles/*/{small.name}*")]
    withdraw(large)
    refused = commtune("install", "small", "--system-wide", "site")
    assert refused.code == 2
    assert "what was installed before is still there: commtune uninstall small" in refused.err


def test_what_cannot_be_installed_is_told(made: Made) -> None:
    commtune = _line(made)
    unguarded = commtune("install", "small", "--system-wide", "gone/site")
    assert unguarded.code == 2
    assert "can't write" in unguarded.err
    nothing = commtune("install", "other", "--system-wide", "site")
    assert nothing.code in (2, 4)
    assert "other" in nothing.err
    gone = replace(commtune, extra={**commtune.extra, "COMMTUNE_MPI_PATH": "/nowhere"})
    without = gone.succeed("install", "small", "--system-wide", "without")
    assert "left out: rules: " in without.out
    assert "module load commtune-small/allreduce-2048-4096" in without.out
    assert not (made.folder / "without" / "rules").exists()
    foreign = made.folder / "site" / "modulefiles" / "commtune-small"
    foreign.mkdir(parents=True)
    (foreign / "rules").write_text("mine")
    refused = commtune("install", "small", "--system-wide", "site")
    assert refused.code == 2
    assert "commtune did not install it" in refused.err
    assert [path.name for path in foreign.iterdir()] == ["rules"]
