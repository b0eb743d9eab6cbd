"""What the end of a campaign says of runs that something else spoilt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import database_values as given
import pytest
from made_up_runs import made_up_run

from commtune.app.campaigns import tuning
from commtune.campaign.loading import parse_campaign
from commtune.campaign.plan import Plan
from commtune.commands.campaigns import summary
from commtune.db.codec import load_model
from commtune.formatting import format_ranks
from commtune.model import DEFAULT, Configuration, Interval, Outcome, Phase, Profile, Verdict
from commtune.model.conclusion import Conclusion, FurtherRuns, PhaseSpent
from commtune.model.effects import SizeEffect, VariableEffect
from commtune.model.profile import RangeBoundary
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.outcome.conclusion import _time_spent
from commtune.tuner.statistics.evidence import Evidence
from commtune.tuner.statistics.machine_states import MachineStates


def after(*outcomes: Outcome) -> Conclusion:
    """The conclusion of a campaign whose runs ended like this, half of them in the search."""
    evidence = Evidence()
    for number, outcome in enumerate(outcomes):
        phase = Phase.SEARCH if number % 2 else Phase.CONFIRM
        evidence.add(made_up_run(DEFAULT, number, outcome=outcome, phase=phase))
    return Conclusion(spent=_time_spent(evidence))


def test_lost_runs_are_counted_apart_from_failed_ones() -> None:
    phases = after(*Outcome).spent.values()
    assert sum(phase.lost for phase in phases) == 5
    assert sum(phase.failed for phase in phases) == 8


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ([], []),
        ([Outcome.PREEMPTED], ["1 run lost, for which no configuration is blamed"]),
        ([Outcome.NODE_FAILURE] * 3, ["3 runs lost, for which no configuration is blamed"]),
    ],
)
def test_what_was_lost_is_said(lost: list[Outcome], said: list[str]) -> None:
    lines = summary._conclusions(after(Outcome.OK, *lost))
    assert [line.partition(";")[0] for line in lines] == said


def test_failed_runs_are_said_with_their_outcomes_and_how_many_were_of_the_default() -> None:
    evidence = Evidence()
    runs = [(DEFAULT, Outcome.TIMED_OUT)] * 6 + [
        (Configuration({"A": "1"}), Outcome.TIMED_OUT)
    ] * 4
    for number, (configuration, outcome) in enumerate([*runs, (DEFAULT, Outcome.CRASHED)]):
        phase = Phase.SEARCH if number % 2 else Phase.CONFIRM
        evidence.add(made_up_run(configuration, number, outcome=outcome, phase=phase))
    (said,) = summary._conclusions(Conclusion(spent=_time_spent(evidence)))
    counts = "10 timed-out, 1 crashed"
    assert said == f"11 runs failed ({counts}), 7 of the default; see 'commtune report'"


@pytest.mark.parametrize(
    ("benchmark_s", "said"),
    [
        (90.0, "1 min 40 s, 10.0% of it controller overhead"),
        (400.0, "1 min 40 s; 6 min 40 s in benchmark processes, several at a time"),
    ],
)
def test_runs_at_the_same_time_take_longer_than_the_campaign(
    benchmark_s: float, said: str
) -> None:
    nothing = cast("Comparison", None)  # nothing looks at it here
    report = CampaignResult((), nothing, MachineStates(), 1, 1, benchmark_s, 100.0)
    assert summary._time(report) == said


def plan(workload: str) -> Plan:
    text = f"campaign: 1\nname: rails\nspace: mpich-host\nworkload: {{{workload}}}\n"
    return parse_campaign(text, Path.cwd()).plan


def report(*profiles: Profile, searched: int = 14, later: int = 3) -> CampaignResult:
    nothing = cast("Comparison", None)  # nothing looks at it here
    return CampaignResult(
        profiles, nothing, MachineStates(), searched + 1, 60, 1.0, 1.0, later_trials=later
    )


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (
            3,
            "18 trials (the default, 14 of {:,} configurations by the search, "
            "3 derived by ablation)",
        ),
        (0, "15 trials (the default, 14 of {:,} configurations by the search)"),
    ],
)
def test_trials_are_those_that_status_counts(later: int, said: str) -> None:
    campaign = plan("ranks: 2")
    spent = {str(Phase.ABLATE): PhaseSpent(runs=9)}
    found = replace(report(later=later), conclusion=Conclusion(spent=spent))
    line = summary._headline(campaign, found)
    assert f"; {said.format(campaign.space.count())}, 60 runs" in line
    line = summary._headline(campaign, report(later=later))
    assert ("derived by traces" in line) == bool(later)


def test_next_asks_for_a_size_that_has_a_profile() -> None:
    campaign = plan("operation: rail, ranks: 2, sizes: [8, 64KiB, 1MiB, 4MiB]")
    points = (
        given.point(8, low=1.1, operation="rail"),
        given.point(65536, low=1.3, operation="rail"),
        given.point(1 << 22, low=1.9, operation="rail"),
    )
    found = given.profile("rail-8-65536", bytes_low=8, bytes_high=65536, points=points)
    said = summary._next(campaign, report(found), "again", None)
    assert said.splitlines()[1] == "  commtune best --op rail --bytes 64KiB"
    # Without a profile, what most people look at.
    said = summary._next(campaign, report(), "again", None)
    assert said.splitlines()[1] == "  commtune best --op rail --bytes 1MiB"


def test_next_asks_for_a_backend_that_does_not_answer_first() -> None:
    campaign = plan("operation: ring, ranks: 2, sizes: [8], backend: python-host")
    said = summary._next(campaign, report(), "again", None)
    assert "  commtune best --op ring --bytes 8B --backend python-host" in said.splitlines()


def test_next_names_the_database_that_was_named() -> None:
    campaign = plan("operation: rail, ranks: 2, sizes: [8]")
    found = given.profile("rail-8-8", bytes_low=8, bytes_high=8)
    said = summary._next(campaign, report(found), "again", "/my data/x.db").splitlines()
    named = "--db '/my data/x.db'"
    assert all(named in line for line in said[1:])
    assert f"  commtune run --profile rails/rail-8-8 {named} -- COMMAND" in said


def test_nothing_tried_is_not_nothing_found() -> None:
    campaign = plan("ranks: 2")
    for searched, said in ((0, "no configuration was tried: "), (5, "nothing was confirmed: ")):
        found = report(searched=searched, later=0)
        assert summary._table(campaign, found).startswith(said)
        remarks = "".join(summary._remarks(campaign, found))
        assert ("no configuration was shown" in remarks) == bool(searched)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (Verdict.DEFAULT, "7 pairs)  the default"),
        (Verdict.UNDECIDED, "7 pairs)  the default, inconclusive"),
    ],
)
def test_an_interval_just_short_of_the_smallest_gain_is_said_to_be_inconclusive(
    verdict: Verdict, said: str
) -> None:
    nearly = replace(given.point(512, "all", 1.019), verdict=verdict)
    found = given.profile(
        "default-512", bytes_low=512, bytes_high=512, points=(nearly,), verdict=Verdict.DEFAULT
    )
    assert summary._table(plan("ranks: 2"), report(found)).endswith(said)


def test_one_size_is_no_range_and_several_nodes_are_asked_for() -> None:
    text = "campaign: 1\nname: rails\nspace: mpich-host\nslurm: {}\n"
    workload = "workload: {ranks: 4, nodes: 2, sizes: [1MiB]}\n"
    campaign = parse_campaign(text + workload, Path.cwd()).plan
    one = given.profile("one", bytes_low=1 << 20, bytes_high=1 << 20)
    assert summary._settings([one], {})[0].splitlines()[0] == "one (1 MiB)"
    said = summary._next(campaign, report(one), "again", None).splitlines()
    assert said[1] == "  commtune best --op allreduce --bytes 1MiB --nodes 2"


def ablated(*effects: tuple[str, dict[int, tuple[float, float, float, int]]]) -> Profile:
    """A profile of 8 B to 64 KiB, and what ablation says of its variables."""
    contributions = tuple(
        VariableEffect(
            names=(name,),
            points=tuple(
                SizeEffect(bytes=size, ratio=ratio, low=low, high=high, pairs=pairs)
                for size, (ratio, low, high, pairs) in by_size.items()
            ),
        )
        for name, by_size in effects
    )
    return replace(given.profile("p", bytes_low=8, bytes_high=65536), contributions=contributions)


def test_what_a_variable_brings_has_its_interval_and_no_noise_is_printed() -> None:
    noise = (51.49, 6e-21, 4e23, 2)
    sure, outside = (1.23, 1.10, 1.37, 12), (9.0, 8.0, 10.0, 12)
    found = ablated(("A", {8: sure, 1024: noise, 1 << 20: outside}), ("B", {1024: noise}))
    said = summary._brings(found, "A")
    assert said == "   (by ablation 1.10x to 1.37x (1.23x, 12 pairs) at 8 B)"
    assert summary._brings(found, "B") == ""


def test_what_helps_at_other_sizes_only_is_not_shown_to_contribute() -> None:
    sure = (1.23, 1.10, 1.37, 12)
    found = ablated(("A", {8: sure}), ("B", {1 << 20: sure}))
    both = replace(found, configuration=Configuration({"A": "1", "B": "1"}))
    assert both.unproven_variables == ("B",)
    assert replace(both, bytes_high=1 << 20).unproven_variables == ()


def test_what_is_likely_says_itself_how_many_more_runs_would_tell() -> None:
    likely = given.profile("p-likely", bytes_low=8, bytes_high=64)
    at_16, at_128 = (Conclusion(more=FurtherRuns(400, 70.0, size, "why")) for size in (16, 128))
    assert summary._conclusions(at_16, [likely]) == []
    assert len(summary._conclusions(at_128, [likely])) == 1


@pytest.mark.parametrize(("speed", "is_said"), [("all", True), ("slow", False)])
def test_slower_is_no_claim_from_a_single_machine_state(speed: str, is_said: bool) -> None:
    slower = replace(given.point(8, speed), gain=Interval(0.98, 0.97, 0.99, 12))
    found = given.profile("p", points=(given.point(1024, "all"), slower))
    (said,) = summary._remarks(plan("ranks: 2"), report(found))
    assert ("p is slower than the default at 8 B." in said.splitlines()) == is_said


def test_times_of_several_machine_states_do_not_contradict_the_speedup() -> None:
    mixed = replace(
        given.point(1024, "all", 1.21),
        default_s=6.10e-6, tuned_s=7.34e-6, gain=Interval(1.42, 1.21, 1.66, 20),
    )  # fmt: skip
    found = given.profile("p", bytes_low=8, bytes_high=65536, points=(mixed,))
    row = summary._table(plan("ranks: 2"), report(found)).splitlines()[1]
    assert "6.10 us" in row and "~4.30 us" in row and "1.21x to 1.66x (1.42x, 20 pairs)" in row
    assert "7.34" not in row


def test_a_note_names_its_size_once_and_one_process_is_one_rank() -> None:
    words = "a speedup of 2% is ruled out at 8 B"
    one = replace(given.profile("p", bytes_low=8, bytes_high=8), note=words)
    (said,) = summary._remarks(plan("ranks: 2"), report(one))
    assert words in said.splitlines()
    several = replace(one, bytes_high=65536)
    (said,) = summary._remarks(plan("ranks: 2"), report(several))
    assert f"8 B to 64 KiB: {words}" in said.splitlines()
    assert format_ranks(1, 1) == "1 rank"


def test_a_long_note_has_a_line_for_each_of_its_parts() -> None:
    parts = ["likely, not proven: 1.20x by A", "no speedup was shown here", "up to 33 %"]
    one = replace(given.profile("p", bytes_low=8, bytes_high=65536), note="; ".join(parts))
    (said,) = summary._remarks(plan("ranks: 2"), report(one))
    said_parts = f"8 B to 64 KiB: {parts[0]};\n  {parts[1]};\n  {parts[2]}"
    assert said_parts in said


def test_between_neighbours_with_different_winners_nothing_was_measured_and_that_is_said() -> None:
    borders = (RangeBoundary(8, 64), RangeBoundary(1024, 8192))
    small = given.profile("small", bytes_low=8, bytes_high=8, boundaries=borders[:1])
    middle = given.profile("middle", bytes_low=64, bytes_high=1024, boundaries=borders)
    (said,) = summary._remarks(plan("ranks: 2"), report(small, middle))
    assert (
        "not measured: 8 B to 64 B, 1 KiB to 8 KiB; what is best changes there"
        in said.splitlines()
    )
    (said,) = summary._remarks(plan("ranks: 2"), report(given.profile("a"), given.profile("b")))
    assert "not measured" not in said


def test_one_environment_against_several_is_printed_without_figures() -> None:
    trade = {"one_mean_gain": 1.18, "ranges_mean_gain": 1.17}
    range_ = {"configuration": {"A": "1"}, "low": 8, "high": 8}
    answers = {"one": range_, "ranges": [range_, range_], "trade_off": trade}
    (said,) = summary._conclusions(load_model(Conclusion, {"answers": answers}))
    assert said.endswith("says what all-sizes gives up against a profile for each range")


def test_what_a_verification_withdrew_is_not_recommended_again() -> None:
    found = given.profile(points=(given.point(1024, "all"),))
    stored = replace(found, verdict=Verdict.WITHDRAWN, note="verified 2026-11-28: worse")
    result = tuning._apply_findings(report(found), [stored])
    lines = summary.campaign_summary(plan("nodes: 1"), result, where="db", again="again")
    assert "the default, allreduce-large was withdrawn" in lines
    assert "1 KiB to 1 MiB: verified 2026-11-28: worse" in lines
    assert "commtune export" not in lines and "SHM_EAGER" not in lines
