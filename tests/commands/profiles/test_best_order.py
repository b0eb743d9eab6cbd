"""Of several answers ``commtune best`` gives the surest first, and says what each is of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import database_values as given
import pytest

from commtune.commands.profiles import best
from commtune.db.records import StackRecord
from commtune.db.storage.store import Store
from commtune.errors import NoAnswer
from commtune.model import (
    DEFAULT,
    Backend,
    Conditions,
    Interval,
    Operation,
    OwnBenchmark,
    PointEvidence,
    Profile,
    Timing,
    Verdict,
    Workload,
)

SIZE = 65536
GAIN, NONE, OPEN = Verdict.FASTER, Verdict.DEFAULT, Verdict.UNDECIDED
#: Lower and upper ends of gains that were shown, ruled out, and neither.
ENDS = {GAIN: (1.64, 1.9), NONE: (0.99, 1.01), OPEN: (0.9, 1.5)}


def profile(
    name: str,
    verdict: Verdict,
    *,
    at: int = SIZE,
    ends: tuple[float, float] | None = None,
    of_point: Verdict | None = None,
    **changes: Any,
) -> Profile:
    low, high = ends or ENDS[of_point or verdict]
    gain = Interval((low * high) ** 0.5, low, high, 20)
    point = PointEvidence("allreduce", at, "all", 2e-5, 1e-5, gain, of_point or verdict)
    known = {"points": (point,), "guards": (), "note": "", "bytes_low": 8, **changes}
    return given.profile(
        name,
        verdict=verdict,
        configuration=given.TUNED if verdict is GAIN else DEFAULT,
        **known,
    )


def stored(store: Store, name: str, *profiles: Profile, space: str = "mpich-shm",
           workload: Workload | None = None, timing: Timing | None = None,
           **changes: Any) -> None:  # fmt: skip
    """A campaign, newer than those before it."""
    first = profiles[0]
    asked = workload or Workload(
        Operation(first.operation), (8, SIZE), ranks=first.ranks, backend=first.backend
    )
    what = {"workload": asked.plain(), **({"timing": timing.plain()} if timing else {})}
    record = given.campaign(name, what=what, space={"version": 1, "name": space}, **changes)
    store.save_profiles(store.open_campaign(record).id, profiles)


def asked(
    url: str, capsys: pytest.CaptureFixture[str], op: str = "allreduce", **named: Any
) -> list[str]:
    best.best_command(op, "64KiB", **named, db=url)
    return capsys.readouterr().out.splitlines()


def names(url: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Campaigns and profiles in the order of the answers."""
    best.best_command("allreduce", "64KiB", db=url, json_output=True)
    return [f"{row['campaign']}/{row['name']}" for row in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize("shown", [GAIN, NONE])
def test_what_is_decided_goes_before_a_newer_and_narrower_doubt(
    store: Store, url: str, capsys: pytest.CaptureFixture[str], shown: Verdict
) -> None:
    stored(store, "proven", profile("wide", shown))
    stored(store, "tiny", profile("narrow", OPEN, bytes_low=SIZE, bytes_high=SIZE))
    said = asked(url, capsys)
    heading = "proven/wide" if shown is GAIN else "keep the default"
    assert said[0] == f"allreduce of 64 KiB, 2 ranks: {heading}"
    assert said[-2:] == [
        "also measured:",
        "  tiny/narrow: keep the default, inconclusive at 64 KiB; 2 ranks, on laptop, MPICH "
        "4.3.0, backend mpi-host, space mpich-shm",
    ]


def test_what_is_decided_at_the_size_counts_not_what_is_elsewhere_in_the_range(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ruled_out = profile("a", OPEN, of_point=NONE)
    harmless = profile("b", GAIN, of_point=OPEN, bytes_low=SIZE, bytes_high=SIZE)
    stored(store, "one", ruled_out)
    stored(store, "other", harmless)
    assert names(url, capsys) == ["one/a", "other/b"]
    assert ": inconclusive at 64 KiB; " in asked(url, capsys)[-1]


def test_many_newer_doubts_hide_no_gain(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "proven", profile("p", GAIN))
    for number in range(12):
        stored(store, f"tiny-{number}", profile("p", OPEN))
    said = asked(url, capsys)
    assert said[0].endswith(": proven/p")
    assert said[-1] == ("  and 7 more: --campaign, --backend, --ranks, --nodes or --system picks")


def test_of_one_question_a_gain_goes_before_what_other_candidates_lack(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "gains", profile("p", GAIN))
    stored(store, "other-candidates", profile("p", NONE))
    assert names(url, capsys) == ["gains/p", "other-candidates/p"]


def test_of_gains_the_surest_and_of_a_campaign_the_narrowest_goes_first(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = profile("all-sizes", GAIN, ends=(1.3, 1.4))
    narrow = profile("range", GAIN, ends=(1.2, 1.6), bytes_low=SIZE)
    stored(store, "surest", wide, narrow)
    stored(store, "later", profile("range", GAIN, ends=(1.1, 1.9), bytes_low=SIZE))
    assert names(url, capsys) == ["surest/range", "surest/all-sizes", "later/range"]
    assert ": speedup 1.30x to 1.40x (1.35x, 20 pairs) at 64 KiB; " in asked(url, capsys)[-2]


def test_what_was_measured_at_the_size_itself_goes_before_what_was_not(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "at", profile("p", GAIN, ends=(1.1, 1.2)))
    stored(store, "near", profile("p", GAIN, at=2 * SIZE))
    assert names(url, capsys) == ["at/p", "near/p"]


def test_gains_over_other_software_or_ranks_are_not_held_against_each_other(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "large", profile("p", GAIN, ends=(8, 9)))
    stored(store, "ranks", profile("p", GAIN, ranks=4))
    newer = StackRecord("stack-2", "MPICH 5.0.2")
    stored(store, "stack", profile("p", NONE), stack=newer)
    stored(store, "undecided", profile("p", OPEN), stack=newer)
    assert names(url, capsys) == ["stack/p", "ranks/p", "large/p", "undecided/p"]


def own_command(*words: str) -> Workload:
    own = OwnBenchmark(command=words, output="nccl-tests", folder="/home/ann")
    return Workload(Operation.ALLREDUCE, (SIZE,), backend=Backend.COMMAND, own=own)


def test_the_native_benchmark_goes_before_python_and_before_commands(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "native", profile("p", OPEN))
    stored(store, "python", profile("p", GAIN, backend="python-host"))
    stored(store, "asnccl", profile("p", GAIN, backend="command"), space="nccl",
           workload=own_command("./all_reduce_perf", "-b", "64K", "a b"))  # fmt: skip
    said = asked(url, capsys)
    assert said[1] == (
        "measured on laptop, MPICH 4.3.0, backend mpi-host, space mpich-shm, campaign native"
    )
    assert said[-2].startswith("  python/p: speedup 1.64x to 1.90x (1.77x, 20 pairs) at 64 KiB; ")
    assert "backend python-host, " in said[-2]
    assert said[-1].endswith(
        "backend command, space nccl, by a command of your own: ./all_reduce_perf -b 64K 'a b'"
    )


def test_what_is_of_a_command_says_so(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "long", profile("p", OPEN, backend="command"), space="nccl",
           workload=own_command("./run", "x" * 200))  # fmt: skip
    said = asked(url, capsys, backend="command")
    assert said[1].endswith(", backend command, space nccl, campaign long")
    assert said[2] == f"by a command of your own: ./run {'x' * 94}..."


def test_what_is_of_a_pattern_in_python_says_so(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = OwnBenchmark(pattern="/home/ann/halo.py:Halo")
    operation = Operation("own:halo")
    workload = Workload(operation, (SIZE,), backend=Backend.PYTHON_HOST, own=own)
    halo = profile("p", GAIN, backend="python-host", operation="own:halo")
    stored(store, "halo", halo, workload=workload)
    said = asked(url, capsys, "own:halo")
    assert said[2] == "by a pattern of your own: /home/ann/halo.py:Halo"


def test_streams_with_other_windows_are_other_questions(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, window, ends in (("narrow", 8, (2.0, 3.0)), ("usual", 0, (1.1, 1.2))):
        workload = Workload(Operation.STREAM, (SIZE,), window=window)
        conditions = Conditions(pattern=workload.pattern)
        found = profile("p", GAIN, operation="stream", conditions=conditions, ends=ends)
        stored(store, name, found, workload=workload)
    said = asked(url, capsys, "stream")
    # The newer one: what gains most with a narrow window says nothing of a wide one.
    assert said[0].endswith(": usual/p")
    assert said[2] == "pattern: window of 64"
    assert said[-1].endswith(", pattern: window of 8")


def test_what_was_timed_in_another_way_is_another_question(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    conditions = Conditions(timing="in batches of 100, recorded as graphs")
    stored(store, "graphs", profile("p", GAIN, ends=(2.0, 3.0), conditions=conditions))
    stored(store, "calls", profile("p", GAIN, ends=(1.1, 1.2)))
    said = asked(url, capsys, "allreduce")
    assert said[0].endswith(": calls/p")
    assert said[-1].endswith(f", timed: {conditions.timing}")


def test_how_a_profile_was_timed_stands_before_its_messages(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = Workload(Operation.STREAM, (SIZE,), window=8)
    timing = Timing(timer="device")
    conditions = Conditions(timing=timing.said, pattern="window of 8")
    found = profile("p", GAIN, operation="stream", conditions=conditions)
    stored(store, "device", found, workload=workload, timing=timing)
    assert asked(url, capsys, "stream")[2] == (
        "timed: by the device's clock; pattern: window of 8"
    )


def test_the_same_in_json(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    stored(store, "asnccl", profile("p", OPEN, of_point=NONE, backend="command"), space="nccl",
           workload=own_command("./run"))  # fmt: skip
    best.best_command("allreduce", "64KiB", db=url, json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["finding"], row["space"]) == ("default", "nccl")
    assert row["workload"]["own"]["command"] == ["./run"]


def test_json_says_what_to_set_pinned_variables_included(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = given.campaign("pinned", space={"version": 1, "pinned": {"LIB_FIXED": "1"}})
    store.save_profiles(store.open_campaign(record).id, [profile("p", GAIN)])
    for size in ("64KiB", None):
        best.best_command("allreduce", size, db=url, json_output=True)
        row = json.loads(capsys.readouterr().out)[0]
        assert row["environment"] == {"LIB_FIXED": "1", **row["configuration"]}
    stored(store, "default", profile("p", OPEN, ranks=4))
    best.best_command("allreduce", "64KiB", ranks=4, db=url, json_output=True)
    assert json.loads(capsys.readouterr().out)[0]["environment"] == {}


@pytest.mark.parametrize("size", ["8", None])
def test_json_without_an_answer_is_an_object_that_says_so(
    store: Store, url: str, capsys: pytest.CaptureFixture[str], size: str | None
) -> None:
    stored(store, "one", profile("p", GAIN))
    with pytest.raises(NoAnswer):
        best.best_command("broadcast", size, db=url, json_output=True)
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == "not-measured"
    assert told["message"].startswith("no profile for broadcast")
    assert told["environment"] == {}


def test_without_a_size_the_whole_table_is_printed(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = profile("small", OPEN, at=1024, bytes_low=1024, bytes_high=1024)
    stored(store, "both", small, profile("large", GAIN, bytes_low=SIZE))
    best.best_command("allreduce", db=url)
    place, header, first, second, *settings = capsys.readouterr().out.splitlines()
    assert place.startswith("measured: 2 ranks, ")  # once, as it is the same for all sizes
    level = "simultaneous CI of its campaign"  # which an old campaign doesn't say
    assert header.split("  ")[-3:] == ["candidate", f"speedup, {level}", "use"]
    assert "1 KiB" in first
    assert "the default, inconclusive" in first
    assert "64 KiB" in second
    assert "both/large" in second
    assert settings[1] == "both/large"
    assert settings[2].strip().startswith(next(iter(given.TUNED)))
    best.best_command("allreduce", db=url, json_output=True)
    sizes = [row["bytes"] for row in json.loads(capsys.readouterr().out)]
    assert sizes == [1024, SIZE]


def test_the_table_says_for_each_size_where_it_was_measured_if_that_differs(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = profile("small", OPEN, at=1024, bytes_low=1024, bytes_high=1024)
    stored(store, "one", small)
    stored(store, "other", replace(profile("large", GAIN, bytes_low=SIZE), nodes=2, ranks=4))
    best.best_command("allreduce", db=url)
    header, first, second, *_ = capsys.readouterr().out.splitlines()
    assert header.split()[-1] == "measured"
    assert "  2 ranks, " in first
    assert "  4 ranks on 2 nodes, " in second


def test_a_campaign_that_compared_nothing_is_in_the_table(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "short", profile("p", OPEN, points=()))
    best.best_command("allreduce", db=url)
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert all("unmeasured" in row and "the default, inconclusive" in row for row in rows)
    assert rows[0].split()[:2] == ["8", "B"]


def test_another_operation_is_missed_at_no_size(store: Store, url: str) -> None:
    stored(store, "one", profile("p", GAIN))
    with pytest.raises(NoAnswer) as missed:
        best.best_command("broadcast", db=url)
    assert missed.value.message == "no profile for broadcast"


def test_words_of_other_benchmarks_are_understood_and_the_answer_says_how(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "proven", profile("p", GAIN))
    best.best_command("all_reduce_perf", "64K", db=url)
    said = capsys.readouterr()
    assert said.out.startswith("allreduce of 64 KiB, 2 ranks: proven/p")
    assert said.err.splitlines() == [
        "note: --op all_reduce_perf is read as allreduce",
        "note: --bytes 64K is read as 64KiB",
    ]


@pytest.mark.parametrize(
    ("asked_for", "command"),
    [
        ({}, "tune --op broadcast --sizes 16MiB --db"),
        ({"ranks": 4, "nodes": 1}, "tune --op broadcast --sizes 16MiB --ranks 4 --db"),
        ({"nodes": 2}, ""),
        ({"system": "other"}, ""),
        ({"backend": "command"}, ""),
        ({"bytes_": "16M"}, "tune --op broadcast --sizes 16MiB --db"),
        ({"bytes_": "0"}, ""),
        ({"campaign": "two"}, ""),
    ],
)
def test_what_nobody_measured_has_the_command_that_measures_it(
    store: Store, url: str, asked_for: dict[str, Any], command: str
) -> None:
    stored(store, "one", profile("p", GAIN))
    with pytest.raises(NoAnswer) as missed:
        best.best_command("broadcast", **{"bytes_": "16MiB"} | asked_for, db=url)
    *_, last = missed.value.hint.splitlines()
    assert last.startswith(f"next: commtune {command}") == bool(command)


def test_a_campaign_that_was_stopped_has_what_continues_it(store: Store, url: str) -> None:
    stored(store, "one", profile("p", GAIN))
    number = store.open_campaign(given.campaign("two")).id

    def hint() -> list[str]:
        with pytest.raises(NoAnswer) as missed:
            best.best_command("broadcast", "16MiB", campaign="two", db=url)
        return missed.value.hint.splitlines()[1:]

    continues = "next: 'commtune tune' with its file or flags continues it"
    assert hint() == ["two has not finished its confirmation", continues]
    store.finish_campaign(number)
    assert hint() == []
