"""Recorded grids: the files, what they say, and how they play back."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Protocol

import pytest
from recorded_grids import GRIDS, ONE, SIZES, TWO, small_grid, small_plan, written

from commtune.campaign.loading import parse_campaign
from commtune.campaign.plan import Plan
from commtune.errors import CampaignError, UserError
from commtune.model import (
    DEFAULT,
    Aggressor,
    AggressorPattern,
    Configuration,
    Operation,
    Outcome,
    RunRequest,
    RunResult,
    Timing,
    Workload,
)
from commtune.replay.benchmark import ReplayBenchmark, VirtualClock, check_plan
from commtune.replay.recording import Grid, Recorder, load_grid
from commtune.spaces.customizing import customize_space
from commtune.tuner.statistics.machine_states import MIXED

COMMITTED = (
    "mpich-allreduce",
    "openmpi-broadcast",
    "mpich-allreduce-default",
    "nccl-sockets",
    "nccl-sockets-dense",
    "mpich-allreduce-dense",
    "mpich-alltoall-dense",
    "openmpi-broadcast-dense",
    "intel-allgather-dense",
)


@pytest.fixture(scope="module")
def recording() -> Grid:
    return load_grid(GRIDS / "mpich-allreduce.jsonl.gz")


def request(grid: Grid, configuration: Configuration, number: int = 0) -> RunRequest:
    header = grid.header
    return RunRequest(
        f"run-{number}",
        configuration,
        header.workload,
        header.timing,
        block=number // 8,
        position=number % 8,
    )


def played(
    grid: Grid, configurations: Sequence[Configuration], seed: int = 1
) -> Iterator[RunResult]:
    benchmark = ReplayBenchmark(grid, seed)
    for number, configuration in enumerate(configurations):
        yield benchmark.measure(request(grid, configuration, number), 60.0)


# The file


def test_a_recording_comes_back_from_its_file(tmp_path: Path) -> None:
    grid = small_grid()
    digest = written(grid, tmp_path / "small.jsonl")
    again = load_grid(tmp_path / "small.jsonl")
    assert (again.header, again.configurations) == (grid.header, grid.configurations)
    assert again.digest == digest
    for run, kept in zip(grid.runs, again.runs, strict=True):
        times = [(a.median_s, b.median_s) for a, b in zip(run.sizes, kept.sizes, strict=True)]
        assert all(math.isclose(a, b, rel_tol=1e-3) for a, b in times)
        assert replace(kept, sizes=()) == replace(run, sizes=())


def test_what_was_read_is_written_the_same(tmp_path: Path) -> None:
    written(small_grid(), tmp_path / "small.jsonl")
    again = load_grid(tmp_path / "small.jsonl")
    assert "".join(again.lines()) == (tmp_path / "small.jsonl").read_text()


def test_packing_depends_on_nothing_else(tmp_path: Path) -> None:
    packed = small_grid().packed()
    (tmp_path / "a.gz").write_bytes(packed)
    assert load_grid(tmp_path / "a.gz").digest == hashlib.sha256(packed).hexdigest()
    assert load_grid(tmp_path / "a.gz").packed() == packed
    assert packed[4:8] == b"\0\0\0\0", "the time of packing is in it"


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-20],
        lambda packed: packed[:40] + b"\0\0\0\0" + packed[44:],
        lambda _: b"",
        lambda _: gzip.compress(b"{}\n"),
        lambda _: gzip.compress(b'{"format": "commtune-grid", "version": 99}\n{}\n'),
        lambda packed: gzip.compress(gzip.decompress(packed).replace(b'"c":2', b'"c":3')),
        lambda packed: gzip.compress(gzip.decompress(packed).replace(b'"m":[[', b'"m":[[-')),
        lambda packed: gzip.compress(gzip.decompress(packed).replace(b'"m":[[', b'"m":[[1e-21')),
        lambda packed: gzip.compress(gzip.decompress(packed).replace(b"crashed", b"fell-over")),
        lambda _: b"\xff\xfe",
    ],
    ids=["cut", "broken", "empty", "other", "newer", "index", "time", "tiny", "outcome", "binary"],
)
def test_a_damaged_recording_is_refused_by_name(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    packed = small_grid().packed()
    content = damage(packed)
    assert content != packed
    (tmp_path / "bad.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"bad\.gz"):
        load_grid(tmp_path / "bad.gz")


def test_a_recording_that_nests_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.gz").write_bytes(gzip.compress(b'{"a":' * 100_000 + b"\n"))
    with pytest.raises(UserError, match=r"deep\.gz is not a recording .*: nested too deeply"):
        load_grid(tmp_path / "deep.gz")


def test_a_missing_recording_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_grid(tmp_path / "nothing.gz")


def test_the_tape_goes_on_after_a_line_that_was_cut(tmp_path: Path) -> None:
    grid = small_grid()
    tape = Recorder(tmp_path / "small.jsonl.gz")
    tape.begin(replace(grid, runs=grid.runs[:5]))
    with tape.part.open("a") as file:
        file.write('{"c":0,"t":')
    known = tape.load()
    assert known is not None
    assert len(known.runs) == 5
    tape.begin(known)
    for run in grid.runs[5:]:
        tape.add(run)
    tape.finish()
    assert not tape.part.exists()
    assert load_grid(tape.out).runs == Grid.parse("".join(grid.lines())).runs


# The committed recordings


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_recordings_are_the_ones_that_were_recorded(name: str) -> None:
    listed = (GRIDS / "README.md").read_text()
    match = re.search(rf"\b([0-9a-f]{{64}})  {name}\.jsonl\.gz", listed)
    assert match is not None
    assert load_grid(GRIDS / f"{name}.jsonl.gz").digest == match[1]


def test_there_are_no_other_recordings() -> None:
    assert sorted(f.name for f in GRIDS.glob("*.gz")) == sorted(
        f"{name}.jsonl.gz" for name in COMMITTED
    )


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("mpich-allreduce", 8),
        ("openmpi-broadcast", 6),
        ("mpich-alltoall-dense", 8),
        ("openmpi-broadcast-dense", 7),
        ("intel-allgather-dense", 6),
    ],
)
def test_committed_grids_hold_their_campaigns_whole_space(name: str, rounds: int) -> None:
    grid = load_grid(GRIDS / f"{name}.jsonl.gz")
    spec = parse_campaign(grid.header.campaign, GRIDS)
    assert set(grid.index) == set(spec.plan.space.configurations())
    check_plan(grid, spec.plan)
    runs = Counter(run.configuration for run in grid.runs)
    assert runs.pop(0) > 2 * rounds
    assert set(runs.values()) == {rounds}


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_recordings_name_no_machine_and_no_folder(name: str) -> None:
    first = gzip.decompress((GRIDS / f"{name}.jsonl.gz").read_bytes()).split(b"\n", 1)[0]
    assert json.loads(first)["recording"] is True
    assert not re.search(rb'hostname|"/|/home|/root', first)


# What a recording says


def test_the_truth_is_the_median_of_good_runs() -> None:
    grid = small_grid()
    times = [r.sizes[1].median_s for r in grid.runs_of(TWO) if r.outcome is Outcome.OK]
    assert len(times) == 11
    assert grid.truth(TWO)[SIZES[1]] == median(times)
    assert set(grid.truth(ONE)) == set(SIZES)


# Playing back


def test_what_plays_is_what_was_recorded(recording: Grid) -> None:
    wanted = recording.configurations[7]
    known = {
        (run.wall_s, tuple(size.median_s for size in run.sizes))
        for run in recording.runs_of(wanted)
    }
    for result in played(recording, [wanted] * 20):
        assert (result.wall_s, tuple(m.median_s for m in result.measurements)) in known


def test_bandwidths_follow_from_times() -> None:
    (result,) = played(small_grid(), [ONE])
    for m in result.measurements:
        assert m.algbw == pytest.approx(m.bytes / m.median_s)
        assert m.busbw == pytest.approx(1.5 * m.algbw)
        assert m.min_s <= m.median_s <= m.p95_s


def times(results: Iterator[RunResult]) -> list[float]:
    return [m.median_s for result in results for m in result.measurements]


def test_the_same_seed_gives_the_same_runs(recording: Grid) -> None:
    asked = [DEFAULT, *recording.configurations[1:40]] * 3
    assert times(played(recording, asked, 5)) == times(played(recording, asked, 5))
    assert times(played(recording, asked, 5)) != times(played(recording, asked, 6))


def test_an_interrupted_campaign_goes_on_at_the_same_place(recording: Grid) -> None:
    """The recording's time is all that a later session needs to be told."""
    asked = recording.configurations[1:61]
    whole = list(played(recording, asked))
    clock = VirtualClock(math.fsum(result.wall_s for result in whole[:30]))
    later = ReplayBenchmark(recording, 1, clock)
    rest = [
        later.measure(request(recording, c, 30 + number), 60.0)
        for number, c in enumerate(asked[30:])
    ]
    assert [r.measurements for r in rest] == [r.measurements for r in whole[30:]]


def test_time_passes_only_in_runs_and_starts_again_at_the_end() -> None:
    grid = small_grid()
    benchmark = ReplayBenchmark(grid)
    starts = []
    for number in range(100):
        result = benchmark.measure(request(grid, DEFAULT, number), 60.0)
        starts.append(result.started_at)
    assert starts == [0.5 * number for number in range(100)]
    assert benchmark.clock() == 50.0 > 2 * grid.span_s


def test_runs_seldom_come_again_at_once(recording: Grid) -> None:
    """Only where the machine was like it was in one run of the configuration and in no other."""
    for configuration, allowed in ((DEFAULT, 0.0), (recording.configurations[3], 0.15)):
        results = list(played(recording, [configuration] * 200))
        repeated = sum(one.measurements == other.measurements for one, other in pairwise(results))
        assert repeated <= allowed * len(results)


def test_all_runs_of_a_configuration_come_at_times(recording: Grid) -> None:
    wanted = recording.configurations[3]
    seen = {result.measurements for result in played(recording, [wanted] * 800)}
    assert len(seen) == len(recording.runs_of(wanted))


class _Size(Protocol):
    @property
    def canary_s(self) -> float | None: ...
    @property
    def canary_after_s(self) -> float | None: ...


def sharing(grid: Grid, runs: Sequence[Sequence[_Size]], apart: int) -> float:
    """Share of sizes at which two runs, so many places apart, met the same machine state."""
    same = both = 0
    for one, other in zip(runs, runs[apart:], strict=False):
        for a, b in zip(one, other, strict=True):
            names = [grid.speeds.name(size.canary_s, size.canary_after_s) for size in (a, b)]
            if MIXED not in names:
                both += 1
                same += names[0] == names[1]
    return same / both


@pytest.mark.parametrize("name", ["mpich-allreduce", "mpich-allreduce-default"])
def test_neighbours_share_the_machines_speed_as_recorded(name: str) -> None:
    grid = load_grid(GRIDS / f"{name}.jsonl.gz")
    known = [run.sizes for run in grid.runs]
    others = grid.configurations[1:] or (DEFAULT,)
    asked = [others[i % len(others)] if i % 8 else DEFAULT for i in range(2000)]
    for seed in (1, 2):
        again = [result.measurements for result in played(grid, asked, seed)]
        for apart in (1, 4):
            recorded, replayed = sharing(grid, known, apart), sharing(grid, again, apart)
            # Configurations that were never recorded while it was slow can't share that.
            assert abs(recorded - replayed) < 0.08, (apart, seed)
        assert sharing(grid, again, 1) > sharing(grid, again, 400) + 0.02


def test_a_failed_run_is_played_with_its_outcome_and_reason() -> None:
    results = [r for r in played(small_grid(), [TWO] * 60) if r.outcome is not Outcome.OK]
    assert results
    assert {(r.outcome, r.detail, len(r.measurements)) for r in results} == {
        (Outcome.CRASHED, "exit status 134", 1)
    }


def test_other_load_comes_with_the_run_that_met_it() -> None:
    loads = {result.other_load for result in played(small_grid(), [DEFAULT] * 80)}
    assert loads == {None, 0.25}


def test_a_run_over_the_time_limit_ends_at_the_limit() -> None:
    grid = small_grid()
    benchmark = ReplayBenchmark(grid)
    result = benchmark.measure(request(grid, ONE), 0.3)
    assert (result.outcome, result.wall_s, result.measurements) == (Outcome.TIMED_OUT, 0.3, ())
    assert benchmark.clock() == 0.3


def test_fewer_sizes_may_be_asked_for() -> None:
    grid = small_grid()
    asked = replace(request(grid, ONE), workload=Workload(Operation.ALLREDUCE, SIZES[1:]))
    result = ReplayBenchmark(grid).measure(asked, 60.0)
    assert [m.bytes for m in result.measurements] == [SIZES[1]]


def test_a_replay_says_that_it_is_one() -> None:
    grid = small_grid()
    benchmark = ReplayBenchmark(grid)
    assert benchmark.simulated
    assert benchmark.replayed == "small"
    assert benchmark.recover(request(grid, ONE)) is None
    assert benchmark.trace(request(grid, ONE), 1.0) is None


def test_what_was_not_recorded_is_never_made_up() -> None:
    grid = small_grid()
    unknown = [
        replace(request(grid, ONE), configuration=Configuration({"A": "9"})),
        replace(request(grid, ONE), workload=Workload(Operation.BROADCAST, SIZES)),
        replace(request(grid, ONE), workload=Workload(Operation.ALLREDUCE, (8, 16))),
    ]
    for asked in unknown:
        with pytest.raises(CampaignError, match="the recording small holds no"):
            ReplayBenchmark(grid).measure(asked, 60.0)


# What is refused before anything starts


def test_a_campaign_that_fits_is_let_through() -> None:
    check_plan(small_grid(), small_plan())


ELSEWHERE = customize_space(small_plan().space, narrow={"A": ["1"]})
BIGGER = parse_campaign("{campaign: 1, name: a, space: mpich-host-allreduce}", Path()).plan.space


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (small_plan(workload=Workload(Operation.BROADCAST, SIZES)), "operation is allreduce"),
        (small_plan(workload=Workload(Operation.ALLREDUCE, (8, 16))), "lacks the sizes 16"),
        (small_plan(workload=Workload(Operation.ALLREDUCE, SIZES, 4)), "ranks is 2 there, not 4"),
        (small_plan(timing=Timing(max_samples=21)), "max_samples 20, .* not .* max_samples 21"),
        (small_plan(guards=(Operation.ALLTOALL,)), "lacks the guard operations alltoall"),
        (replace(small_plan(), space=BIGGER), "P was 1, not unpinned"),
        (
            replace(small_plan(), aggressor=Aggressor(AggressorPattern.INCAST, 2)),
            "made without an aggressor",
        ),
    ],
)
def test_a_campaign_that_asks_for_more_is_refused(plan: Plan, words: str) -> None:
    with pytest.raises(CampaignError, match=words) as refused:
        check_plan(small_grid(), plan)
    assert "commtune record" in refused.value.hint


def test_a_part_of_the_recorded_space_may_be_searched() -> None:
    check_plan(small_grid(), small_plan(space=ELSEWHERE))


def test_a_larger_space_is_refused_by_its_number() -> None:
    grid = replace(small_grid(), header=replace(small_grid().header, pinned={}))
    with pytest.raises(CampaignError, match=r"has [\d,]+ configurations, the recording 3"):
        check_plan(grid, small_plan(space=BIGGER))


def test_a_configuration_without_runs_is_lacking() -> None:
    grid = small_grid()
    kept = tuple(run for run in grid.runs if run.configuration != 2)
    unfinished = replace(grid, runs=kept)
    with pytest.raises(CampaignError, match="3 configurations, the recording 2"):
        check_plan(unfinished, small_plan())
    other = replace(grid, configurations=(DEFAULT, ONE, Configuration({"A": "3"})))
    with pytest.raises(CampaignError, match="lacks the configuration A=2"):
        check_plan(other, small_plan())
