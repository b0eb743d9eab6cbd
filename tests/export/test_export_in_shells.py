"""Exports loaded by the real shells and module systems: values arrive exactly, nothing runs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from components import require_component
from export_documents import nasty_values, with_values
from module_systems import (
    MODULE_SHELLS,
    PRINT_ENVIRONMENT,
    environment_after,
    lmod_line,
    modules_line,
    require_system,
)
from waiting import PATIENCE_S

from commtune import process
from commtune.errors import ExportRefused
from commtune.export import render_profile


@dataclass(frozen=True)
class Loader:
    """How a shell loads a file: ``{file}`` stands for it."""

    format: str
    arguments: tuple[str, ...]
    file_name: str = "profile"
    lines: str = ". {file}\n"


LOADERS = {
    "dash": Loader("sh", ("dash",)),
    "bash": Loader("sh", ("bash", "--norc")),
    "bash-posix": Loader("sh", ("bash", "--posix")),
    "tcsh": Loader("csh", ("tcsh", "-f"), lines="source {file}\n"),
    "fish": Loader("fish", ("fish", "--no-config"), lines="source {file}\n"),
}


def assert_same(found: dict[str, str], wanted: dict[str, str]) -> None:
    got = {name: found.get(name) for name in wanted}
    wrong = {n: (value, got[n]) for n, value in wanted.items() if got[n] != value}
    assert not wrong


def carried_by(format: str, values: dict[str, str]) -> dict[str, str]:
    """The values that a format accepts."""

    def accepted(name: str) -> bool:
        try:
            render_profile(format, with_values({name: values[name]}))
        except ExportRefused as refusal:
            assert name in refusal.message
            return False
        return True

    return {name: value for name, value in values.items() if accepted(name)}


@pytest.mark.parametrize("shell", LOADERS)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_a_shell_gets_every_value_exactly_and_runs_none(
    shell: str, locale: str, tmp_path: Path
) -> None:
    loader = LOADERS[shell]
    require_component(shell, shutil.which(loader.arguments[0]) is not None)
    values = nasty_values(str(tmp_path / "canary"))
    file = tmp_path / loader.file_name
    file.write_text(render_profile(loader.format, with_values(values)))
    script = loader.lines.format(file=file)
    found, _ = environment_after(loader.arguments, script, tmp_path, LC_ALL=locale)
    assert_same(found, values)
    assert not (tmp_path / "canary").exists()


def module_file(format: str, folder: Path, values: dict[str, str]) -> Path:
    """Writes a module named ``profile``; returns the folder for MODULEPATH."""
    place = folder / "modules"
    place.mkdir()
    name = "profile.lua" if format == "lmod" else "profile"
    (place / name).write_text(render_profile(format, with_values(values)))
    return place


SYSTEMS = {
    "lmod": ("lmod", lmod_line),
    "lmod-reads-tcl": ("tcl", lmod_line),
    "modules": ("tcl", modules_line),
}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("shell", MODULE_SHELLS)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_a_module_brings_every_accepted_value_exactly(
    system: str, shell: str, locale: str, tmp_path: Path
) -> None:
    require_system(system, shell)
    format, line = SYSTEMS[system]
    values = carried_by(format, nasty_values(str(tmp_path / "canary")))
    assert len(values) > 50
    path = module_file(format, tmp_path, values)
    found, _ = environment_after(
        MODULE_SHELLS[shell], line(shell, "load profile"), tmp_path,
        MODULEPATH=str(path), LC_ALL=locale,
    )  # fmt: skip
    assert_same(found, values)
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("system", SYSTEMS)
def test_unloading_a_module_brings_the_users_value_back(system: str, tmp_path: Path) -> None:
    require_system(system, "bash")
    format, line = SYSTEMS[system]
    path = module_file(format, tmp_path, {"MINE": "tuned", "NEW": "tuned"})
    script = line("bash", "load profile") + 'echo "at first $MINE $NEW"\n'
    found, output = environment_after(
        MODULE_SHELLS["bash"], script + line("bash", "unload profile"), tmp_path,
        MODULEPATH=str(path), MINE="my own",
    )  # fmt: skip
    assert "at first tuned tuned" in output
    # Lmod's Tcl reader has no pushenv that works; unset is the next best.
    assert found.get("MINE") == (None if system == "lmod-reads-tcl" else "my own")
    assert "NEW" not in found


@pytest.mark.parametrize("system", SYSTEMS)
def test_two_profiles_are_never_loaded_together(system: str, tmp_path: Path) -> None:
    require_system(system, "bash")
    format, line = SYSTEMS[system]
    path = module_file(format, tmp_path, {"FIRST": "1"})
    other = "another.lua" if format == "lmod" else "another"
    (path / other).write_text(render_profile(format, with_values({"SECOND": "2"})))
    script = line("bash", "load profile") + line("bash", "load another")
    found, _ = environment_after(MODULE_SHELLS["bash"], script, tmp_path, MODULEPATH=str(path))
    # Lmod replaces the first, Environment Modules refuses the second.
    assert [n for n in ("FIRST", "SECOND") if n in found] == (
        ["FIRST"] if system == "modules" else ["SECOND"]
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_module_help_says_what_it_is_for(system: str, tmp_path: Path) -> None:
    require_system(system, "bash")
    format, line = SYSTEMS[system]
    path = module_file(format, tmp_path, {"NEW": "tuned"})
    _, output = environment_after(
        MODULE_SHELLS["bash"], line("bash", "help profile"), tmp_path, MODULEPATH=str(path)
    )
    assert "For allreduce in that range of sizes only" in output
    assert "1.40x to 1.42x (1.41x, 22 pairs)" in output


def test_tclsh_reads_the_module_file_without_a_module_system(tmp_path: Path) -> None:
    require_component("tclsh", shutil.which("tclsh") is not None)
    values = carried_by("tcl", nasty_values(str(tmp_path / "canary")))
    file = tmp_path / "profile"
    file.write_text(render_profile("tcl", with_values(values)))
    commands = "proc module-whatis {text} {}\nproc setenv {name value} {set ::env($name) $value}\n"
    script = f"{commands}source {file}\nModulesHelp\nexec >@stdout {_TCL_PRINT}\n"
    (tmp_path / "script").write_text(script)
    base = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = process.run_process(
        ["tclsh", tmp_path / "script"], environment=base, timeout_s=PATIENCE_S, whole_output=True
    )
    body = done.output.partition("<<<")[2].rpartition(">>>")[0]
    assert_same(dict(e.split("=", 1) for e in body.split("\0") if "=" in e), values)
    assert not (tmp_path / "canary").exists()


_TCL_PRINT = PRINT_ENVIRONMENT.replace("-c '", "-c {").removesuffix("'") + "}"


def test_the_env_file_is_read_literally_line_by_line(tmp_path: Path) -> None:
    values = carried_by("env", nasty_values(str(tmp_path / "canary")))
    refused = set(nasty_values("")) - set(values)
    assert refused == {n for n, v in nasty_values("").items() if "\n" in v or "\r" in v}
    lines = render_profile("env", with_values(values)).removesuffix("\n").split("\n")
    read = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert read == values


def test_a_shell_reads_an_env_file_of_plain_values_the_same(tmp_path: Path) -> None:
    values = {"A": "2097152", "B": "CMA,sm:x/y-z_1.5@%+", "C": ""}
    text = render_profile("env", with_values(values))
    assert "NOT for systemd" not in text
    (tmp_path / "profile").write_text(text)
    script = f"set -a\n. {tmp_path / 'profile'}\n"
    found, _ = environment_after(("dash",), script, tmp_path)
    assert_same(found, values)
    assert "NOT for systemd" in render_profile("env", with_values({"A": "two words"}))
