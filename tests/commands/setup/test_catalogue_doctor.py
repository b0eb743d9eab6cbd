"""``commtune doctor`` on the user's own variables and on the settings files of NCCL and RCCL."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine

from commtune.app.setup.doctor import _check_environment, _fix_commands, _installed_versions
from commtune.cluster.machine.doctor import Check, Status
from commtune.kernels.toolchains import Xccl
from commtune.model import MpiFlavour, MpiInstallation
from commtune.model.configuration import Changes

NCCL = {"nccl": "2.30.7"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    return tmp_path


def found(home: Path, *, libraries: dict[str, str] = NCCL, **variables: str) -> list[Check]:
    return among(home, variables, libraries)


def among(home: Path, variables: dict[str, str], libraries: dict[str, str] = NCCL) -> list[Check]:
    environment = {"HOME": str(home), "PATH": "/usr/bin", **variables}
    findings = list(_check_environment(environment, libraries, home / "etc"))
    assert {f.area for f in findings} <= {"environment"}
    assert {f.status for f in findings} <= {Status.WARNING}
    return findings


def test_an_environment_without_settings(home: Path) -> None:
    assert found(home) == []
    assert found(home, NCCL_VERSION="2.25.1-1", FI_PROVIDER_PATH="/x", NCCL_ALGO="Ring") == []


def test_settings_are_checked_in_order_of_their_names(home: Path) -> None:
    findings = found(home, UCX_RNDV_THRESHOLD="8k", NCCL_PROTO="LL128")
    assert [[*f.mend][-1] for f in findings] == ["NCCL_PROTO", "UCX_RNDV_THRESHOLD"]


def test_the_environment_wins_over_the_users_file_and_that_over_the_sites(home: Path) -> None:
    user, site = home / ".nccl.conf", home / "etc/nccl.conf"
    user.write_text("# mine\nNCCL_ALGO=Ring\nNCCL_DEBUG=WARN\n")
    site.write_text("NCCL_DEBUG=INFO\nNCCL_ALGO=Tree\n")
    assert [f.what for f in found(home, NCCL_ALGO="Tree")] == [
        f"NCCL_ALGO=Ring in {user} does not count: this environment says 'Tree'; "
        "remove the wrong one",
        f"NCCL_DEBUG=INFO in {site} does not count: {user} says 'WARN'; remove the wrong one",
        f"NCCL_ALGO is also set in {site}, to the same value: keep one of the two, "
        "in this environment or there",
    ]


def test_what_a_loaded_module_sets_otherwise_is_said(home: Path) -> None:
    lua, tcl = home / "nccl.lua", home / "ucx"
    lua.write_text(
        'help("NCCL")\nsetenv("NCCL_ALGO", "Ring")\npushenv{ \'NCCL_DEBUG\' , \'WARN\' }\n'
        '-- setenv("NCCL_PROTO", "LL")\nsetenv("NCCL_HOME", pathJoin(base, "nccl"))\n'
        'setenv("EDITOR", "vi")\n'
    )
    tcl.write_text('#%Module\nsetenv UCX_TLS "rc,sm"\nsetenv UCX_RNDV_THRESH $size\n')
    loaded = f"{lua}:{tcl}:{home}/gone"
    same = {"NCCL_ALGO": "Ring", "NCCL_DEBUG": "WARN", "UCX_TLS": "rc,sm"}
    assert among(home, {"_LMFILES_": loaded, **same}) == []
    other = {**same, "NCCL_ALGO": "Tree", "EDITOR": "emacs"}
    del other["UCX_TLS"]
    assert [f.what for f in among(home, {"_LMFILES_": loaded, **other})] == [
        f"NCCL_ALGO is 'Tree' here, and the module file {lua}:2 sets it to 'Ring': "
        "jobs that load the module get that; set yours after modules are loaded",
        f"UCX_TLS is unset here, and the module file {tcl}:2 sets it to 'rc,sm': "
        "jobs that load the module get that; set yours after modules are loaded",
    ]


def test_of_two_modules_the_last_one_counts(home: Path) -> None:
    for name, value in (("first", "Tree"), ("second", "Ring")):
        (home / name).write_text(f"setenv NCCL_ALGO {value}\n")
    assert found(home, _LMFILES_=f"{home}/first:{home}/second", NCCL_ALGO="Ring") == []


def test_a_file_that_the_environment_names_takes_the_place_of_the_users(home: Path) -> None:
    (home / ".nccl.conf").write_text("NCCL_ALGO=Ring\n")
    other = home / "other.conf"
    other.write_text("NCCL_ALGO=PAT\r\n")
    (finding,) = found(home, NCCL_ALGO="Tree", NCCL_CONF_FILE=str(other))
    assert finding.what.startswith(f"NCCL_ALGO=PAT in {other} does not count")


def test_what_stands_in_a_file_is_checked_too(home: Path) -> None:
    file = home / ".nccl.conf"
    file.write_text("NCCL_BUFFSIZE=8M\nNCCL_ALGO = Ring\n")
    spaced, suffix = found(home)
    assert spaced.what.endswith("another name that nobody reads; write NCCL_ALGO=Ring")
    assert suffix.what.startswith(f"NCCL_BUFFSIZE=8M in {file}: NCCL takes no suffix")
    assert not suffix.mend  # no shell command changes it


def test_the_sites_file_may_set_what_only_the_site_knows(home: Path) -> None:
    (home / "etc/nccl.conf").write_text("NCCL_IB_SL=3\n")
    assert found(home) == []
    (home / ".nccl.conf").write_text("NCCL_IB_SL=3\n")
    dangerous = [f.what for f in found(home) if "is dangerous" in f.what]
    assert len(dangerous) == 1 and str(home / ".nccl.conf") in dangerous[0]


def test_rccl_has_files_of_its_own(home: Path) -> None:
    (home / ".rccl.conf").write_text("NCCL_ALGO=Ring\n")
    (finding,) = found(home, NCCL_ALGO="Tree", libraries={"rccl": "2.21.5"})
    assert str(home / ".rccl.conf") in finding.what


def test_an_unreadable_file_is_no_error(home: Path) -> None:
    (home / ".nccl.conf").mkdir()
    (home / "etc/nccl.conf").write_bytes(b"\xff\xfe=\n\n=\nNOEQUALS\n")
    assert found(home) == []


def test_a_value_a_letter_away_from_a_legal_one(home: Path) -> None:
    openmpi = {"openmpi": "5.0.10"}
    (finding,) = found(home, libraries=openmpi, UCX_RNDV_SCHEME="get_zcopi")
    assert finding.what == (
        "UCX_RNDV_SCHEME=get_zcopi: no value get_zcopi is known; perhaps get_zcopy is meant"
    )
    assert str(finding.mend) == "export UCX_RNDV_SCHEME=get_zcopy"
    for value in ("get_zcopy", "GET_ZCOPY", "something_else", "4", ""):
        assert found(home, libraries=openmpi, UCX_RNDV_SCHEME=value) == [], value
    (finding,) = found(home, NCCL_ALGO="allreduce:tree,rinh")
    assert str(finding.mend) == "export NCCL_ALGO=allreduce:tree,Ring"
    (home / ".nccl.conf").write_text("NCCL_ALGO=Rinh\n")
    (finding,) = found(home)
    assert finding.what.startswith(f"NCCL_ALGO=Rinh in {home}/.nccl.conf: no value")
    assert not finding.mend


def test_what_several_libraries_say_alike_of_a_variable_is_said_once(home: Path) -> None:
    (suffix,) = found(home, libraries={}, NCCL_BUFFSIZE="8M")
    assert suffix.what.startswith("NCCL_BUFFSIZE=8M: NCCL takes no suffix")
    assert str(suffix.mend) == "export NCCL_BUFFSIZE=8388608"
    for name in (".nccl.conf", ".rccl.conf"):
        (home / name).write_text("NCCL_LL_BUFFSIZE=8M\n")
    in_files = [f.what for f in found(home, libraries={}) if "suffix" in f.what]
    assert [what.split()[2] for what in in_files] == [f"{home}/.nccl.conf:", f"{home}/.rccl.conf:"]


def test_what_they_say_differently_is_said_of_each(home: Path) -> None:
    # Both are mended by the same command, and only RCCL's caution speaks of the size tables.
    nccl, rccl = found(home, libraries={}, NCCL_PROTO="LL128")
    assert nccl.what.startswith("NCCL_PROTO=LL128 is dangerous with NCCL (wrong-result")
    assert rccl.what.startswith("NCCL_PROTO=LL128 is dangerous with RCCL (wrong-result")
    assert "size tables" not in nccl.what and "size tables" in rccl.what
    assert str(nccl.mend) == str(rccl.mend) == "unset NCCL_PROTO"
    (alone,) = found(home, NCCL_PROTO="LL128")
    assert alone.what == nccl.what.replace("dangerous with NCCL", "dangerous")


def test_versions_of_what_was_found() -> None:
    at = Path("/opt/impi")
    mpi = MpiInstallation(MpiFlavour.INTEL, "2021.18.1", at, at / "mpicxx", at / "mpiexec")
    assert _installed_versions(mpi, Xccl("RCCL", "2.27.7", at, at, at)) == {
        "intel-mpi": "2021.18.1",
        "rccl": "2.27.7",
    }
    assert _installed_versions(None, None) == {}


def test_the_command_says_it_with_the_way_to_mend_it(tmp_path: Path) -> None:
    run = CommandLine(tmp_path, extra={"NCCL_MAX_P2P_PEERS": "8"})
    told = run("doctor")
    assert told.code == 0, told.err
    assert "NCCL_MAX_P2P_PEERS is not a variable of NCCL (misspelled)" in told.out
    assert "  export NCCL_P2P_MAX_PEERS=8; unset NCCL_MAX_P2P_PEERS\n" in told.out


def mending(folder: Path, **variables: str) -> list[str]:
    """What the doctor proposes for variables."""
    *_, told = CommandLine(folder, extra=variables)("doctor").out.partition("To fix:\n")
    lines = [line.strip() for line in told.splitlines()]
    return [line for line in lines if line.startswith(("export ", "unset "))]


def after(proposed: list[str], **variables: str) -> dict[str, str]:
    """What a shell has of NCCL's variables after these commands."""
    script = "\n".join([*proposed, "env | grep '^NCCL_'"])
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_each_variable_is_mended_once_and_the_rest_taken_away_last(tmp_path: Path) -> None:
    wrong = {"NCCL_PROTO": "LL128", "NCCL_ALGOO": "Ring", "NCCL_BUFFSIZE": "8M"}
    right = {"NCCL_DEBUG": "WARN", "UCX_TLS": "rc,sm"}
    proposed = mending(tmp_path, **wrong, **right)
    assert proposed == [
        "export NCCL_ALGO=Ring; unset NCCL_ALGOO",
        "export NCCL_BUFFSIZE=8388608",
        "unset NCCL_PROTO",
        "unset NCCL_DEBUG UCX_TLS",
    ]
    # All of them, one after the other: none undoes what another did.
    assert after(proposed, **wrong, **right) == {
        "NCCL_ALGO": "Ring",
        "NCCL_BUFFSIZE": "8388608",
    }
    assert mending(tmp_path, NCCL_BUFFSIZE="8M") == ["export NCCL_BUFFSIZE=8388608"]
    assert mending(tmp_path, NCCL_DEBUG="WARN") == ["unset NCCL_DEBUG"]


def test_a_misspelled_variable_does_not_overwrite_the_right_one(tmp_path: Path) -> None:
    assert mending(tmp_path, NCCL_ALGOO="Ring", NCCL_ALGO="Tree") == [
        "unset NCCL_ALGOO",
        "unset NCCL_ALGO",
    ]
    assert mending(tmp_path, NCCL_PROTOO="Simple", NCCL_PROTO="LL128") == [
        "unset NCCL_PROTO",
        "unset NCCL_PROTOO",
    ]


def test_what_is_taken_away_is_not_corrected() -> None:
    def finding(mend: str | Changes, status: Status = Status.WARNING) -> Check:
        return Check("environment", status, "x", mend)

    general = [
        finding("apt-get install g++", Status.MISSING),
        finding(Changes(dict.fromkeys(["A", "B", "C", "D", "E F"]))),
        finding("mv a b; c", Status.OK),
        finding(Changes(COMMTUNE_DB="sqlite:////x")),
    ]
    of_variables = [
        finding(Changes(A="8")),
        finding(Changes(A=None)),
        finding("chmod u+r f"),
        finding(Changes(N="x; y", B=None)),
        finding(Changes(N="z", C=None)),
    ]
    assert _fix_commands(general, of_variables) == [
        "apt-get install g++",
        "export COMMTUNE_DB=sqlite:////x",
        "chmod u+r f",
        "unset A",
        "export N='x; y'; unset B",
        "unset C",
        "unset D 'E F'",
    ]
