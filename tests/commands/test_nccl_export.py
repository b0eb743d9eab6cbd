"""``commtune export CAMPAIGN --format nccl-tuner``, and a file of rules that is verified."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import database_values as given
import pytest
from components import require_component
from module_systems import MODULE_SHELLS, environment_after, modules_line

from commtune.app.profiles.rule_files import prepare_rules, read_rules, write_rules
from commtune.app.profiles.rule_verification import verify_rules
from commtune.app.profiles.site_installation import install_campaign
from commtune.app.progress import LineReporter
from commtune.app.setup.installation import build_tuner
from commtune.db.connection.engine import open_database
from commtune.db.records import StackRecord
from commtune.db.storage.store import Store
from commtune.errors import ExportRefused, UserError
from commtune.model import Backend, Configuration, Operation, Profile, Verdict, Workload

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


def _stored(folder: Path, *settings: dict[str, str]) -> str:
    """The URL of a database with a campaign; its profiles are for 8 B, 1 KiB and 4 KiB."""
    url = f"sqlite:///{folder}/commtune.db"
    database = open_database(url)
    description = {"mpi": "mpich", "version": "5.0.2", "nccl": "2.28.9", "cuda": "13.0.88"}
    stack = StackRecord("stack-1", "NCCL 2.28.9", description)
    what = {"operation": "allreduce", "workload": _WORKLOAD.plain(), "timing": {}}
    store = Store(database)
    number = store.open_campaign(given.campaign("one", stack=stack, what=what)).id
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
    url = _stored(tmp_path, {**_SMALL}, {**_SMALL}, {**_LARGE})
    file = tmp_path / "rules.csv"
    write_rules(prepare_rules("one", "nccl-tuner", db=url), file)

    def refused(plugin: str | None, rules: str | None) -> str:
        values = {"NCCL_TUNER_PLUGIN": plugin, "COMMTUNE_TUNER_FILE": rules}
        for name, value in values.items():
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)
        with pytest.raises(UserError) as error:
            verify_rules(file, db=url, reporter=LineReporter(print))
        return error.value.message

    own, other = str(build_tuner()), _compile(tmp_path, _OTHER)
    assert "NCCL_TUNER_PLUGIN is not set" in refused(None, str(file))
    assert "is the tuner plugin 'Example', and NCCL loads one only" in refused(other, str(file))
    # As NCCL finds it, where its folder is searched.
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert "is the tuner plugin 'Example'" in refused("other", str(file))
    assert "cannot open shared object file" in refused("none", str(file))
    nothing = _compile(tmp_path, "int nothing;\n")
    assert "no table of a tuner plugin" in refused(nothing, str(file))
    assert "does not set COMMTUNE_TUNER_FILE" in refused(own, None)
    assert "sets COMMTUNE_TUNER_FILE=/other" in refused(own, "/other")
    said = refused(own, str(file))
    assert "holds rules of nccl, and verify can run those of MPI only" in said
