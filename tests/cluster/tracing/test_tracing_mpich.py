"""What MPICH makes of settings, in real runs and in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tracing_runs import Bench, traced_on

from commtune.cluster.tracing.library import TraceEvidence
from commtune.cluster.tracing.mpich import MPICH
from commtune.model import DEFAULT, Configuration, Followed, Operation
from commtune.tuner.effective.settings import (
    Told,
    effective_configuration,
    find_at_default,
    group_executions,
    settings_of,
)

_ALGORITHM = "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"
_DEVICE = "MPIR_CVAR_DEVICE_COLLECTIVES"
_BUFFER = "MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE"
_POSIX = "MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Traces on the MPICH wheel."""
    return traced_on("mpich", tmp_path)


def test_a_setting_that_is_taken(bench: Bench) -> None:
    default, ring = bench({}, {_DEVICE: "none", _ALGORITHM: "ring"}, sizes=(8, 4096))
    assert ring.followed is Followed.EXECUTED
    settings = settings_of(ring)
    assert settings[_ALGORITHM].held != settings_of(default)[_ALGORITHM].held
    assert set(ring.fingerprints) == {8, 4096}
    assert all(ring.fingerprints[size] != default.fingerprints[size] for size in (8, 4096))
    assert [e.became for e in group_executions([default, ring])] == [None, None]


@pytest.mark.slow
def test_what_the_library_holds_anyway_is_the_default(bench: Bench) -> None:
    cells = "MPIR_CVAR_BCAST_INTRANODE_NUM_CELLS"
    own = settings_of(bench({}, {cells: "8"})[0])[cells].held
    assert own is not None
    default, spelled_out, other = bench({}, {cells: own}, {cells: "8"})
    assert group_executions([default, spelled_out])[1].became == DEFAULT.key
    assert find_at_default(spelled_out, default) == {cells}
    assert own != "8"
    assert find_at_default(other, default) == frozenset()


@pytest.mark.slow
def test_a_misspelled_name_is_the_default(bench: Bench) -> None:
    default, wrong = bench({}, {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORYTHM": "ring"})
    assert wrong.followed is Followed.IGNORED
    assert wrong.why == (
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORYTHM is ignored: the library has no such variable"
    )
    assert wrong.fingerprints == default.fingerprints
    assert group_executions([wrong, default])[0].became == DEFAULT.key


@pytest.mark.slow
def test_a_second_name_of_a_variable_is_not_accused(bench: Bench) -> None:
    _, alias = bench({}, {"MPIR_CVAR_EVEN_ODD_CLIQUES": "1"})
    assert alias.followed is Followed.UNKNOWN
    _, other = bench({}, {"MPICH_ALLREDUCE_INTRA_ALGORITHM": "ring"})
    assert other.followed is Followed.EXECUTED


@pytest.mark.slow
def test_other_libraries_variables_can_not_be_told_of(bench: Bench) -> None:
    _, execution = bench({}, {"OMPI_MCA_pml": "ob1", "UCX_TLS": "sm", "MALLOC_ARENA_MAX": "1"})
    assert execution.followed is Followed.UNKNOWN
    assert {s.told for s in settings_of(execution).values()} == {Told.UNKNOWN}
    assert execution.became is None


@pytest.mark.slow
def test_the_default_value_in_words_of_its_own_is_the_default(bench: Bench) -> None:
    executions = bench({}, {_BUFFER: "32768"})
    assert group_executions(executions)[1].became == DEFAULT.key
    assert executions[1].followed is Followed.EXECUTED


def test_an_algorithm_that_can_not_be_used_is_not_credited(bench: Bench) -> None:
    configuration = {_POSIX: "release_gather", _BUFFER: "999999999"}
    default, execution = bench({}, configuration)
    assert execution.followed is Followed.REPLACED
    assert execution.why == (
        f"{_POSIX}=release_gather has no effect: MPICH says that it can't be used here; "
        "it chose itself"
    )
    assert effective_configuration(execution) == Configuration({_BUFFER: "999999999"})
    assert execution.fingerprints == default.fingerprints


def test_an_algorithm_that_can_not_be_used_at_some_sizes_is_said_and_credited(
    bench: Bench,
) -> None:
    # With one element and three ranks there is nothing to scatter.
    configuration = {_DEVICE: "none", _ALGORITHM: "reduce_scatter_allgather"}
    (execution,) = bench(configuration, sizes=(4, 4096))
    assert execution.followed is Followed.EXECUTED
    assert f"note: {_ALGORITHM} could not be used at 4" in " ".join(execution.said)


def test_a_setting_that_ends_the_run_gives_no_trace(bench: Bench) -> None:
    assert bench.one({_ALGORITHM: "rong"}) is None


def test_two_ranks_give_no_fingerprints(bench: Bench) -> None:
    (execution,) = bench({}, ranks=2)
    assert dict(execution.fingerprints) == {}


@pytest.mark.slow
def test_variables_that_a_space_searches_are_left_to_it(bench: Bench) -> None:
    name = "MPIR_CVAR_COLLECTIVE_FALLBACK"
    silent = bench.one({name: "silent"})
    assert silent is not None
    (default,) = bench({})
    held = settings_of(silent)[name].held
    assert held is not None
    searched = bench.one({}, watched=[name])
    assert searched is not None
    assert settings_of(searched)[name].held == held  # its default is silent, and not our print
    assert name not in settings_of(default)


def _evidence(
    output: Sequence[str], configuration: dict[str, str], **operations: int
) -> TraceEvidence:
    return TraceEvidence(
        Configuration(configuration),
        Operation.ALLREDUCE,
        tuple(configuration),
        output="\n".join(output),
        operations={int(size[1:]): count for size, count in operations.items()},
    )


_COMPLAINT = "User set collective algorithm is not usable for the provided arguments"
_RING = f"{_COMPLAINT}\nAllreduce ring cannot be applied."


@pytest.mark.parametrize(
    ("output", "unused"),
    [
        (["commtune-bench: size 8", _RING, "commtune-bench: size 64", _RING], True),
        (["commtune-bench: size 8", _RING, "commtune-bench: size 64"], False),
        (["commtune-bench: size 8", "commtune-bench: size 64", _RING, _RING], False),
        ([_RING, _RING, "commtune-bench: size 8", "commtune-bench: size 64"], False),
        ([_RING, _RING], False),
        # Of another collective that allreduce calls, of another algorithm, and cut short.
        ([f"commtune-bench: size {s}\n{_RING.replace('All', '')}" for s in (8, 64)], False),
        ([f"commtune-bench: size {s}\n{_RING.replace('ring', 'tree')}" for s in (8, 64)], False),
        ([f"commtune-bench: size {s}\n{_COMPLAINT}" for s in (8, 64)], False),
    ],
)
def test_complaints_count_only_where_every_call_of_every_size_fell_back(
    output: list[str], unused: bool
) -> None:
    verdict = MPICH.listen(_evidence(output, {_ALGORITHM: "ring"}, _8=1, _64=1))
    assert bool(verdict.unused) is unused


def test_fewer_complaints_than_calls_are_no_verdict() -> None:
    output = ["commtune-bench: size 8", *[_RING] * 127]
    assert MPICH.listen(_evidence(output, {_ALGORITHM: "ring"}, _8=128)).unused == {}
    assert MPICH.listen(_evidence([*output, _RING], {_ALGORITHM: "ring"}, _8=128)).unused != {}


def test_compositions_go_by_greek_letters() -> None:
    output = [
        "commtune-bench: size 8",
        _COMPLAINT,
        "Allreduce composition beta cannot be applied.",
    ]
    name = "MPIR_CVAR_ALLREDUCE_COMPOSITION"
    assert MPICH.listen(_evidence(output, {name: "2"}, _8=1)).unused.keys() == {name}
    assert MPICH.listen(_evidence(output, {name: "1"}, _8=1)).unused == {}


def test_without_the_library_to_look_into_nobody_is_accused(tmp_path: Path) -> None:
    name = "MPIR_CVAR_NOPE"
    assert not MPICH.is_missing(name, _evidence([], {name: "1"}))
    library = tmp_path / "libmpi.so.12"
    evidence = TraceEvidence(DEFAULT, Operation.ALLREDUCE, (name,), files=(library,))
    assert not MPICH.is_missing(name, evidence)  # can't be read
    library.write_bytes(b"\0MPIR_CVAR_NOPE_NOT\0")
    assert MPICH.is_missing(name, evidence)
    library.write_bytes(b"\0MPIR_CVAR_NOPE\0")
    assert not MPICH.is_missing(name, evidence)
