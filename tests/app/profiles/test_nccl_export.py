"""``commtune export CAMPAIGN --format nccl-tuner``, and a file of rules that is verified."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import database_values as given
import pytest
from components import require_component
from module_systems import MODULE_SHELLS, environment_after, modules_line, require_system
from nccl_rules import KIB, LARGE, SMALL, export_nccl_rules, store_nccl_campaign
from nccl_traces import trace_log
from quiet import QuietReporter
from stores import opened_store

from commtune.app.measure import benchmarking
from commtune.app.profiles import rule_verification
from commtune.app.profiles.rule_files import (
    CampaignRules,
    find_library,
    prepare_rules,
    read_rules,
    write_rules,
)
from commtune.app.profiles.rule_verification import (
    RuleProof,
    _load_plugin,
    prove_rules,
    verify_rules,
)
from commtune.app.profiles.site_installation import install_campaign
from commtune.app.setup.installation import build_tuner
from commtune.commands.profiles.install import install_command
from commtune.commands.profiles.use import export_command
from commtune.db.queries.profiles import find_profiles
from commtune.errors import ExportRefused, UserError
from commtune.model import (
    Configuration,
    Execution,
    MpiInstallation,
    Operation,
    Phase,
    RunRequest,
    VerificationVerdict,
)

_THREADS = {"NCCL_SOCKET_NTHREADS": "4"}
#: What NCCL printed, by nccl_logs/record_rules.py on two GPUs.
_LOGS = Path(__file__).parents[2] / "cluster" / "tracing" / "nccl_logs" / "rules"


def test_what_all_ranges_share_is_a_variable_beside_the_rules(tmp_path: Path) -> None:
    url = store_nccl_campaign(
        tmp_path, {**SMALL, **_THREADS}, {**SMALL, **_THREADS}, {**LARGE, **_THREADS}
    )
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


def test_rules_by_profiles_that_rest_on_too_little_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = store_nccl_campaign(tmp_path, SMALL, SMALL, LARGE)
    export_command("one", "nccl-tuner", min_pairs=1, db=url)
    assert "allreduce,8,2048,tree,ll,0,2,2" in capsys.readouterr().out
    with pytest.raises(ExportRefused, match="rests on less than --min-days 2"):
        export_command("one", "nccl-tuner", min_days=2, db=url)
    assert capsys.readouterr().out == ""


def test_what_rests_on_too_little_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, folder = store_nccl_campaign(tmp_path, SMALL, SMALL, LARGE), tmp_path / "site"
    with pytest.raises(ExportRefused, match=r"allreduce-8: .* rests on less than --min-days 1"):
        install_command("one", folder, allow_unguarded=True, min_days=1, db=url)
    with opened_store(url) as store:
        store.add_trial(1, 1, Configuration(SMALL), "user")
        given.add_run(store, 1, given.request("today", phase=Phase.VERIFY, block=5))
        held = given.verification(
            profile="allreduce-8", configuration=Configuration(SMALL), first_block=5, last_block=5
        )
        store.add_verification(1, held)
    install_command("one", folder, allow_unguarded=True, min_days=1, db=url)
    said = capsys.readouterr().out
    assert "left out: allreduce-1024: profile allreduce-1024 rests on less than" in said
    assert "left out: rules: profile allreduce-" in said
    assert [*folder.glob("modulefiles/*/*.lua")] == [
        folder / "modulefiles/commtune-one/allreduce-8.lua"
    ]


@pytest.mark.parametrize("other", [SMALL, {}, {**SMALL, "NCCL_SOCKET_NTHREADS": "8"}])
def test_what_differs_between_ranges_and_holds_for_a_process_is_refused(
    tmp_path: Path, other: dict[str, str]
) -> None:
    url = store_nccl_campaign(tmp_path, {**SMALL, **_THREADS}, {**SMALL, **_THREADS}, other)
    with pytest.raises(ExportRefused, match=r"can't say by size .* NCCL_SOCKET_NTHREADS"):
        prepare_rules("one", "nccl-tuner", db=url)


def test_a_range_that_keeps_the_default_has_no_rule(tmp_path: Path) -> None:
    url = store_nccl_campaign(tmp_path, {}, SMALL, {})
    (file,) = prepare_rules("one", "nccl-tuner", db=url).export.files
    assert file.text.endswith("# rules: 1\nallreduce,91,2048,tree,ll,0,2,2\n")


def test_what_was_not_tried_says_so_and_is_read_again(tmp_path: Path) -> None:
    url = store_nccl_campaign(tmp_path, {**SMALL}, {**SMALL}, {**LARGE}, stack=("rccl", "2.30.4"))
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


def test_a_file_with_a_profile_that_was_withdrawn_since_says_so(tmp_path: Path) -> None:
    url = store_nccl_campaign(tmp_path, {**SMALL}, {**SMALL}, {**LARGE})
    file = tmp_path / "rules.csv"
    write_rules(prepare_rules("one", "nccl-tuner", db=url), file)
    large = max(find_profiles(url), key=lambda one: one.bytes_high)
    found = given.verification(
        profile=large.name, configuration=large.configuration, finding=VerificationVerdict.WORSE
    )
    with opened_store(url) as store:
        store.add_verification(1, found)
    with pytest.raises(UserError, match=rf"; {large.name} was withdrawn \(verified .*: worse"):
        read_rules(file, db=url)


def test_a_file_of_which_all_was_withdrawn_is_refused_before_anything_is_built(
    tmp_path: Path,
) -> None:
    url = store_nccl_campaign(tmp_path, {**SMALL}, {**SMALL}, {**LARGE})
    file = tmp_path / "rules.csv"
    write_rules(prepare_rules("one", "nccl-tuner", db=url), file)
    with opened_store(url) as store:
        for one in find_profiles(url):
            found = given.verification(
                profile=one.name,
                configuration=one.configuration,
                finding=VerificationVerdict.WORSE,
            )
            store.add_verification(1, found)
    with pytest.raises(ExportRefused, match=r"was withdrawn \(verified .*: worse"):
        verify_rules(file, db=url, mpi="/nowhere", reporter=QuietReporter())


def test_a_site_gets_the_plugin_beside_the_rules(tmp_path: Path) -> None:
    require_system("modules", "bash")
    require_component("g++", shutil.which("g++") is not None)
    url = store_nccl_campaign(tmp_path, {**SMALL}, {**SMALL}, {**LARGE})
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
    rules, file = export_nccl_rules(tmp_path)

    def refused(plugin: str, **settings: str) -> str:
        environment = {**os.environ, "NCCL_TUNER_PLUGIN": plugin, **settings}
        with pytest.raises(UserError) as error:
            _load_plugin(file, rules, environment)
        return error.value.message

    other = _compile(tmp_path, _OTHER)
    assert "is the tuner plugin 'Example', and NCCL loads one only" in refused(other)
    # As NCCL finds it, where its folder is searched.
    assert "is the tuner plugin 'Example'" in refused("other", LD_LIBRARY_PATH=str(tmp_path))
    assert "cannot open shared object file" in refused("none")
    assert "no table of a tuner plugin" in refused(_compile(tmp_path, "int nothing;\n"))
    # Without one of the user's it is the one that is built here.
    own = str(build_tuner())
    loaded = _load_plugin(file, rules, {})
    assert (loaded["NCCL_TUNER_PLUGIN"], loaded["COMMTUNE_TUNER_FILE"]) == (own, str(file))
    for name, value in {"COMMTUNE_TUNER_FILE": "/other", "NCCL_ALGO": "Ring"}.items():
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            with pytest.raises(UserError, match=f"your environment sets {name}"):
                _proven(patched, rules, file)


def _proven(
    monkeypatch: pytest.MonkeyPatch, rules: CampaignRules, file: Path, recorded: str = "file"
) -> RuleProof:
    """The proof by logs of NCCL: there are no GPUs here.

    Args:
        recorded: the log of the run with the file in place.
    """
    logs = {Configuration(): "default", Configuration(SMALL): "tree-ll"}
    logs[Configuration(LARGE)] = "ring-simple"

    def replay(
        request: RunRequest, configurations: Sequence[Configuration], mpi: MpiInstallation
    ) -> tuple[Execution, ...]:
        del mpi
        assert request.workload.sizes == (8, 88, 92, KIB, 2 * KIB, 2052, 4 * KIB, 4100)
        found = []
        for own in configurations:
            log = (_LOGS / f"{logs.get(own, recorded)}.txt").read_text()
            plugin = str(own.get("NCCL_TUNER_PLUGIN"))
            log = log.replace("/home/user/libnccl-tuner-commtune.so", plugin)
            found.append(trace_log(own, Operation.ALLREDUCE, log))
        return tuple(found)

    monkeypatch.setattr(benchmarking, "trace_each", replay)
    monkeypatch.setattr(rule_verification, "library_words", lambda *_: "nccl 2.28.3")
    return prove_rules(file, rules, find_library(rules.stored, None))


def test_rules_are_proven_by_what_the_plugin_took_and_nccl_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_component("g++", shutil.which("g++") is not None)
    rules, file = export_nccl_rules(tmp_path)
    proof = _proven(monkeypatch, rules, file)
    # At each measured size, and on both sides of each border.
    assert proof.executed == (92, KIB, 2 * KIB, 2 * KIB + 4, 4 * KIB)
    assert proof.left == (8, 88, 4 * KIB + 4)
    assert not proof.alike


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        ("other-ranks", r"did not take 1 rule of .*, in line 19\n.*commtune"),
        ("other-protocol", r"does not do what .* says at 2 KiB \+ 4 B, 4 KiB: its sums, messages"),
        ("no-plugin", r"did not take 2 rules of .*, in line 18, 19\n  it loaded no tuner plugin"),
    ],
)
def test_rules_that_nccl_does_not_follow_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, message: str
) -> None:
    require_component("g++", shutil.which("g++") is not None)
    rules, file = export_nccl_rules(tmp_path)
    with pytest.raises(UserError, match=message):
        _proven(monkeypatch, rules, file, recorded)
