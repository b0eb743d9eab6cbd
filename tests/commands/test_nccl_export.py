"""``commtune export CAMPAIGN --format nccl-tuner``, and a file of rules that is verified."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import database_values as given
import pytest
from components import require_component
from module_systems import MODULE_SHELLS, environment_after, modules_line
from nccl_traces import trace_log

from commtune.app.measure import benchmarking
from commtune.app.profiles import rule_verification
from commtune.app.profiles.plugin_rules import load_plugin
from commtune.app.profiles.rule_files import (
    CampaignRules,
    find_library,
    prepare_rules,
    read_rules,
    write_rules,
)
from commtune.app.profiles.rule_verification import RuleProof, prove_rules
from commtune.app.profiles.site_installation import install_campaign
from commtune.app.setup.installation import build_tuner
from commtune.cluster.tracing.nccl import _parse_log as parse_log
from commtune.db.connection.engine import open_database
from commtune.db.records import StackRecord
from commtune.db.storage.store import Store
from commtune.errors import ExportRefused, UserError
from commtune.model import (
    Backend,
    Configuration,
    Execution,
    MpiInstallation,
    Operation,
    Profile,
    RunRequest,
    Verdict,
    Workload,
)

_KIB = 1024
_THREADS = {"NCCL_SOCKET_NTHREADS": "4"}
_SMALL = {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}
_LARGE = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}
_WORKLOAD = Workload(Operation.ALLREDUCE, (8, _KIB, 4 * _KIB), backend=Backend.XCCL)


def _profile(size: int, settings: dict[str, str]) -> Profile:
    verdict = Verdict.FASTER if settings else Verdict.DEFAULT
    return given.profile(
        f"allreduce-{size}", backend="xccl", nodes=2, bytes_low=size, bytes_high=size, guards=(),
        points=(given.point(size, "all"),), configuration=Configuration(settings), verdict=verdict,
    )  # fmt: skip


def _stored(
    folder: Path, *settings: dict[str, str], stack: tuple[str, str] = ("nccl", "2.28.9")
) -> str:
    """The URL of a database with a campaign; its profiles are for 8 B, 1 KiB and 4 KiB."""
    url = f"sqlite:///{folder}/commtune.db"
    database = open_database(url)
    name, version = stack
    description = {"mpi": "mpich", "version": "5.0.2", name: version}
    record = StackRecord("stack-1", f"{name.upper()} {version}", description)
    what = {"operation": "allreduce", "workload": _WORKLOAD.plain(), "timing": {}}
    store = Store(database)
    number = store.open_campaign(given.campaign("one", stack=record, what=what)).id
    profiles = [_profile(size, own) for size, own in zip(_WORKLOAD.sizes, settings, strict=True)]
    store.save_profiles(number, profiles)
    database.close()
    return url


def test_what_all_ranges_share_is_a_variable_beside_the_rules(tmp_path: Path) -> None:
    url = _stored(tmp_path, {**_SMALL, **_THREADS}, {**_SMALL, **_THREADS}, {**_LARGE, **_THREADS})
    rules = prepare_rules("one", "nccl-tuner", db=url)
    file = tmp_path / "rules.csv"
    said = write_rules(rules, file)
    assert f"export COMMTUNE_TUNER_FILE={file}\n" in said
    assert "export NCCL_TUNER_PLUGIN=libnccl-tuner-commtune.so\n" in said
    assert "export NCCL_SOCKET_NTHREADS=4\n" in said
    lines = file.read_text().splitlines()
    assert lines[-3:] == [
        "# rules: 2",
        "allreduce,8,2048,tree,ll,0,2,2",
        "allreduce,2049,4096,ring,simple,0,2,2",
    ]
    assert "#   export NCCL_SOCKET_NTHREADS=4" in lines
    assert read_rules(file, db=url).table == rules.table


@pytest.mark.parametrize("other", [_SMALL, {}, {**_SMALL, "NCCL_SOCKET_NTHREADS": "8"}])
def test_what_differs_between_ranges_and_holds_for_a_process_is_refused(
    tmp_path: Path, other: dict[str, str]
) -> None:
    url = _stored(tmp_path, {**_SMALL, **_THREADS}, {**_SMALL, **_THREADS}, other)
    with pytest.raises(ExportRefused, match=r"can't say by size .* NCCL_SOCKET_NTHREADS"):
        prepare_rules("one", "nccl-tuner", db=url)


def test_a_range_that_keeps_the_default_has_no_rule(tmp_path: Path) -> None:
    url = _stored(tmp_path, {}, _SMALL, {})
    (file,) = prepare_rules("one", "nccl-tuner", db=url).export.files
    assert file.text.endswith("# rules: 1\nallreduce,91,2048,tree,ll,0,2,2\n")


def test_what_was_not_tried_says_so_and_is_read_again(tmp_path: Path) -> None:
    url = _stored(tmp_path, {**_SMALL}, {**_SMALL}, {**_LARGE}, stack=("rccl", "2.30.4"))
    own, file = tmp_path / "own.csv", tmp_path / "rules.csv"
    with pytest.raises(ExportRefused, match="must be copied"):
        prepare_rules("one", "rccl-tuner", db=url)
    own.write_text("allreduce,0,64,tree,ll,8,2,16\n")
    rules = prepare_rules("one", "rccl-tuner", db=url, library_rules=own)
    assert "not tried: no AMD GPU was there" in write_rules(rules, file)
    assert read_rules(file, db=url).table == rules.table
    # AMD's rows belong to what the file must be.
    own.write_text("allreduce,0,128,tree,ll,8,2,16\n")
    with pytest.raises(UserError, match="is not what the export writes"):
        read_rules(file, db=url)


def test_a_site_gets_the_plugin_beside_the_rules(tmp_path: Path) -> None:
    require_component("g++", shutil.which("g++") is not None)
    url = _stored(tmp_path, {**_SMALL}, {**_SMALL}, {**_LARGE})
    with pytest.raises(ExportRefused, match="no other operation was measured under it"):
        install_campaign("one", tmp_path / "site", db=url)
    done = install_campaign("one", tmp_path / "site", db=url, allow_unguarded=True)
    assert done.modules[-1] == "commtune-one/rules"
    loaded, _ = environment_after(
        MODULE_SHELLS["bash"], modules_line("bash", "load commtune-one/rules"), tmp_path,
        MODULEPATH=str(done.folder),
    )  # fmt: skip
    ctypes.c_char_p.in_dll(ctypes.CDLL(loaded["NCCL_TUNER_PLUGIN"]), "ncclTunerPlugin_v5")
    assert "# rules: 2\n" in Path(loaded["COMMTUNE_TUNER_FILE"]).read_text()


#: A plugin as another site has it: NCCL loads it by its tables, whatever their functions do.
_OTHER = """
struct table { const char* name; void* functions[3]; };
extern "C" const table ncclTunerPlugin_v4 = {"Example", {}};
"""


def _compile(folder: Path, text: str) -> str:
    source, library = folder / "other.cpp", folder / "libnccl-tuner-other.so"
    source.write_text(text)
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", library], check=True)
    return str(library)


def test_what_keeps_nccl_from_its_rules_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_component("g++", shutil.which("g++") is not None)
    rules, file = _exported(tmp_path)

    def refused(plugin: str, **settings: str) -> str:
        environment = {**os.environ, "NCCL_TUNER_PLUGIN": plugin, **settings}
        with pytest.raises(UserError) as error:
            load_plugin(file, rules, environment)
        return error.value.message

    other = _compile(tmp_path, _OTHER)
    assert "is the tuner plugin 'Example', and NCCL loads one only" in refused(other)
    # As NCCL finds it, where its folder is searched.
    assert "is the tuner plugin 'Example'" in refused("other", LD_LIBRARY_PATH=str(tmp_path))
    assert "cannot open shared object file" in refused("none")
    assert "no table of a tuner plugin" in refused(_compile(tmp_path, "int nothing;\n"))
    # Without one of the user's it is the one that is built here.
    own = str(build_tuner())
    loaded = load_plugin(file, rules, {})
    assert (loaded["NCCL_TUNER_PLUGIN"], loaded["COMMTUNE_TUNER_FILE"]) == (own, str(file))
    for name, value in {"COMMTUNE_TUNER_FILE": "/other", "NCCL_ALGO": "Ring"}.items():
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            with pytest.raises(UserError, match=f"your environment sets {name}"):
                _proven(patched, rules, file)


def _log(settings: Configuration, sizes: Sequence[int], ran: Mapping[int, str]) -> str:
    """What NCCL and the plugin say, in the forms of nccl_logs/tuner.txt.

    Args:
        ran: by size, what was executed in the place of what the settings or the rules say.
    """
    rows = []
    if file := settings.get("COMMTUNE_TUNER_FILE"):
        rows = [line.split(",") for line in Path(file).read_text().splitlines()]
    said = [f"{name} set by environment to {value}" for name, value in settings.items()]
    said += ["TUNER/Plugin: Using commtune (v5)"] if rows else []
    for size in sizes:
        sent = max(4, size // 4 * 4)
        choice = f"{settings.get('NCCL_ALGO', 'Ring')} {settings.get('NCCL_PROTO', 'LL')}"
        for number, row in enumerate(rows, 1):
            if row[0] == "allreduce" and int(row[1]) <= sent <= int(row[2]):
                choice = f"{row[3]} {row[4]}"
                said.append(
                    f"commtune tuner: allreduce of {sent} bytes: {row[3]}/{row[4]}, channels as "
                    f"NCCL takes them (line {number})"
                )
        if rows and size in ran:
            choice = ran[size]
            said = [line for line in said if f" {sent} bytes" not in line]
        words = "Algo {} proto {}".format(*choice.upper().split())
        said.append(f"AllReduce: {sent} Bytes -> {words} channel{{Lo..Hi}}={{0..0}}")
    return "".join(f"node0:1:1 [0] NCCL INFO {line}\n" for line in said)


def _proven(
    monkeypatch: pytest.MonkeyPatch,
    rules: CampaignRules,
    file: Path,
    ran: Mapping[int, str] | None = None,
) -> RuleProof:
    """The proof by logs as NCCL writes them: there are no GPUs here."""

    def trace(
        request: RunRequest, configurations: Sequence[Configuration], mpi: MpiInstallation
    ) -> tuple[Execution, ...]:
        del mpi
        return tuple(
            trace_log(
                own, Operation.ALLREDUCE, parse_log(_log(own, request.workload.sizes, ran or {}))
            )
            for own in configurations
        )

    monkeypatch.setattr(benchmarking, "trace_each", trace)
    monkeypatch.setattr(rule_verification, "library_words", lambda *_: "nccl 2.28.9")
    return prove_rules(file, rules, find_library(rules.stored, None))


def _exported(folder: Path) -> tuple[CampaignRules, Path]:
    url = _stored(folder, {}, _SMALL, _LARGE)
    rules, file = prepare_rules("one", "nccl-tuner", db=url), folder / "rules.csv"
    write_rules(rules, file)
    return rules, file


def test_rules_are_proven_by_what_the_plugin_took_and_nccl_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_component("g++", shutil.which("g++") is not None)
    rules, file = _exported(tmp_path)
    proof = _proven(monkeypatch, rules, file)
    # At each measured size, and on both sides of each border.
    assert proof.executed == (92, _KIB, 2 * _KIB, 2 * _KIB + 4, 4 * _KIB)
    assert proof.left == (8, 88, 4 * _KIB + 4)
    assert not proof.alike


def test_rules_that_nccl_does_not_follow_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_component("g++", shutil.which("g++") is not None)
    rules, file = _exported(tmp_path)
    with pytest.raises(UserError, match=r"does not do what .* says at 4 KiB: its sums, messages"):
        _proven(monkeypatch, rules, file, {4 * _KIB: "Ring LL"})
    elsewhere = dict.fromkeys((2 * _KIB + 4, 4 * _KIB), "Tree LL")
    with pytest.raises(UserError, match=r"did not take 1 rule of .*, in line \d+\n.*commtune"):
        _proven(monkeypatch, rules, file, elsewhere)
    everywhere = dict.fromkeys((92, _KIB, 2 * _KIB, *elsewhere), "Ring LL")
    with pytest.raises(UserError, match=r"did not take 2 rules of"):
        _proven(monkeypatch, rules, file, everywhere)
