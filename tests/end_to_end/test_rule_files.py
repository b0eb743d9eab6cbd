"""Files of rules by size, as real MPI libraries read them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import database_values as given
import pytest
from command_line import CommandLine
from components import require_component
from rule_campaigns import ALGORITHMS, INTEL, KIB, MPICH, OPENMPI, WHEELS, Made, make
from stores import opened_store
from tracing_runs import traced_on

from commtune.app.profiles.rule_files import find_library, prepare_rules, read_rules
from commtune.app.profiles.rule_verification import prove_rules, verify_rules
from commtune.commands.profiles.verify import verify_command
from commtune.db.queries.profiles import load_profiles
from commtune.errors import ExportRefused, UserError
from commtune.model import Profile, VerificationVerdict

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.fixture(scope="module", params=["openmpi", "mpich", "intel-mpi"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A campaign of 3 ranks, made once for all tests."""
    folder = tmp_path_factory.mktemp("made")
    traced_on(WHEELS[request.param], folder / "unused")  # builds the benchmark
    return make(request.param, folder)


@pytest.fixture
def made(kept: Made, tmp_path: Path) -> Made:
    """A copy of it, to change."""
    shutil.copytree(kept.folder, tmp_path, dirs_exist_ok=True)
    return replace(kept, folder=tmp_path)


@pytest.mark.parametrize(
    ("library", "operation"),
    [("mpich", "allreduce"), ("openmpi", "allreduce"), ("openmpi", "broadcast")],
)
def test_rules_are_executed_at_every_size_and_on_both_sides_of_every_border(
    library: str, operation: str, tmp_path: Path
) -> None:
    """Seen by the order of sums, or by the messages that Open MPI counts."""
    traced_on(WHEELS[library], tmp_path / "unused")
    proof = make(library, tmp_path, operation).prove()
    ruled = {2 * KIB, 4 * KIB, 8 * KIB, 8 * KIB + 4, 16 * KIB}
    assert {*proof.executed, *proof.alike} == ruled
    # One order of sums may be two algorithms'; at each border both sides are told apart.
    assert {4 * KIB, 8 * KIB, 8 * KIB + 4, 16 * KIB} <= set(proof.executed)
    assert proof.left == (KIB, 2 * KIB - 4, 16 * KIB + 4, 64 * KIB)


def test_intel_mpi_executes_rules_at_every_size_and_above_and_below(tmp_path: Path) -> None:
    """At 1 KiB the table for 4 ranks has another algorithm than the basic logic."""
    bench = traced_on("impi", tmp_path / "unused")
    made = make("intel-mpi", tmp_path, ranks=4)
    proof = made.prove()
    assert {4 * KIB, 8 * KIB, 8 * KIB + 4, 16 * KIB} <= set(proof.executed)
    assert {*proof.executed, *proof.alike} == {size * KIB for size in (1, 2, 4, 8, 16, 64)} | {
        8 * KIB + 4
    }
    assert proof.left == ()
    sizes = (512, 128 * KIB)
    file, small, large = bench(
        {"I_MPI_TUNING": str(made.file)},
        *ALGORITHMS["intel-mpi", "allreduce"],
        ranks=4,
        sizes=sizes,
    )
    assert file.fingerprints[512] == small.fingerprints[512] != large.fingerprints[512]
    assert file.fingerprints[sizes[1]] == large.fingerprints[sizes[1]]


def test_a_file_outlives_a_finding_that_changes_no_rule(tmp_path: Path) -> None:
    traced_on(WHEELS["mpich"], tmp_path / "unused")
    made = make("mpich", tmp_path)
    small, large = load_profiles(made.database, "small")

    def find(profile: Profile, finding: VerificationVerdict) -> None:
        found = given.verification(
            profile=profile.name, configuration=profile.configuration, finding=finding
        )
        with opened_store(made.database) as store:
            store.add_verification(1, found)

    find(small, VerificationVerdict.WEAKER)
    assert read_rules(made.file, db=made.database).table.operations == ("allreduce",)
    find(small, VerificationVerdict.GONE)
    with pytest.raises(UserError, match="is not what the export writes"):
        read_rules(made.file, db=made.database)
    find(large, VerificationVerdict.WORSE)
    with pytest.raises(ExportRefused, match=r"was withdrawn .verified ") as refused:
        read_rules(made.file, db=made.database)
    assert refused.value.hint.startswith("measure it again: commtune verify small/allreduce-")


def test_a_file_that_leaves_sizes_to_intel_mpi_is_refused(tmp_path: Path) -> None:
    """It would take Intel MPI's own table away there."""
    with pytest.raises(ExportRefused, match=r"none at 16 KiB to 64 KiB: .* own table") as refused:
        make("intel-mpi", tmp_path, settings=({INTEL: "7"}, {}))
    assert "commtune export small/allreduce-1024-4096 --format sh" in str(refused.value.hint)
    assert not (tmp_path / "rules.txt").exists()


@pytest.mark.parametrize("kept", ["intel-mpi"], indirect=True)
def test_what_keeps_intel_mpi_from_its_rules_is_named(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("I_MPI_TUNING", "/other")
    with pytest.raises(UserError, match="your environment sets I_MPI_TUNING=/other"):
        made.prove()
    monkeypatch.delenv("I_MPI_TUNING")
    monkeypatch.setenv("I_MPI_ADJUST_ALLREDUCE", "2")
    with pytest.raises(UserError, match="sets I_MPI_ADJUST_ALLREDUCE, which chooses for all"):
        made.prove()
    with pytest.raises(ExportRefused, match=r"algorithms of intel-mpi 2021.18.1, and .* openmpi"):
        prepare_rules("small", "intel-json", db=made.database, mpi="wheel:openmpi")


def test_mpich_executes_what_its_third_file_says(tmp_path: Path) -> None:
    """How an allreduce is split: flat, and then by the algorithm of the first file."""
    traced_on("mpich", tmp_path / "unused")
    flat = {f"{MPICH}COMPOSITION": "2", f"{MPICH}INTRA_ALGORITHM": "ring"}
    ring = {f"{MPICH}POSIX_INTRA_ALGORITHM": "mpir", f"{MPICH}INTRA_ALGORITHM": "ring"}
    proof = make("mpich", tmp_path, settings=(ring, flat)).prove()
    text = "".join(file.read_text() for file in sorted(tmp_path.glob("rules*.txt")))
    assert len(list(tmp_path.glob("rules*.txt"))) == 3
    assert "composition=MPIDI_Allreduce_intra_composition_beta" in text
    assert {4 * KIB, 8 * KIB, 8 * KIB + 4, 16 * KIB} <= set(proof.executed)


def test_open_mpi_4_executes_rules_on_both_sides_of_every_border(tmp_path: Path) -> None:
    """Debian's, by the order of sums; which tells reductions of 3 ranks apart."""
    compiler = Path("/usr/bin/mpicxx.openmpi")
    require_component("openmpi 4.1 (libopenmpi-dev)", compiler.exists())
    made = make("openmpi", tmp_path, mpi_name=str(compiler))
    assert "measured with 4.1." in made.file.read_text()
    proof = made.prove()
    assert {4 * KIB, 8 * KIB, 8 * KIB + 4, 16 * KIB} <= {*proof.executed, *proof.alike}
    assert {8 * KIB + 4, 16 * KIB} <= set(proof.executed)
    assert proof.left == (KIB, 2 * KIB - 4, 16 * KIB + 4, 64 * KIB)


def test_a_rule_holds_at_a_size_of_which_less_was_sent(tmp_path: Path) -> None:
    """A total of 2 KiB among 3 ranks is 2040 B, where the rule for 2 KiB has to hold."""
    traced_on("openmpi", tmp_path / "unused")
    proof = make("openmpi", tmp_path, "allgather").prove()
    assert set(proof.executed) >= {2040, 2 * KIB}
    assert proof.left == (KIB, 2028, 16 * KIB + 8, 64 * KIB)


@pytest.mark.parametrize("kept", ["openmpi"], indirect=True)
def test_what_keeps_open_mpi_from_its_rules_is_named(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_coll", "^tuned")
    with pytest.raises(UserError, match=r"does not use .*_filename: absent.*is not loaded"):
        made.prove()
    monkeypatch.setenv("OMPI_MCA_coll", "tuned,basic,libnbc,self")
    monkeypatch.setenv("OMPI_MCA_coll_tuned_priority", "0")
    with pytest.raises(UserError, match=r"does not (use|do)"):
        made.prove()
    monkeypatch.delenv("OMPI_MCA_coll_tuned_priority")
    # From 5.0 on an algorithm that is set for the process comes before the rules.
    monkeypatch.setenv("HOME", str(made.folder))
    (made.folder / ".openmpi").mkdir()
    settings = made.folder / ".openmpi" / "mca-params.conf"
    settings.write_text("coll_tuned_allreduce_algorithm = ring\n")
    with pytest.raises(UserError, match=r"does not do what .*rules.txt says at"):
        made.prove()


@pytest.mark.parametrize("kept", ["openmpi"], indirect=True)
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (f"{OPENMPI}use_dynamic_rules", "0", "your environment sets .*use_dynamic_rules=0"),
        (f"{OPENMPI}dynamic_rules_filename", "/other", "your environment sets .*=/other"),
        (f"{OPENMPI}allreduce_algorithm", "3", "chooses for all sizes"),
    ],
)
def test_an_environment_that_undoes_rules_is_refused(
    made: Made, name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=said):
        made.prove()


def _cut(text: str) -> str:
    return text[: len(text) // 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: "", "is empty"),
        (_cut, "is cut off in line"),
        (lambda text: text.replace("\n", "\r\n"), r"line ends of Windows \(CRLF\)"),
        (lambda text: text.replace("3 ranks", "5 ranks", 1), "is not what the export writes"),
        (
            lambda text: (
                text.replace("mpich-json", "json")
                .replace("intel-json", "json")
                .replace("openmpi-", "")
            ),
            "not begin",
        ),
        (lambda text: text.replace("campaign small", "campaign large", 1), "no campaign large"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(
    made: Made, change: Callable[[str], str], said: str
) -> None:
    text = change(made.file.read_text())
    made.file.write_bytes(text.encode())
    with pytest.raises(UserError, match=said):
        read_rules(made.file, db=made.database)


class _Meddler:
    """Appends to the file after the untimed runs, and ends the timed ones after the first."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def progress(self, _: object) -> None:
        raise KeyboardInterrupt

    def say(self, _: str) -> None:
        with self._file.open("a") as opened:
            opened.write("\n")


def test_a_file_that_is_replaced_while_it_is_measured_is_refused(tmp_path: Path) -> None:
    traced_on("mpich", tmp_path / "unused")
    made = make("mpich", tmp_path, ranks=2)
    with pytest.raises(UserError, match="is not what the export writes"):
        verify_rules(made.file, db=made.database, time_s=0.1, reporter=_Meddler(made.file))


def test_a_file_that_is_not_there_is_refused(made: Made) -> None:
    with pytest.raises(UserError, match=r"can't read .*: No such file"):
        read_rules(made.folder / "gone.txt", db=made.database)


@pytest.mark.parametrize("kept", ["openmpi"], indirect=True)
def test_another_library_s_campaign_and_another_version_are_refused(made: Made) -> None:
    with pytest.raises(ExportRefused, match=r"mpich-json is for mpich .* measured openmpi 5"):
        prepare_rules("small", "mpich-json", db=made.database)
    with pytest.raises(UserError, match=r"is for openmpi .*; this is mpich"):
        rules = read_rules(made.file, db=made.database)
        prove_rules(made.file, rules, find_library(rules.stored, "wheel:mpich"))


@pytest.mark.parametrize("kept", ["mpich"], indirect=True)
def test_a_copy_of_another_library_is_refused(made: Made) -> None:
    with pytest.raises(ExportRefused, match=r"copies mpich 5.0.2, and .* found is openmpi"):
        prepare_rules("small", "mpich-json", db=made.database, mpi="wheel:openmpi")


def test_the_command_measures_the_file_against_the_default(tmp_path: Path) -> None:
    traced_on("mpich", tmp_path / "unused")
    made = make("mpich", tmp_path, ranks=2)
    line = CommandLine(made.folder, {"COMMTUNE_DB": made.database})
    said = line("verify", "--export", "rules.txt", "--time", "100ms", "--json")
    found = json.loads(said.out)
    assert said.code == found["exit_code"]
    assert found["rules"] == {
        "executed": [],
        "alike": found["rules"]["alike"],
        "left": found["rules"]["left"],
    }
    assert "which algorithm of allreduce it took is not seen" in said.err
    rules = [line for line in said.err.splitlines() if line.startswith("  from ")]
    assert len(rules) == 4
    assert all(line.endswith(": not seen") for line in rules)
    assert [size["bytes"] for size in found["sizes"]] == [2 * KIB, 4 * KIB, 16 * KIB]
    # A busy machine may leave no pair of runs undisturbed; all of them ended well.
    assert found["failures"] == {}
    assert found["campaign"].startswith("verify-small-mpich-json-")
    with closing(sqlite3.connect(made.database)) as opened:
        good = "SELECT COUNT(*) FROM runs WHERE phase = 'verify' AND outcome = 'ok'"
        assert opened.execute(good).fetchone()[0] >= 2
    assert list(found["configuration"].values()) == [
        str(made.folder / "rules-2.txt"),
        str(made.file),
    ]


def test_sizes_without_a_rule_are_measured_where_the_library_s_table_is_replaced(
    tmp_path: Path,
) -> None:
    traced_on("impi", tmp_path / "unused")
    made = make("intel-mpi", tmp_path, ranks=2)
    line = CommandLine(made.folder, {"COMMTUNE_DB": made.database})
    said = line("verify", "--export", "rules.txt", "--time", "100ms", "--json")
    found = json.loads(said.out)
    assert [size["bytes"] for size in found["sizes"]] == [n * KIB for n in (1, 2, 4, 16, 64)]
    assert found["configuration"] == {"I_MPI_TUNING": str(made.file)}
    assert found["failures"] == {}


@pytest.mark.parametrize(("profile", "file"), [(None, None), ("small/x", Path("rules.txt"))])
def test_one_thing_is_verified_at_a_time(profile: str | None, file: Path | None) -> None:
    with pytest.raises(UserError, match="name a profile, or a file of rules: --export FILE"):
        verify_command(profile, file)
