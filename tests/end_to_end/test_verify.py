"""``commtune verify`` and ``commtune compare``: what they find, store and refuse.

Most gains here are those of a program that says its times, so that they are the same however busy
the machine is. Those that are real are large: MPICH through shared memory against MPICH through
sockets, several times as slow at small sizes.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, CommandLine, wait_until
from step_program import LAUNCHED
from stores import opened_store
from waiting import PATIENCE_S

from commtune.model import DEFAULT, Configuration, Interval, PointEvidence, Profile, Verdict

#: In every run: sockets instead of shared memory. A profile may take it back.
SOCKETS = "MPIR_CVAR_NOLOCAL"
PINNED = f"""\
  MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM: [ring]
pin:
  {SOCKETS}: "1"
"""
#: Only the default is run: through TCP, so that the gain of shared memory is large.
ON_MPI = SMALL.replace("search: 10min", "search: 100ms").replace("[8, 64KiB]", "[8KiB]") + PINNED
ON_MPI = ON_MPI.replace("max_samples: 10", "warmup: 0, min_samples: 3, max_samples: 3")
ON_MPI += """\
  UCX_TLS: tcp
extend:
  - {name: UCX_TLS, kind: choice, values: [tcp]}
"""
#: The same of a program that says its times.
SAYING = LAUNCHED.replace("search: 10min", "search: 100ms") + PINNED
SAYING = SAYING.replace("{ranks: 1, sizes: [1]}", "{ranks: 2, sizes: [8, 64KiB]}")
#: With shared memory it says that it took a quarter of the time. An algorithm of its own saves
#: 0.5 %, twice the noise: too little to be worth it, yet it never looks slower by chance.
PROGRAM = """\
case $MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM in
    smurf) exit 7 ;;
    auto) time=3.98 ;;
    *) time=4.00 ;;
esac
[ "$MPIR_CVAR_NOLOCAL" != 0 ] || time=1.00
for bytes in 8 65536; do
    echo "{\\"bytes\\": $bytes, \\"time_s\\": $time$(date +%N | cut -c7-9)e-3}"
done
"""


def stated(
    name: str,
    configuration: Configuration,
    low: float,
    high: float,
    operation: str = "own:step",
    size: int = 8,
) -> Profile:
    """A profile of the campaign that states a gain at one size (bytes)."""
    gain = Interval((low * high) ** 0.5, low, high, 20)
    verdict = Verdict.DEFAULT if configuration.is_default else Verdict.FASTER
    return Profile(
        name=name,
        operation=operation,
        backend="command" if operation == "own:step" else "mpi-host",
        ranks=2,
        nodes=1,
        bytes_low=size,
        bytes_high=size,
        configuration=configuration,
        verdict=verdict,
        points=(PointEvidence(operation, size, "all", 5e-6, 1e-6, gain, verdict),),
    )


ALGORITHM = "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"
SHARED = Configuration({SOCKETS: "0"})
# Wide: other programs slow shared memory down more than sockets, and "weaker" would be true.
REAL = stated("real", SHARED, 1.05, 30.0, "allreduce", 8192)
PROFILES = [
    stated("said", SHARED, 3.0, 5.0),
    stated("boastful", SHARED, 1000.0, 1100.0),
    stated("nothing", Configuration({ALGORITHM: "auto"}), 900.0, 950.0),
    stated("broken", Configuration({ALGORITHM: "smurf"}), 1.5, 2.0),
    stated("default", DEFAULT, 0.9, 1.0),
]


def tuned(line: CommandLine, campaign: str, profiles: list[Profile]) -> CommandLine:
    """The folder, in whose database is a campaign that ran, with these profiles."""
    line.write(campaign)
    line.succeed("tune", "campaign.yaml")
    with opened_store(line.database) as store:
        (campaign_id,) = line.query("SELECT id FROM campaigns")[0]
        store.save_profiles(campaign_id, profiles)
    return line


@pytest.fixture(scope="module")
def made(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:  # noqa: ARG001  # built before
    """A folder with a campaign of the program, with profiles of known truth."""
    line = CommandLine(tmp_path_factory.mktemp("verify"))
    line.write(PROGRAM, "step.sh")
    return tuned(line, SAYING, PROFILES)


@pytest.fixture
def on_mpi(executable: Path, tmp_path: Path) -> CommandLine:  # noqa: ARG001  # built before
    """A folder with a campaign that measured a real MPI."""
    return tuned(CommandLine(tmp_path), ON_MPI, [REAL])


@pytest.fixture
def commtune(made: CommandLine, tmp_path: Path) -> CommandLine:
    """The same in a folder of the test's own."""
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    return replace(made, folder=tmp_path)


CODES = {"holds": 0, "weaker": 10, "gone": 11, "worse": 12, "undecided": 13}


def verified(line: CommandLine, *arguments: str) -> tuple[str, dict[str, Any], str]:
    """The finding, all that is said of it, and what was said on the way."""
    said = line("verify", *arguments, "--json")
    assert said.out, said.err
    found = json.loads(said.out)
    assert said.code == found["exit_code"] == CODES[found["finding"]]
    return found["finding"], found, said.err


@contextmanager
def database(line: CommandLine) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(line.database)) as connection, connection:
        yield connection


# Small sizes are compared, at which another test beside them shows at once.
@pytest.mark.alone
def test_a_real_gain_holds(on_mpi: CommandLine) -> None:
    finding, found, err = verified(on_mpi, "small/real", "--time", "1s")
    # A busy machine may leave it undecided; the blocks of another day must not add to today's.
    if finding == "undecided":
        finding, found, err = verified(on_mpi, "small/real", "--time", "2min")
    assert finding == "holds", found
    assert "small/real: allreduce, 2 ranks, 1 size; " in err
    assert found["changes"] == []
    assert found["sizes"][0]["today"]["low"] > 1
    stored = on_mpi.query("SELECT profile, finding FROM verifications")
    assert stored[-1] == ("real", "holds")
    asked = ["--op", "allreduce", "--bytes", "8KiB", "--min-sessions"]
    assert ", last" in on_mpi.succeed("best", *asked, "1").out
    assert on_mpi("best", *asked, "2").code == 4  # it followed within the hour


def test_what_holds_is_stored_with_its_campaign(commtune: CommandLine) -> None:
    before = commtune.query("SELECT finished, settings, folder FROM campaigns")
    finding, found, err = verified(commtune, "small/said", "--time", "1s")
    assert finding == "holds", found
    assert "small/said: own:step, 2 ranks, 1 size; " in err
    assert "blocks of 2 runs, about" in err
    assert found["campaign"] == "small"
    assert found["changes"] == []
    assert found["sizes"][0]["today"]["low"] > 2
    (row,) = commtune.query("SELECT COUNT(*) FROM runs WHERE phase = 'verify'")
    assert row[0] >= 2 * found["blocks"]
    (planned,) = commtune.query("SELECT COUNT(*) FROM blocks WHERE phase = 'verify'")
    assert planned[0] == found["blocks"]
    assert commtune.query("SELECT finished, settings, folder FROM campaigns") == before
    assert commtune.query("SELECT COUNT(*) FROM locks") == [(0,)]
    assert commtune.query("SELECT profile, finding FROM verifications") == [("said", "holds")]
    before, now = found["strength"]["before"], found["strength"]["now"]
    assert (before["verifications"], now["verifications"], now["sessions"]) == (0, 1, 1)
    asked = ["--op", "own:step", "--bytes", "8", "--min-sessions"]
    assert "1 verification, last" in commtune.succeed("best", *asked, "1").out
    assert commtune("best", *asked, "2").code == 4  # it followed within the hour


def test_what_is_worse_is_no_longer_recommended(commtune: CommandLine) -> None:
    assert verified(commtune, "small/broken", "--time", "1s")[0] == "worse"
    asked = commtune.succeed("best", "--op", "own:step", "--bytes", "8", "--json")
    (broken,) = [one for one in json.loads(asked.out) if one["name"] == "broken"]
    assert (broken["finding"], broken["configuration"]) == ("withdrawn", {})
    refused = commtune("export", "small/broken")
    assert refused.code and "profile broken was withdrawn (verified" in refused.err
    assert "withdrawn" in commtune.succeed("profiles").out
    ran = commtune.succeed("run", "-p", "small/broken", "--", "true")
    assert "broken was withdrawn: verified " in ran.err


def test_each_finding_has_its_exit_code(commtune: CommandLine) -> None:
    finding, found, _ = verified(commtune, "boastful", "--time", "1s")
    assert finding == "weaker", found
    said = commtune("verify", "broken", "--time", "1s")
    assert said.code == 12
    assert said.out.startswith("small/broken: worse\n")
    assert "runs of the profile's settings failed: 3 failed: exit status" in said.out
    finding, found, _ = verified(commtune, "nothing", "--time", "1s")
    assert finding == "gone", found


def test_for_people(commtune: CommandLine) -> None:
    said = commtune("verify", "small/said", "--time", "1s")
    lines = said.out.splitlines()
    assert (said.code, lines[0]) == (0, "small/said: holds")
    assert lines[1].startswith("own:step, 2 ranks, MPICH ")
    level = ["today,", "simultaneous", "95", "%", "CI"]
    header = ["size", "default", "candidate", "stated", *level, "finding"]
    assert lines[3].split() == header
    assert lines[4].strip().startswith("8 B")
    assert lines[4].endswith("holds")
    assert lines[-1] == f"Stored in {commtune.database}, campaign small"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["small/default"], "is the default: it claims no speedup"),
        (["small/nowhere"], "no profile small/nowhere"),
        (["small/said", "--time", "soon"], "--time: "),
        (["small/said", "--time", "0s"], "not a time above 0"),
    ],
)
def test_what_can_not_be_verified_is_said(
    made: CommandLine, arguments: list[str], words: str
) -> None:
    said = made("verify", *arguments)
    assert said.code == 2, said.out
    assert words in said.err
    assert "Traceback" not in said.err


def test_a_replayed_profile_is_refused(commtune: CommandLine) -> None:
    with database(commtune) as connection:
        connection.execute("UPDATE profiles SET simulated = 1")
    said = commtune("verify", "small/said")
    assert said.code == 2
    assert "is simulated or replayed" in said.err


def change(line: CommandLine, part: str, key: str, value: object) -> None:
    """Makes the campaign one that was measured under something else."""
    with database(line) as connection:
        (text,) = connection.execute("SELECT what FROM campaigns").fetchone()
        what = json.loads(text)
        what[part][key] = value
        connection.execute("UPDATE campaigns SET what = ?", (json.dumps(what),))


def test_another_machine_is_refused_with_what_to_do(commtune: CommandLine) -> None:
    change(commtune, "machine", "cores_usable", 4096)
    said = commtune("verify", "small/said")
    assert said.code == 2
    assert "was measured on another system" in said.err
    assert "cores_usable: 4096 -> " in said.err
    assert "commtune compare default small/said" in said.err
    assert commtune.query("SELECT COUNT(*) FROM runs WHERE phase = 'verify'") == [(0,)]


def test_another_library_is_refused(commtune: CommandLine) -> None:
    change(commtune, "mpi", "flavour", "openmpi")
    said = commtune("verify", "small/said")
    assert said.code == 2
    assert "which has other variables" in said.err


def test_another_version_is_said_and_stored_apart(commtune: CommandLine) -> None:
    change(commtune, "mpi", "version", "1.0")
    finding, found, err = verified(commtune, "small/said", "--time", "1s")
    assert finding == "holds"
    assert "changed since (then -> now):" in err
    assert 'mpi.version: "1.0" -> ' in err
    assert found["campaign"].startswith("verify-small-said-")
    stored = commtune.query(
        "SELECT DISTINCT c.name FROM runs r JOIN campaigns c ON c.id = r.campaign_id "
        "WHERE r.phase = 'verify'"
    )
    assert stored == [(found["campaign"],)]
    # Again on the same day: the same campaign, other blocks.
    _, again, _ = verified(commtune, "small/said", "--time", "1s")
    assert again["campaign"] == found["campaign"]
    (row,) = commtune.query("SELECT COUNT(*) FROM blocks WHERE phase = 'verify'")
    assert row[0] == found["blocks"] + again["blocks"]


def test_interrupted_it_keeps_what_was_measured_and_says_what_is_known(
    commtune: CommandLine,
) -> None:
    counted = "SELECT COUNT(*) FROM runs WHERE phase = 'verify' AND outcome = 'ok'"
    with commtune.start("verify", "small/boastful", "--time", "5min") as child:
        wait_until(lambda: commtune.query(counted)[0][0] >= 3, child)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130, err
    assert out.startswith("small/boastful: so far ")
    assert "interrupted; everything measured is kept" in err
    assert commtune.query(counted)[0][0] >= 3
    assert commtune.query("SELECT COUNT(*) FROM runs WHERE state = 'running'") == [(0,)]
    assert commtune.query("SELECT COUNT(*) FROM locks") == [(0,)]
    assert commtune.left_over() == {}


# compare

WORKLOAD = ("--mpi", "wheel:mpich", "--sizes", "8,10,64KiB", "--time", "1s")


# Small sizes are compared, at which another test beside them shows at once.
@pytest.mark.alone
def test_two_settings_are_compared_and_nothing_is_stored(commtune: CommandLine) -> None:
    commtune.write(f"# shared memory\nexport {SOCKETS}=0\n", "shared.env")
    runs = commtune.query("SELECT COUNT(*) FROM runs")
    said = commtune.succeed("compare", f"{SOCKETS}=1", "@shared.env", *WORKLOAD, "--json")
    remark = "note: 10 B: rounded down to whole elements of float32 (4 bytes)"
    assert remark in said.err.splitlines()
    found = json.loads(said.out)
    assert found["b"]["configuration"] == {SOCKETS: "0"}
    (small,) = (d for d in found["differences"] if (d["bytes"], d["speed"]) == (8, "all"))
    assert small["faster"] in ("B", None), small
    # A busy machine may leave no pair of runs in one machine state.
    if small["ratio"] is not None:
        assert small["faster"] is None or small["ratio"]["low"] > 1
        assert small["a_s"] > small["b_s"]
    assert commtune.query("SELECT COUNT(*) FROM runs") == runs


#: Keeps files in a folder, whoever deletes them.
_KEEPER = """
import os, sys
os.makedirs(f"{sys.argv[1]}/kept")
os.chdir(f"{sys.argv[1]}/kept")
while True:
    for number in range(2000):
        open(str(number), "w").close()
"""


def test_a_folder_that_cannot_be_deleted_costs_no_result(
    commtune: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "short").mkdir()
    commtune.extra["TMPDIR"] = str(tmp_path / "short")
    with commtune.start("compare", "default", "small/said", "--time", "1s") as child:
        wait_until(lambda: any((tmp_path / "short").glob("commtune-*/*.jsonl")), child)
        (records, *_) = (tmp_path / "short").glob("commtune-*/*.jsonl")
        keeper = [sys.executable, "-c", _KEEPER, str(records.parent)]
        with subprocess.Popen(keeper, stderr=subprocess.DEVNULL) as kept:
            out, err = child.communicate(timeout=PATIENCE_S)
            kept.kill()
    assert child.returncode == 0, err
    assert out.startswith("A: default\n")


def test_a_profile_brings_its_workload_and_its_pins(commtune: CommandLine) -> None:
    said = commtune.succeed("compare", "small/said", "default", "--time", "1s")
    assert said.out.startswith("A: small/said\nB: default\nown:step, 2 ranks, MPICH ")
    rows = [line for line in said.out.splitlines() if line.strip().startswith(("8 B", "64 KiB"))]
    assert [row.endswith("A is faster") for row in rows] == [True, True]


def test_settings_that_crash_are_reported_with_their_output(commtune: CommandLine) -> None:
    broken = "MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM=smurf"
    said = commtune("compare", "default", broken, *WORKLOAD)
    assert said.code == 3
    assert f"B ({broken}) failed in all of 3 runs: 3 failed: MPI failed: " in said.err
    assert "MPI_Init" in said.err.partition("MPI failed")[2].partition("\n")[0]
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("side", "words"),
    [
        ("@nowhere.env", "can't read nowhere.env"),
        ("A=1 B", "'B' sets no variable"),
        ("A='1", "No closing quotation"),
        ("small/nowhere", "no profile small/nowhere"),
    ],
)
def test_sides_that_mean_nothing_are_refused(made: CommandLine, side: str, words: str) -> None:
    said = made("compare", "default", side)
    assert said.code == 2
    assert words in said.err
    assert "Traceback" not in said.err
