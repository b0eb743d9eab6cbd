"""NCCL's logs, as two H200 GPUs gave them (see nccl_logs/README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from nccl_traces import trace_log

from commtune.cluster.tracing.library import TraceEvidence, TraceVerdict, judge_settings
from commtune.cluster.tracing.mpich import MPICH
from commtune.cluster.tracing.nccl import (
    _DIAGNOSING,
    NCCL,
    _NcclChoice,
    _NcclLog,
    _parse_log,
    choices_by_size,
    lines_taken,
)
from commtune.cluster.tracing.tracer import _library_of
from commtune.model import (
    DEFAULT,
    Backend,
    Configuration,
    Execution,
    Followed,
    MpiFlavour,
    Operation,
)
from commtune.tuner.effective.settings import DID, Told, group_executions, settings_of

_LOGS = Path(__file__).parent / "nccl_logs"


def text(name: str) -> str:
    return (_LOGS / f"{name}.txt").read_text()


def log(name: str) -> _NcclLog:
    return _parse_log(text(name))


def traced(name: str, **configuration: str) -> Execution:
    return trace_log(Configuration(configuration), Operation.ALLREDUCE, text(name))


def test_the_default_is_read_whole() -> None:
    found = log("default")
    assert found.origin[1] == "2.28.9+cuda13.0"
    assert found.read == {"NCCL_NVLS_ENABLE": "0"}
    assert found.channels == 24
    assert found.transports == ("P2P/CUMEM",)
    assert found.choices[0] == _NcclChoice("AllReduce", 1024, "RING", "LL", 1)
    assert found.choices[7] == _NcclChoice("AllReduce", 2**28, "RING", "SIMPLE", 24)
    assert [c.function for c in found.choices] == ["AllReduce"] * 8 + [
        "ReduceScatter",
        "Broadcast",
    ]
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("name", "algorithms", "protocols"),
    [
        ("ring", {"RING"}, {"LL", "SIMPLE"}),
        ("tree", {"TREE"}, {"LL", "SIMPLE"}),
        ("ll", {"RING"}, {"LL"}),
        ("ll128", {"TREE", "RING"}, {"LL128"}),
    ],
)
def test_what_was_forced_is_what_ran(name: str, algorithms: set[str], protocols: set[str]) -> None:
    mine = [c for c in log(name).choices if c.function == "AllReduce"]
    assert len(mine) == 8
    assert {c.algorithm for c in mine} == algorithms
    assert {c.protocol for c in mine} == protocols


@pytest.mark.parametrize(
    ("name", "configuration", "followed"),
    [
        ("ring", {"NCCL_ALGO": "Ring"}, Followed.EXECUTED),
        ("ll", {"NCCL_PROTO": "LL"}, Followed.EXECUTED),
        ("ll128", {"NCCL_PROTO": "LL128"}, Followed.EXECUTED),
        ("channels", {"NCCL_MAX_NCHANNELS": "2"}, Followed.EXECUTED),
        ("no-p2p", {"NCCL_P2P_DISABLE": "1"}, Followed.EXECUTED),
        ("two-nodes", {"NCCL_SOCKET_NTHREADS": "2"}, Followed.EXECUTED),
        # Read only when needed, or never logged: silence is no proof.
        ("misspelled-name", {"NCCL_ALG0": "Ring"}, Followed.UNKNOWN),
        ("not-a-number", {"NCCL_P2P_DISABLE": "yes"}, Followed.UNKNOWN),
        ("not-a-number", {"NCCL_BUFFSIZE": "4M"}, Followed.REPLACED),
        ("threads-out-of-range", {"NCCL_NTHREADS": "100"}, Followed.IGNORED),
        ("threads-out-of-range", {"NCCL_MIN_NCHANNELS": "1000"}, Followed.REPLACED),
        # A log that says otherwise than asked, as a replaced algorithm would.
        ("ring", {"NCCL_ALGO": "Tree"}, Followed.REPLACED),
        ("ll128", {"NCCL_PROTO": "LL,Simple"}, Followed.REPLACED),
        # Lists with ^ are not looked into.
        ("ll", {"NCCL_PROTO": "^LL128"}, Followed.UNKNOWN),
    ],
)
def test_verdicts(name: str, configuration: dict[str, str], followed: Followed) -> None:
    assert traced(name, **configuration).followed is followed


def test_why_in_words() -> None:
    assert traced("not-a-number", NCCL_BUFFSIZE="4M").why == (
        "NCCL_BUFFSIZE=4M: the library holds 4 (NCCL reads no suffixes)"
    )
    assert "must be a multiple of 32" in traced("threads-out-of-range", NCCL_NTHREADS="100").why
    assert traced("threads-out-of-range", NCCL_MIN_NCHANNELS="1000").why == (
        "NCCL_MIN_NCHANNELS=1000: the library holds 64 (NCCL's limit)"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("collnet", "no algorithm/protocol available for function AllReduce"),
        ("misspelled-value", 'Unrecognized element token "Rong"'),
        ("tree", "no algorithm/protocol available for function ReduceScatter"),
    ],
)
def test_what_ended_a_run_is_kept(name: str, words: str) -> None:
    found = log(name)
    assert len(found.warnings) == 1
    assert words in found.warnings[0]


def test_ways_between_ranks() -> None:
    assert log("no-p2p").transports == ("SHM/direct/direct",)
    assert log("two-nodes").transports == ("NET/Socket",)


def test_executions_tell_what_ran() -> None:
    did = [line for line in traced("channels", NCCL_MAX_NCHANNELS="2").said if DID in line]
    assert f"{DID}AllReduce 1024 bytes: RING LL, 1 channels" in did
    assert f"{DID}transport P2P/CUMEM" in did
    assert did[-1] == f"{DID}2 channels set up"


def test_which_rules_the_tuner_plugin_took_and_what_ran() -> None:
    ran = traced("tuner")
    assert choices_by_size(ran, ranks=2) == {1024: "TREE SIMPLE", 2048: "RING LL"}
    assert lines_taken(ran) == {2, 3}
    assert f"{DID}tuner: plugin commtune (v5)" in ran.said
    assert not lines_taken(traced("ring"))


@pytest.mark.parametrize(
    ("operation", "small", "lines"),
    [
        (Operation.ALLREDUCE, "TREE LL", {2, 3}),
        (Operation.ALLGATHER, "RING LL", {4, 5}),
        (Operation.REDUCE_SCATTER, "RING LL", {6, 7}),
    ],
)
def test_sizes_are_those_of_all_ranks_together(
    operation: Operation, small: str, lines: set[int]
) -> None:
    """A file of rules for three operations: each takes its own."""
    ran = trace_log(DEFAULT, operation, text(f"rules/several-{operation}"))
    large = "RING SIMPLE"
    sizes = {1024: small, 2048: small, 2056: large, 4096: large, 2**20: large}
    assert choices_by_size(ran, ranks=2) == sizes
    assert lines_taken(ran) == lines


def test_a_configuration_that_chose_as_the_default_is_kept_apart_where_doubt_is() -> None:
    default = trace_log(DEFAULT, Operation.ALLREDUCE, text("default"))
    misspelled = traced("misspelled-name", NCCL_ALG0="Ring")
    assert settings_of(misspelled)["NCCL_ALG0"].told is Told.UNKNOWN
    assert [e.became for e in group_executions([default, misspelled])] == [None, None]


def listened(name: str, operation: Operation, **configuration: str) -> TraceVerdict:
    asked = Configuration(configuration)
    output = (_LOGS / f"{name}.txt").read_text()
    names = ("NCCL_BUFFSIZE", *configuration)
    return NCCL.listen(TraceEvidence(asked, operation, names, output=output))


def test_a_run_of_ours_is_judged_by_the_same_words() -> None:
    said = listened("ring", Operation.ALLREDUCE, NCCL_ALGO="Tree")
    assert said.settings["NCCL_ALGO"].told is Told.REPLACED
    assert said.settings["NCCL_BUFFSIZE"].told is Told.UNKNOWN
    assert "AllReduce 1024 bytes: RING LL, 1 channels" in said.did
    assert _library_of(MpiFlavour.MPICH, Backend.XCCL) is NCCL
    assert _library_of(MpiFlavour.MPICH, Backend.MPI_DEVICE) is MPICH


def test_sends_and_receives_have_channels_for_each_peer() -> None:
    for operation in (Operation.PING_PONG, Operation.ALLTOALL):
        assert listened("two-nodes", operation).did[-2:] == (
            "transport NET/Socket",
            "2 channels for each peer set up",
        )
    assert log("default").channels_per_peer == 32


def test_a_rank_that_saw_something_else_is_told() -> None:
    evidence = TraceEvidence(
        Configuration({"NCCL_ALGO": "Ring"}),
        Operation.ALLREDUCE,
        ("NCCL_ALGO",),
        seen=({"NCCL_ALGO": "Ring"}, {}),
        output=text("ring"),
    )
    settings, _ = judge_settings(NCCL, evidence)
    assert settings[0].told is Told.REPLACED
    assert "rank 1 saw nothing" in settings[0].why


def test_noise_is_passed_over() -> None:
    assert _parse_log("") == _NcclLog()
    assert _parse_log("Hello\nNCCL INFO\n: [0] NCCL INFO x\n\x00\xff\n") == _NcclLog()
    assert _parse_log("h:1:2 [0] NCCL INFO AllReduce: 12 Bytes") == _NcclLog()


def test_the_environment_that_makes_it_talk() -> None:
    assert _DIAGNOSING["NCCL_DEBUG"] == "INFO"
    assert "TUNING" in _DIAGNOSING["NCCL_DEBUG_SUBSYS"].split(",")
