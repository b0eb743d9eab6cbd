"""Slurm's words in ours: complete for 22.05 to 25.11; unknown ones stay unknown."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commtune.cluster.job_states import (
    _FOLLOWS,
    JobState,
    ObservedState,
    PendingReason,
)
from commtune.cluster.slurm.command_output import _WORDS, _read_state, classify_reason

WORD_LISTS = Path(__file__).parent / "words"
REASONS = [
    line
    for line in (WORD_LISTS / "reasons.txt").read_text().splitlines()
    if not line.startswith("#")
]

# What job_state_string and job_state_string_compact can return: the same in 22.05.0 to 25.05.8;
# 25.11.7 adds EXPEDITING, which has no short code.
CODES = [line.split() for line in (WORD_LISTS / "states.txt").read_text().splitlines()]
PRINTED = [code for codes in CODES for code in codes]
# What only the JSON output adds.
ONLY_JSON = ["LAUNCH_FAILED", "RECONFIG_FAIL", "POWER_UP_NODE"]
OVER = {state for state in JobState if state.is_over}
WAITING = {JobState.PENDING, JobState.NEVER_STARTED}
SILENT = {JobState.UNKNOWN, JobState.ABSENT}


@pytest.mark.parametrize("word", [*PRINTED, *ONLY_JSON])
def test_every_word_of_slurm_is_known_and_kept(word: str) -> None:
    sighting = _read_state(word)
    assert sighting.state is not JobState.UNKNOWN
    assert sighting.word == word
    assert word in _WORDS


def test_no_word_is_known_that_slurm_does_not_have() -> None:
    assert set(_WORDS) == {*PRINTED, *ONLY_JSON}


@pytest.mark.parametrize("codes", CODES, ids=lambda codes: codes[0])
def test_short_codes_mean_what_their_words_mean(codes: list[str]) -> None:
    assert len({_WORDS[code] for code in codes}) == 1


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("COMPLETED,COMPLETING", JobState.COMPLETING),
        ("COMPLETING,COMPLETED", JobState.COMPLETING),
        ("RUNNING,CONFIGURING,POWER_UP_NODE", JobState.PENDING),
        ("FAILED,LAUNCH_FAILED", JobState.NODE_FAILURE),
        ("PENDING,LAUNCH_FAILED", JobState.PENDING),
        ("RUNNING,UPDATE_DB", JobState.RUNNING),
        ("COMPLETED,SIGNALING", JobState.COMPLETED),
        ("TIMEOUT,RESIZING", JobState.TIMED_OUT),
        ("NODE_FAIL,REQUEUED", JobState.PENDING),
        ("RUNNING,STOPPED", JobState.SUSPENDED),
        ("UPDATE_DB", JobState.UNKNOWN),
        ("RUNNING,SOMETHING_NEW", JobState.UNKNOWN),
        ("", JobState.UNKNOWN),
        ("completed", JobState.UNKNOWN),
        ("?", JobState.UNKNOWN),
    ],
)
def test_words_that_hold_together(words: str, state: JobState) -> None:
    assert _read_state(words).state is state
    assert _read_state(words).word == words


def test_who_cancelled_has_accounts() -> None:
    sighting = _read_state("CANCELLED by 1000\n")
    assert (sighting.state, sighting.cancelled_by) == (JobState.CANCELLED, 1000)
    assert _read_state("CANCELLED").cancelled_by is None
    assert _read_state("CANCELLED by the moon").state is JobState.UNKNOWN


@given(st.text(), st.text())
def test_any_text_can_be_read_and_is_kept(text: str, reason: str) -> None:
    sighting = _read_state(text, reason=reason)
    assert sighting.word == text.strip()
    if not set(text.split(",")) & set(_WORDS) and "CANCELLED" not in text:
        words = {word.strip() for word in text.split(",")}
        assert sighting.state is JobState.UNKNOWN or words & set(_WORDS)


def test_every_reason_of_slurm_has_a_kind() -> None:
    assert len(REASONS) > 200
    assert [reason for reason in REASONS if classify_reason(reason) is PendingReason.UNKNOWN] == []


#: What a job is told that waits for nodes which were drained; newer releases write it with _.
_DRAINED = "required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Priority", PendingReason.TURN),
        ("(Resources)", PendingReason.TURN),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", PendingReason.MACHINE),
        ("ReqNodeNotAvail,_Reserved_for_maintenance", PendingReason.MACHINE),
        ("AssocGrpCPUMinutesLimit", PendingReason.SPENT),
        ("AssocGrpCPURunMinutesLimit", PendingReason.LIMIT),
        ("QOSGrpGRESMinutes", PendingReason.SPENT),
        ("AssocGrpGRES", PendingReason.LIMIT),
        ("QOSMaxWallDurationPerJobLimit", PendingReason.IMPOSSIBLE),
        ("QOSMaxJobsPerUserLimit", PendingReason.LIMIT),
        ("MaxGRESPerAccount", PendingReason.LIMIT),
        (f"Nodes {_DRAINED}", PendingReason.MACHINE),
        (f"Nodes_{_DRAINED.replace(' ', '_')}", PendingReason.MACHINE),
        ("JobHeldAdmin", PendingReason.HELD),
        ("launch_failed_requeued_held", PendingReason.HELD),
        ("job requeued in held state", PendingReason.HELD),
        ("job_requeued_in_special_exit_state", PendingReason.HELD),
        ("DependencyNeverSatisfied", PendingReason.IMPOSSIBLE),
        ("NewReason", PendingReason.UNKNOWN),
        ("", PendingReason.UNKNOWN),
    ],
)
def test_reasons(reason: str, kind: PendingReason) -> None:
    assert classify_reason(reason) is kind
    state = _read_state("PENDING", reason=reason).state
    assert state is (JobState.NEVER_STARTED if kind.is_hopeless else JobState.PENDING)


def test_a_reason_matters_only_while_a_job_waits() -> None:
    assert _read_state("RUNNING", reason="JobHeldUser").state is JobState.RUNNING


@pytest.mark.parametrize("state", JobState)
def test_every_state_has_successors(state: JobState) -> None:
    assert state in _FOLLOWS[state]
    assert {JobState.UNKNOWN, JobState.ABSENT} <= _FOLLOWS[state]


def test_absent_and_unknown_are_never_over() -> None:
    assert not JobState.ABSENT.is_over
    assert not JobState.UNKNOWN.is_over


@pytest.mark.parametrize(("before", "after"), list(itertools.product(JobState, JobState)))
def test_the_transition_table(before: JobState, after: JobState) -> None:
    may_follow = after in _FOLLOWS[before]
    if before in WAITING | SILENT or after in SILENT:
        assert may_follow
    elif after in WAITING:
        assert not may_follow
        assert ObservedState(before).updated(ObservedState(after)).state is after
    elif before in OVER:
        assert may_follow == (before is after)
    elif before is JobState.COMPLETING:
        assert may_follow == (after is JobState.COMPLETING or after in OVER)
    else:
        assert may_follow


states = st.sampled_from(JobState)
times = st.none() | st.integers(1, 5).map(float)
sightings = st.builds(ObservedState, state=states, started_at=times)


@given(st.lists(sightings, min_size=1, max_size=8))
def test_an_ended_job_stays_ended_unless_it_starts_again(seen: list[ObservedState]) -> None:
    known = seen[0]
    for sighting in seen[1:]:
        later = known.updated(sighting)
        is_later = (sighting.started_at or 0.0) > (known.started_at or math.inf)
        if known.state.is_over and sighting.state not in WAITING and not is_later:
            assert later.state is known.state
        assert not (known.state.is_over and later.state in SILENT)
        known = later


def test_an_old_answer_changes_nothing() -> None:
    ended = ObservedState(JobState.TIMED_OUT, started_at=10.0)
    assert ended.updated(ObservedState(JobState.RUNNING, started_at=10.0)) == ended
    assert ended.updated(ObservedState(JobState.ABSENT)) == ended


def test_a_job_that_was_put_back_forgets_its_first_start() -> None:
    running = ObservedState(JobState.RUNNING, started_at=10.0)
    for known in (running, running.updated(ObservedState(JobState.ABSENT))):
        waiting = known.updated(ObservedState(JobState.PENDING))
        assert (waiting.state, waiting.started_at) == (JobState.PENDING, None)
    again = waiting.updated(ObservedState(JobState.RUNNING, started_at=90.0))
    assert (again.state, again.started_at) == (JobState.RUNNING, 90.0)


def test_a_restart_between_two_looks_is_seen_by_its_start() -> None:
    preempted = ObservedState(JobState.PREEMPTED, started_at=10.0)
    again = preempted.updated(ObservedState(JobState.RUNNING, started_at=50.0))
    assert (again.state, again.started_at) == (JobState.RUNNING, 50.0)


def test_the_start_is_remembered_while_nobody_repeats_it() -> None:
    running = ObservedState(JobState.RUNNING, started_at=10.0)
    silent = running.updated(ObservedState(JobState.ABSENT))
    assert (silent.state, silent.started_at) == (JobState.ABSENT, 10.0)


def table_rows(columns: int) -> list[list[str]]:
    """Rows of the documentation's tables with so many columns, without the headings."""
    page = Path(__file__).parents[3] / "docs" / "slurm-states.md"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.read_text().split("\n")
        if line.startswith("|") and not line.startswith("|--")
    ]
    return [row for row in rows if len(row) == columns]


def test_documented_words_are_the_words_there_are() -> None:
    documented: dict[str, JobState] = {}
    for word, code, meaning in table_rows(3):
        if word.isupper() and (not code or code.isupper()):
            state = JobState(re.split(r"[;:,]", meaning)[0])
            documented |= {word: state} | ({code: state} if code else {})
    assert documented == _WORDS


def test_documented_states_are_the_states_there_are() -> None:
    states = set(JobState)
    documented = {row[0]: row[1] for row in table_rows(3) if row[0] in states}
    assert documented.keys() == states
    stops = {state for state, policy in documented.items() if policy == "stop the campaign"}
    assert stops == {state for state in states if state.stops_campaign}
