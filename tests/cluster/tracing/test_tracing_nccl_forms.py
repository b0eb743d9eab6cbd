"""What NCCL and RCCL chose, in the forms that other releases than the recorded one print.

No logs of these releases: the lines follow the format strings of their sources at the tags named.
"""

from __future__ import annotations

import pytest
from nccl_traces import trace_log

from commtune.cluster.tracing.nccl import _NcclChoice, _NcclLog, _parse_log
from commtune.model import Configuration, Execution, Followed, Operation
from commtune.tuner.effective.settings import DID, Told, settings_of

#: Bare, by showVersion in src/init.cc up to 2.21.5; as information of a process from 2.22.3 on.
_HEADERS = {
    "2.19.4": "NCCL version 2.19.4+cuda12.2",
    "2.20.5": "NCCL version 2.20.5+cuda12.4",
    "2.21.5": "NCCL version 2.21.5+cuda12.4",
    "2.22.3": "n:1:1 [0] NCCL INFO NCCL version 2.22.3+cuda12.5",
    "2.23.4": "n:1:1 [0] NCCL INFO NCCL version 2.23.4+cuda12.6",
    "2.24.3": "n:1:1 [0] NCCL INFO NCCL version 2.24.3+cuda12.6",
    "2.30.7": "n:1:1 [0] NCCL INFO NCCL version 2.30.7+cuda13.0",
    "rocm-6.2.2": "RCCL version 2.20.5+hip6.2 HEAD:0123abc",
    # RCCL's develop in October 2024.
    "rccl-2.21.5": "RCCL version : 2.21.5-develop:0123abc",
    "none": "",
}


def call(function: str) -> str:
    """The line of a call (NCCL_COLL), the same from 2.12.7 to 2.30.7 as far as is read."""
    return (
        f"n:1:1 [0] NCCL INFO {function}: opCount 0 sendbuff 0x1 recvbuff 0x2 count 256 datatype 7"
        " op 0 root 0 comm 0x3 [nranks=2] stream 0x4"
    )


def unnamed(algorithm: int, protocol: int, size: int = 1024) -> str:
    """src/enqueue.cc of v2.20.3-1 to v2.22.3-1 and of RCCL rocm-6.2.0 to 6.2.2 and 2.21.5."""
    return f"n:1:1 [0] NCCL INFO {size} Bytes -> Algo {algorithm} proto {protocol} time 13.299999"


def numbered(function: str, algorithm: int, protocol: int) -> str:
    """src/enqueue.cc of v2.23.4-1."""
    return (
        f"n:1:1 [0] NCCL INFO {function}: 1024 Bytes -> Algo {algorithm} proto {protocol}"
        " time 9.000000"
    )


def named(function: str, algorithm: str, protocol: str) -> str:
    """src/enqueue.cc of v2.24.3-1 to v2.30.7-1."""
    return (
        f"n:1:1 [0] NCCL INFO {function}: 1024 Bytes -> Algo {algorithm} proto {protocol}"
        " channel{Lo..Hi}={0..3}"
    )


def text(tag: str, *lines: str, **read: str) -> str:
    values = [f"n:1:1 [0] NCCL INFO {k} set by environment to {v}" for k, v in read.items()]
    return "\n".join([_HEADERS[tag], *values, *lines])


def log(tag: str, *lines: str, **read: str) -> _NcclLog:
    return _parse_log(text(tag, *lines, **read))


def traced(tag: str, *lines: str, **configuration: str) -> Execution:
    found = text(tag, *lines, **configuration)
    return trace_log(Configuration(configuration), Operation.ALLREDUCE, found)


def test_a_header_of_each_form_is_read() -> None:
    said = {tag: log(tag).origin for tag in _HEADERS}
    assert said["2.21.5"] == ("NCCL", "2.21.5+cuda12.4")
    assert said["2.23.4"] == ("NCCL", "2.23.4+cuda12.6")
    assert said["rocm-6.2.2"] == ("RCCL", "2.20.5+hip6.2")
    assert said["rccl-2.21.5"] == ("RCCL", "2.21.5-develop:0123abc")
    assert said["none"] == ("", "")


_RING_LL = {
    "2.20.5": [call("AllReduce"), unnamed(1, 0)],
    "2.21.5": [call("AllReduce"), unnamed(1, 0)],
    "2.22.3": [call("AllReduce"), unnamed(1, 0)],
    "2.23.4": [numbered("AllReduce", 1, 0)],
    "2.24.3": [named("AllReduce", "RING", "LL")],
    "2.30.7": [named("AllReduce", "RING", "LL")],
}


@pytest.mark.parametrize("tag", _RING_LL)
@pytest.mark.parametrize(
    ("name", "value", "followed"),
    [
        ("NCCL_PROTO", "LL128", Followed.REPLACED),
        ("NCCL_PROTO", "LL,Simple", Followed.EXECUTED),
        ("NCCL_PROTO", "^LL", Followed.REPLACED),
        ("NCCL_PROTO", "^LL128", Followed.EXECUTED),
        ("NCCL_ALGO", "Tree", Followed.REPLACED),
        ("NCCL_ALGO", "Ring", Followed.EXECUTED),
        # With a function's name: not looked into.
        ("NCCL_ALGO", "allreduce:tree", Followed.UNKNOWN),
    ],
)
def test_what_ran_is_known_in_every_form(
    tag: str, name: str, value: str, followed: Followed
) -> None:
    found = traced(tag, *_RING_LL[tag], **{name: value})
    assert found.followed is followed
    if followed is Followed.REPLACED:
        held = settings_of(found)[name].held
        assert held == {"NCCL_PROTO": "LL", "NCCL_ALGO": "RING"}[name]


@pytest.mark.parametrize("tag", _HEADERS)
@pytest.mark.parametrize("setting", [{"NCCL_PROTO": "LL"}, {"NCCL_ALGO": "Ring"}])
def test_silence_is_never_executed(tag: str, setting: dict[str, str]) -> None:
    found = traced(tag, call("AllReduce"), **setting)
    (name,) = setting
    assert found.followed is Followed.UNKNOWN
    assert settings_of(found)[name].why == "the log does not tell what ran"


@pytest.mark.parametrize("tag", _HEADERS)
def test_what_other_lines_tell_stays(tag: str) -> None:
    assert traced(tag, NCCL_BUFFSIZE="4194304").followed is Followed.EXECUTED
    assert traced(tag, NCCL_BUFFSIZE="2097152").followed is Followed.EXECUTED
    found = text(tag, "n:1:1 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 4.")
    asked = Configuration({"NCCL_BUFFSIZE": "4M"})
    assert trace_log(asked, Operation.ALLREDUCE, found).followed is Followed.REPLACED


def test_numbers_mean_what_the_release_says() -> None:
    # src/include/nccl_common.h of v2.20.3-1 to v2.23.4-1.
    words = ["TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"]
    for number, word in enumerate(words):
        (new,) = log("2.23.4", numbered("AllGather", number, 2)).choices
        assert (new.algorithm, new.protocol) == (word, "SIMPLE")
        (old,) = log("2.21.5", call("AllGather"), unnamed(number, 1)).choices
        assert (old.algorithm, old.protocol) == (str(number) if word == "PAT" else word, "LL128")
        (unsaid,) = log("none", numbered("AllGather", number, 0)).choices
        assert unsaid.algorithm == (str(number) if word == "PAT" else word)


@pytest.mark.parametrize("tag", ["2.19.4", "2.24.3"])
def test_numbers_of_releases_that_print_none_are_not_known(tag: str) -> None:
    found = traced(tag, numbered("AllReduce", 1, 0), NCCL_PROTO="LL")
    assert found.followed is Followed.UNKNOWN
    assert f"{DID}AllReduce 1024 bytes: algorithm 1 protocol 0" in found.said


@pytest.mark.parametrize("number", [-1, 6, 9])
def test_a_number_without_a_meaning_proves_nothing(number: int) -> None:
    lines = call("AllReduce"), unnamed(number, 2)
    assert traced("2.22.3", *lines, NCCL_ALGO="Ring").followed is Followed.UNKNOWN
    assert traced("2.22.3", *lines, NCCL_PROTO="Simple").followed is Followed.EXECUTED
    # What is known to have run is told all the same.
    more = *lines, call("AllReduce"), unnamed(1, 2)
    assert traced("2.22.3", *more, NCCL_ALGO="Tree").followed is Followed.REPLACED


def test_a_choice_without_a_name_is_of_the_calls_before_it() -> None:
    found = log(
        "2.21.5",
        call("Broadcast"),
        unnamed(1, 0),
        call("AllReduce"),
        unnamed(0, 1, 2048),
        # Two calls of a group: a choice for both, or for one each.
        call("AllReduce"),
        call("AllReduce"),
        unnamed(0, 2, 4096),
        unnamed(0, 2, 8192),
    )
    assert found.choices == (
        _NcclChoice("Broadcast", 1024, "RING", "LL"),
        _NcclChoice("AllReduce", 2048, "TREE", "LL128"),
        _NcclChoice("AllReduce", 4096, "TREE", "SIMPLE"),
        _NcclChoice("AllReduce", 8192, "TREE", "SIMPLE"),
    )
    # Sends and receives have no choices.
    (beside,) = log("2.21.5", call("Send"), call("AllReduce"), unnamed(1, 0)).choices
    assert beside.function == "AllReduce"
    assert traced("2.21.5", call("Broadcast"), unnamed(1, 0), NCCL_PROTO="LL128").followed is (
        Followed.UNKNOWN
    )


@pytest.mark.parametrize(
    "before",
    [
        [],
        [call("AllReduce"), call("Broadcast")],
        [call("AllReduce").replace("n:1:1", "n:1:2")],
    ],
)
def test_a_choice_of_an_unknown_call_proves_nothing(before: list[str]) -> None:
    for protocol in ("LL", "LL128"):
        found = traced("2.21.5", *before, unnamed(1, 0), NCCL_PROTO=protocol)
        assert found.followed is Followed.UNKNOWN
        assert f"{DID}1024 bytes: RING LL" in found.said


@pytest.mark.parametrize("tag", ["rocm-6.2.2", "rccl-2.21.5", "none"])
def test_rccl_may_take_another_algorithm_for_an_allreduce_after_its_line(tag: str) -> None:
    lines = call("AllReduce"), unnamed(1, 2)
    for algorithm in ("Ring", "Tree"):
        assert traced(tag, *lines, NCCL_ALGO=algorithm).followed is Followed.UNKNOWN
    assert traced(tag, *lines, NCCL_PROTO="Simple").followed is Followed.EXECUTED
    assert traced(tag, *lines, NCCL_PROTO="LL").followed is Followed.REPLACED
    gathered = text(tag, call("AllGather"), unnamed(1, 2), NCCL_ALGO="Ring")
    asked = Configuration({"NCCL_ALGO": "Ring"})
    assert trace_log(asked, Operation.ALLGATHER, gathered).followed is Followed.EXECUTED


@pytest.mark.parametrize(
    "line",
    [
        # src/scheduler/symmetric_sched.cc of v2.28.3-1; src/enqueue.cc of v2.29.7-1.
        "AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R nchannels 4 nthreads 512"
        " nWorks 1",
        "AllReduce [Copy Engine]: 1024 Bytes -> cudaMemcpyAsync",
        # No release's.
        "AllReduce: 1024 Bytes -> something new",
    ],
)
def test_a_call_that_something_else_did_is_in_doubt(line: str) -> None:
    lines = f"n:1:1 [0] NCCL INFO {line}", named("AllReduce", "RING", "LL")
    assert traced("2.30.7", *lines, NCCL_ALGO="Ring").followed is Followed.UNKNOWN
    assert traced("2.30.7", *lines, NCCL_ALGO="Tree").followed is Followed.REPLACED
    said = traced("2.30.7", *lines, NCCL_ALGO="Ring").said
    assert f"{DID}AllReduce 1024 bytes: {line.partition(' -> ')[2]}" in said


def test_words_after_the_channels_do_no_harm() -> None:
    # In sources after v2.30.7-1.
    found = log("2.30.7", named("AllReduce", "RING", "LL") + " cgaClusterSize 4")
    assert found.choices == (_NcclChoice("AllReduce", 1024, "RING", "LL", 4),)
    unknown = traced("2.24.3", named("AllReduce", "Unknown", "LL"), NCCL_ALGO="Ring")
    assert unknown.followed is Followed.UNKNOWN


@pytest.mark.parametrize(
    ("line", "way"),
    [
        # src/transport/*.cc of v2.12.12-1.
        ("Channel 00 : 0[1000] -> 1[2000] via direct shared memory", "direct shared memory"),
        ("Channel 00 : 0[1000] -> 1[2000] via P2P/direct pointer", "P2P/direct pointer"),
        ("Channel 00/0 : 0[1000] -> 1[2000] [send] via NET/IB/0(2)/GDRDMA", "NET/IB(2)/GDRDMA"),
        # The same of RCCL rocm-6.2.2.
        ("Channel 00/0 : 0[1000] -> 1[2000] via P2P/IPC comm 0x1 nRanks 02", "P2P/IPC"),
        ("Channel 00 : 0[1000] -> 1[2000] via SHM/direct/CE comm 0x1 nRanks 02", "SHM/direct/CE"),
        (
            "Channel 00/0 : 0[1000] -> 1[2000] [receive] via NET/Socket/0 comm 0x1 nRanks 02",
            "NET/Socket",
        ),
    ],
)
def test_ways_between_ranks_in_other_forms(line: str, way: str) -> None:
    assert _parse_log(f"n:1:1 [0] NCCL INFO {line}").transports == (way,)


@pytest.mark.parametrize(
    ("name", "line", "told"),
    [
        # src/graph/connect.cc of v2.12.7-1 to v2.26.2-1: a warning, information later.
        (
            "NCCL_MIN_NCHANNELS",
            "graph/connect.cc:331 NCCL WARN User asked for a minimum of 1000 channels, limiting"
            " to 32",
            Told.REPLACED,
        ),
        # src/graph/tuning.cc of v2.21.5-1.
        (
            "NCCL_NTHREADS",
            "graph/tuning.cc:22 NCCL WARN Invalid NCCL_NTHREADS 1000 (must be a multiple of 32)",
            Told.UNUSED,
        ),
        # src/graph/connect.cc of RCCL 2.21.5.
        (
            "NCCL_MIN_NCHANNELS",
            "graph/connect.cc:684 NCCL WARN NCCL_MIN_NCHANNELS set by environment is ignored due"
            " to less than 8 GPUs.",
            Told.UNUSED,
        ),
        # With the function's name, by src/debug.cc of v2.30.7-1.
        (
            "NCCL_NTHREADS",
            "graph/tuning.cc:22 (getNthreads) NCCL WARN Invalid NCCL_NTHREADS 1000 (maximum 640).",
            Told.UNUSED,
        ),
    ],
)
def test_what_was_not_taken_is_told_by_warnings_too(name: str, line: str, told: Told) -> None:
    found = traced("none", f"n:1:1 [0] {line}", **{name: "1000"})
    assert settings_of(found)[name].told is told
