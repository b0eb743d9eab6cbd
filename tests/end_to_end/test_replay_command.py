"""``commtune record`` and ``commtune tune --replay``: what they make, refuse and say."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import signal
import sqlite3
import statistics
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ROOT, SMALL, CommandLine, wait_until
from recorded_grids import GRIDS
from waiting import PATIENCE_S

from commtune.app.measure.recording import _count_of_runs, _run_order
from commtune.db.codec import pack_samples
from commtune.model import DEFAULT, Configuration
from commtune.replay.recording import Grid, load_grid

RECORDING = GRIDS / "mpich-allreduce.jsonl.gz"
SAID = "replayed from the recording mpich-allreduce: says nothing about this machine"
BUDGET = "budget: {search: 5s, ablation: 1s, confirmation: 4s}\n"

#: Six configurations, recorded in less than a second a round.
TINY = (
    re.sub(
        r"budget: .*", "budget: {search: 10min, ablation: 1s, confirmation: 1s, trials: 1}", SMALL
    )
    + """\
  MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM: [ring]
pin:
  MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE: unset
  MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE: unset
  MPIR_CVAR_REDUCE_INTRANODE_NUM_CELLS: unset
  MPIR_CVAR_BCAST_INTRANODE_NUM_CELLS: unset
  MPIR_CVAR_CH4_CMA_ENABLE: unset
  MPIR_CVAR_NOLOCAL: unset
  MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD: unset
  MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_NUM_CELLS: unset
  shared-memory-cell: unset
"""
)


def recorded_campaign() -> str:
    """The text of the campaign that was recorded."""
    first = gzip.decompress(RECORDING.read_bytes()).split(b"\n", 1)[0]
    return str(json.loads(first)["campaign"])


# The order of a recording


def test_every_round_holds_every_configuration_and_the_default_among_every_eight() -> None:
    made = list(_run_order(20, 3, seed=7))
    assert len(made) == _count_of_runs(20, 3)
    rest = made[4:]
    assert made[:4] == [0] * 4
    for number in range(3):
        round_ = rest[number * 23 : (number + 1) * 23]
        assert Counter(round_) == {0: 3, **dict.fromkeys(range(1, 21), 1)}
        assert 0 in round_[:8] and 0 in round_[8:16]
    assert rest[:23] != rest[23:46]


def test_more_rounds_begin_like_fewer() -> None:
    more = list(_run_order(20, 5, seed=7))
    assert more[: _count_of_runs(20, 2)] == list(_run_order(20, 2, seed=7))
    assert more != list(_run_order(20, 5, seed=8))


def test_the_default_alone_can_be_recorded() -> None:
    assert list(_run_order(0, 3, seed=1)) == [0] * _count_of_runs(0, 3) == [0] * 7


# Replaying; needs no MPI


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A folder in whose database the committed recording's campaign was replayed, umask 000."""
    line = CommandLine(tmp_path_factory.mktemp("replayed"), {"COMMTUNE_MPI_PATH": "/nowhere"})
    line = replace(line, program=("sh", "-c", 'umask 000; exec "$@"', "sh", *line.program))
    line.write(recorded_campaign() + BUDGET)
    said = line.succeed("tune", "campaign.yaml", "--replay", str(RECORDING))
    assert said.out.splitlines()[0] == SAID
    assert said.err.splitlines()[0] == SAID
    return line


def test_what_a_campaign_leaves_is_closed_to_others_under_any_umask(replayed: CommandLine) -> None:
    assert (replayed.folder / "data").stat().st_mode & 0o777 == 0o700
    assert replayed.database.parent.stat().st_mode & 0o777 == 0o700
    assert replayed.database.stat().st_mode & 0o777 == 0o600


def times_at(grid: Grid, configuration: Configuration, size: int, speed: str) -> list[float]:
    """Medians of the recorded runs in a machine state, seconds."""
    return [
        one.median_s
        for run in grid.runs_of(configuration)
        for one in run.sizes
        if one.bytes == size and grid.speeds.name(one.canary_s, one.canary_after_s) == speed
    ]


def test_a_replay_finds_what_was_recorded(replayed: CommandLine) -> None:
    grid = load_grid(RECORDING)
    answers = json.loads(replayed("best", "--op", "allreduce", "--bytes", "1MiB", "--json").out)
    assert answers[0]["verdict"] == "faster"
    tuned = next(c for c in grid.configurations if dict(c) == answers[0]["configuration"])
    size = 2**20
    truth = {
        speed: statistics.median(times_at(grid, DEFAULT, size, speed))
        / statistics.median(times_at(grid, tuned, size, speed))
        for speed in grid.speeds.names
    }
    gains = {p["speed"]: p["gain"]["ratio"] for p in answers[0]["points"]}
    # Over all speeds the gain depends on how often each came up; the recording is mostly fast.
    compared = truth.keys() & gains.keys() or {"all"}
    for speed in compared:
        assert gains[speed] > 1.2
        assert gains[speed] == pytest.approx(truth.get(speed, truth["fast"]), rel=0.1)


def test_a_sampler_of_ones_own_proposes(tmp_path: Path) -> None:
    line = CommandLine(tmp_path, {"PYTHONPATH": f"{ROOT}:{ROOT / 'examples'}"})
    line.write(recorded_campaign() + BUDGET + "strategy: near_best:NearBest\n")
    line.succeed("tune", "campaign.yaml", "--replay", str(RECORDING))
    assert line.query("SELECT count(*) FROM trials WHERE origin = 'sampler'") > [(5,)]


def test_a_sampler_that_fails_ends_the_search_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from optuna.samplers import RandomSampler\n\n\n"
        "class Broken(RandomSampler):\n"
        "    def sample_independent(self, study, trial, name, distribution):\n"
        "        return {}[len(study.trials)] if len(study.trials) > 6 else (\n"
        "            super().sample_independent(study, trial, name, distribution))\n"
    )
    line = CommandLine(tmp_path, {"PYTHONPATH": f"{ROOT}:{tmp_path}"})
    line.write(recorded_campaign() + BUDGET + "strategy: broken:Broken\n")
    said = line("tune", "campaign.yaml", "--replay", str(RECORDING))
    assert said.code == 2
    assert said.err.endswith(
        f"commtune: the sampler Broken failed: KeyError(7)\n  at {tmp_path}/broken.py:6\n"
        "  what was measured is kept; once it is mended, the same command continues\n"
    )
    assert line.query("SELECT count(*) FROM runs WHERE phase = 'search'") > [(3,)]


def test_a_sampler_is_not_imported_from_the_current_folder(tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("commtune"))
    line = CommandLine(tmp_path, program=(program,))
    (tmp_path / "hidden.py").write_text("raise SystemExit('imported')\n")
    file = line.write(recorded_campaign() + BUDGET + "strategy: hidden:Sampler\n")
    said = line("tune", "campaign.yaml", "--replay", str(RECORDING))
    number = file.read_text().splitlines().index("strategy: hidden:Sampler") + 1
    assert said.code == 2
    assert said.err.removeprefix(f"{SAID}\n") == (
        f"commtune: campaign.yaml:{number}: strategy: hidden:Sampler can't be imported: No module "
        "named 'hidden'\n  write MODULE:CLASS, and install the module, or name its folder in "
        "PYTHONPATH\n"
    )


def test_the_database_says_that_it_was_replayed(replayed: CommandLine) -> None:
    assert replayed.query("SELECT DISTINCT simulated FROM campaigns") == [(1,)]
    assert replayed.query("SELECT DISTINCT simulated FROM profiles") == [(1,)]
    (system,) = replayed.query("SELECT name FROM systems")
    assert system[0] == "replayed: AMD EPYC, 2 cores (mpich-allreduce)"
    (stack,) = replayed.query("SELECT text FROM stacks")
    assert stack[0] == "MPICH 5.0.2 (replayed)"


def test_recorded_seconds_are_spent_not_real_ones(replayed: CommandLine) -> None:
    (spent,) = replayed.query("SELECT SUM(wall_s), COUNT(*) FROM runs")
    assert 5 < spent[0] < 25
    walls = {round(run.wall_s, 4) for run in load_grid(RECORDING).runs}
    stored = {round(wall, 4) for (wall,) in replayed.query("SELECT wall_s FROM runs")}
    assert stored <= walls


def test_every_answer_says_that_it_was_replayed(replayed: CommandLine) -> None:
    assert "mpich-allreduce (replayed from mpich-allreduce)" in replayed("status").out
    said = replayed("best", "--op", "allreduce", "--bytes", "1MiB").out
    assert "SIMULATED OR REPLAYED: says nothing about a real system" in said
    assert "replayed: AMD EPYC" in said


def test_a_picture_says_that_it_was_replayed(replayed: CommandLine) -> None:
    replayed.succeed("plot", "mpich-allreduce", "-o", "p.svg")
    # Letters are drawn as paths; what they spell is kept in comments.
    assert "SIMULATED OR REPLAYED" in (replayed.folder / "p.svg").read_text()


def faster_profile(line: CommandLine) -> str:
    (name, *_) = line.query("SELECT name FROM profiles WHERE verdict = 'faster'")
    return f"mpich-allreduce/{name[0]}"


def test_nothing_replayed_is_exported_or_run(replayed: CommandLine) -> None:
    profile = faster_profile(replayed)
    for command in (["export", profile], ["run", "--profile", profile, "--", "echo", "ran"]):
        said = replayed(*command)
        assert said.code == 2
        assert "simulated or replayed: it says nothing about a real system" in said.err
        assert said.out == ""


def test_replayed_again_it_goes_on(replayed: CommandLine) -> None:
    before = replayed.query("SELECT run_id, wall_s FROM runs ORDER BY id")
    said = replayed.succeed("tune", "campaign.yaml", "--replay", str(RECORDING), "--json")
    assert json.loads(said.out)["replayed"] == "mpich-allreduce"
    after = replayed.query("SELECT run_id, wall_s FROM runs ORDER BY id")
    assert after[: len(before)] == before


def test_a_pruned_campaign_says_the_same_and_goes_on_the_same(
    replayed: CommandLine, tmp_path: Path
) -> None:
    line = CommandLine(tmp_path / "pruned", replayed.extra)
    shutil.copytree(replayed.folder, line.folder)
    with closing(sqlite3.connect(line.database)) as connection, connection:
        connection.execute("UPDATE campaigns SET folder = replace(folder, ?, ?)",
                           (str(replayed.folder), str(line.folder)))  # fmt: skip
        connection.execute("UPDATE campaigns SET created = 1.7e9, finished = 1.7e9")
        # Recordings have none.
        connection.execute("UPDATE measurements SET n_samples = 99, samples = ?",
                           (pack_samples(range(99)),))  # fmt: skip
    untouched = replace(line, folder=tmp_path / "untouched")
    shutil.copytree(line.folder, untouched.folder)
    profile = faster_profile(line)
    asked = (
        ("status", "--json"),
        ("best", "--op", "allreduce", "--bytes", "1MiB", "--json"),
        ("show", profile),
        ("results", "mpich-allreduce", "--format", "csv"),
        ("report", "mpich-allreduce", "-o", "page.html"),
        ("verify", profile),
    )

    def answers(of: CommandLine) -> list[str]:
        said = [of(*command) for command in asked]
        page = (of.folder / "page.html").read_text()
        # It says when it was written, to the minute.
        return [*(one.out + one.err for one in said), re.sub(r"commtune [^<]* UTC", "", page)]

    before = answers(line)
    line.succeed("db", "prune", "--older-than", "9d", "--yes")
    assert line.database.stat().st_size < untouched.database.stat().st_size
    assert line.query("SELECT count(*) FROM measurements WHERE length(samples) = 0") > [(100,)]
    assert answers(line) == before

    for one in (line, untouched):
        more = BUDGET.replace("5s", "6s")
        one.write(recorded_campaign() + more)
        one.succeed("tune", "campaign.yaml", "--replay", str(RECORDING))
    made = "SELECT configuration_id, phase, block, position, wall_s FROM runs ORDER BY id"
    assert line.query(made) == untouched.query(made)
    found = "SELECT name, configuration_id, verdict, details FROM profiles ORDER BY id"
    assert line.query(found) == untouched.query(found)


def test_without_a_file_the_recorded_campaign_is_replayed(tmp_path: Path) -> None:
    line = CommandLine(tmp_path, {"COMMTUNE_MPI_PATH": "/nowhere"})
    said = line("tune", "--replay", str(RECORDING), "--seed", "2")
    assert (said.code, said.err.splitlines()[0]) == (
        2, "commtune: --seed and a recording can't be combined"
    )  # fmt: skip
    grid = load_grid(RECORDING)
    header = replace(grid.header, campaign=grid.header.campaign + BUDGET)
    (tmp_path / "short.gz").write_bytes(replace(grid, header=header).packed())
    line.succeed("tune", "--replay", "short.gz")
    assert line.query("SELECT name FROM campaigns") == [("mpich-allreduce-replayed",)]


def test_a_recording_that_does_not_fit_is_refused_before_anything_starts(tmp_path: Path) -> None:
    line = CommandLine(tmp_path)
    line.write("{campaign: 1, name: a, space: mpich-host-allreduce}")
    said = line("tune", "campaign.yaml", "--replay", str(RECORDING))
    assert said.code == 2
    assert "configurations, the recording 152" in said.err
    assert line("status").out.startswith("no campaigns yet")
    said = line("tune", "campaign.yaml", "--replay", "campaign.yaml")
    assert said.code == 2
    assert "campaign.yaml is not a recording that this version of commtune reads" in said.err


# Recording; with a real MPI


def test_a_recording_is_made_interrupted_continued_and_replayed(commtune: CommandLine) -> None:
    commtune.write(TINY)
    command = ("record", "campaign.yaml", "--runs", "2", "--out", "tiny.jsonl.gz")
    part = commtune.folder / "tiny.jsonl.gz.part"
    with commtune.start(*command) as child:
        assert child.stderr and any("4 runs of the default" in said for said in child.stderr)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, part.exists()) == (130, False)
    assert "interrupted; nothing is recorded yet" in err
    with commtune.start(*command) as child:
        wait_until(lambda: part.exists() and part.read_bytes().count(b"\n") > 8, child)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130, err
    assert "tiny.jsonl.gz.part keeps what was recorded" in err
    kept = part.read_text()
    assert not (commtune.folder / "tiny.jsonl.gz").exists()

    said = commtune.succeed(*command)
    assert not part.exists()
    text = gzip.decompress((commtune.folder / "tiny.jsonl.gz").read_bytes()).decode()
    assert text.startswith(kept)
    grid = load_grid(commtune.folder / "tiny.jsonl.gz")
    others = len(grid.configurations) - 1
    assert said.out == (
        f"wrote tiny.jsonl.gz: {_count_of_runs(others, 2)} runs of {others + 1} configurations\n"
    )
    assert [run.configuration for run in grid.runs] == list(
        _run_order(others, 2, grid.header.seed)
    )
    starts = [run.started_s for run in grid.runs]
    assert starts == sorted(starts)
    assert grid.header.seed == json.loads(kept.split("\n", 1)[0])["seed"] != 1
    assert grid.span_s < 3 * sum(run.wall_s for run in grid.runs)
    assert list(commtune.folder.glob("data/commtune/recordings/small/*")) == []

    commtune.succeed("tune", "campaign.yaml", "--replay", "tiny.jsonl.gz")
    said = commtune("tune", "campaign.yaml")
    assert said.code == 2
    assert "replayed: " in said.err
    assert "simulated: true -> false" in said.err


def test_a_real_campaign_is_not_continued_by_a_replay(commtune: CommandLine) -> None:
    commtune.write(TINY)
    commtune.succeed("record", "campaign.yaml", "--runs", "1", "--out", "t.gz")
    with commtune.start("tune", "campaign.yaml") as child:
        # The one before the last is a good run: without any, the campaign would begin anew.
        assert wait_until(lambda: len(commtune.records()) >= 2, child)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=PATIENCE_S)
    said = commtune("tune", "campaign.yaml", "--replay", "t.gz")
    assert said.code == 2
    assert "simulated: false -> true" in said.err

    commtune.write(TINY.replace("64KiB", "32KiB"))
    said = commtune("record", "campaign.yaml", "--runs", "4", "--out", "t.gz")
    assert said.code == 2
    assert "t.gz was started with another workload" in said.err


def test_a_space_too_large_is_refused_with_the_time_it_would_take(commtune: CommandLine) -> None:
    commtune.write(SMALL)
    said = commtune("record", "campaign.yaml", "--runs", "8", "--out", "a.gz", "--limit", "1min")
    assert said.code == 2
    assert "configurations would take about" in said.err
    assert "over the limit of 1 min 00 s" in said.err
    assert list(commtune.folder.glob("a.gz*")) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "a.json"], "recordings are compressed"),
        (["--out", "nowhere/a.gz"], "there is no folder nowhere"),
        (["--out", "loop.gz"], "the link leads to no file"),
        (["--out", "a.gz", "--runs", "0"], "at least one run"),
        (["--out", "a.gz", "--limit", "soon"], "--limit: 'soon'"),
    ],
)
def test_what_can_not_be_recorded_is_said(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    line = CommandLine(tmp_path)
    line.write(SMALL)
    (line.folder / "loop.gz").symlink_to("loop.gz")
    said = line("record", "campaign.yaml", *arguments)
    assert said.code == 2
    assert words in said.err
