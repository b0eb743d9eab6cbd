"""Executions: lines that are read back, verdicts, and which configurations are the same."""

from __future__ import annotations

import pytest

from commtune.model import DEFAULT, Configuration, Execution, Followed
from commtune.tuner.effective.settings import (
    Setting,
    Told,
    effective_configuration,
    group_executions,
    is_same_algorithm,
    judge_execution,
    settings_of,
)

A1 = Configuration({"A": "1"})


def trace(
    configuration: Configuration,
    *settings: Setting,
    fingerprints: dict[int, str] | None = None,
    did: tuple[str, ...] = (),
) -> Execution:
    return judge_execution(
        configuration, "allreduce", settings, fingerprints=fingerprints, did=did
    )


def held(name: str, value: str, asked: str | None = None) -> Setting:
    return Setting(name, Told.HELD, asked, value)


@pytest.mark.parametrize(
    "setting",
    [
        Setting("A", Told.HELD, "1", "1"),
        Setting("A", Told.HELD, None, ""),
        Setting("A", Told.REPLACED, "1000", "64", "the library's limit"),
        Setting("A", Told.ABSENT),
        Setting("A", Told.UNUSED, "x, y", "x, holds", "it (this one) counts only under B=1"),
        Setting("A", Told.UNKNOWN, "1"),
    ],
)
def test_a_line_is_read_back(setting: Setting) -> None:
    execution = trace(DEFAULT, setting)
    assert settings_of(execution) == {"A": setting}


def test_quotes_and_line_ends_in_values_do_not_break_a_line() -> None:
    execution = trace(DEFAULT, Setting("A", Told.HELD, "it's\nso", "b"))
    assert settings_of(execution)["A"].asked == "it`s so"


def test_other_lines_are_no_settings() -> None:
    execution = judge_execution(DEFAULT, "allreduce", [], did=["A: held"], notes=["B: absent"])
    assert settings_of(execution) == {}


@pytest.mark.parametrize(
    ("told", "followed"),
    [
        ([], Followed.EXECUTED),
        ([Told.HELD, Told.HELD], Followed.EXECUTED),
        ([Told.HELD, Told.UNKNOWN], Followed.UNKNOWN),
        ([Told.UNKNOWN], Followed.UNKNOWN),
        ([Told.HELD, Told.REPLACED], Followed.REPLACED),
        ([Told.ABSENT, Told.UNUSED], Followed.IGNORED),
        ([Told.HELD, Told.ABSENT], Followed.REPLACED),
        ([Told.UNKNOWN, Told.UNUSED], Followed.REPLACED),
        ([Told.REPLACED, Told.ABSENT], Followed.REPLACED),
    ],
)
def test_verdicts(told: list[Told], followed: Followed) -> None:
    configuration = Configuration({f"V{i}": "1" for i in range(len(told))})
    settings = [Setting(f"V{i}", kind, "1", "2") for i, kind in enumerate(told)]
    execution = trace(configuration, *settings)
    assert execution.followed is followed
    accused = [kind for kind in told if kind not in (Told.HELD, Told.UNKNOWN)]
    assert execution.why.count(";") == max(0, len(accused) - 1)
    assert bool(execution.why) == bool(accused)


def test_what_nobody_asked_for_accuses_nobody() -> None:
    execution = trace(DEFAULT, Setting("A", Told.ABSENT), held("B", "1"))
    assert (execution.followed, execution.became) == (Followed.EXECUTED, None)


def test_what_had_no_effect_is_left_out_of_what_ran() -> None:
    asked = Configuration({"A": "1", "B": "2", "C": "3"})
    execution = trace(
        asked,
        held("A", "1", "1"),
        Setting("B", Told.ABSENT, "2"),
        Setting("C", Told.UNUSED, "3", "3", "nobody listens"),
    )
    assert effective_configuration(execution) == A1
    assert execution.became == A1.key
    assert execution.why == (
        "B is ignored: the library has no such variable; C=3 has no effect: nobody listens"
    )


def test_an_ignored_variable_is_grouped_with_the_default() -> None:
    default = trace(DEFAULT, Setting("A", Told.ABSENT))
    ignored = trace(A1, Setting("A", Told.ABSENT, "1"))
    assert [e.became for e in group_executions([ignored, default])] == [DEFAULT.key, None]
    assert [e.became for e in group_executions([ignored])] == [
        DEFAULT.key
    ]  # known without its trace


def test_two_that_lose_the_same_variable_become_the_one_without_it() -> None:
    b = Configuration({"B": "2"})
    both = Configuration({"A": "1", "B": "2"})
    traces = [
        trace(DEFAULT, Setting("A", Told.ABSENT), held("B", "0")),
        trace(both, Setting("A", Told.ABSENT, "1"), held("B", "2", "2")),
        trace(b, Setting("A", Told.ABSENT), held("B", "2", "2")),
    ]
    assert [e.became for e in group_executions(traces)] == [None, b.key, None]


def test_an_unused_variable_counts_as_the_default_holds_it() -> None:
    unused = trace(A1, Setting("A", Told.UNUSED, "1", "1", "no rules"))
    assert [e.became for e in group_executions([trace(DEFAULT, held("A", "0")), unused])] == [
        None,
        DEFAULT.key,
    ]


def test_another_spelling_of_the_default_is_the_default_and_still_credited() -> None:
    spelled = Configuration({"A": "true"})
    traces = group_executions(
        [trace(DEFAULT, held("A", "1")), trace(spelled, held("A", "1", "true"))]
    )
    assert traces[1].became == DEFAULT.key
    assert traces[1].followed.is_credited


def test_a_limited_value_is_the_limit() -> None:
    much, limit = Configuration({"A": "1000"}), Configuration({"A": "64"})
    replaced = trace(much, Setting("A", Told.REPLACED, "1000", "64", "the limit"))
    found = group_executions(
        [replaced, trace(limit, held("A", "64", "64")), trace(DEFAULT, held("A", "8"))]
    )
    # One variable each; the first by name is the simplest.
    assert {e.became for e in found if e.became} < {much.key, limit.key}
    assert sum(e.became is not None for e in found) == 1


@pytest.mark.parametrize(
    "other",
    [
        trace(A1, held("A", "1", "1")),
        trace(A1, held("A", "0", "1"), fingerprints={8: "b"}),
        trace(A1, held("A", "0", "1"), fingerprints={8: "a"}, did=("ring",)),
        trace(A1, Setting("A", Told.UNKNOWN, "1", "0"), fingerprints={8: "a"}),
        trace(A1, held("A", "0", "1"), held("C", "1"), fingerprints={8: "a"}),
        trace(A1, fingerprints={8: "a"}),
    ],
)
def test_any_difference_and_any_doubt_keeps_two_apart(other: Execution) -> None:
    default = trace(DEFAULT, held("A", "0"), fingerprints={8: "a"})
    assert [e.became for e in group_executions([default, other])] == [None, None]


def test_the_same_configuration_under_two_operations_is_not_mixed() -> None:
    a = judge_execution(DEFAULT, "allreduce", [held("A", "0")])
    b = judge_execution(A1, "broadcast", [held("A", "0", "1")])
    assert [e.became for e in group_executions([a, b])] == [None, None]


def test_nothing_is_grouped_into_nothing() -> None:
    assert group_executions([]) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a", "a", True), ("a", "b", False), ("a+m", "a", True), ("a+m", "a+n", False),
        ("+m", "+m", True), ("+m", "a", None), ("", "", None),
    ],
)  # fmt: skip
def test_fingerprints_are_compared_by_what_both_have(
    one: str, other: str, same: bool | None
) -> None:
    assert is_same_algorithm(one, other) is same
