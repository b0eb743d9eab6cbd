"""What a campaign says of the findings of papers, by its own intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_words import words_of
from stored_campaigns import Made
from stores import opened_store

from commtune.campaign.loading import parse_campaign
from commtune.commands.campaigns.summary import campaign_summary
from commtune.commands.campaigns.tuning import _replicated
from commtune.db.codec import load_model
from commtune.db.queries.description import describe_campaign
from commtune.db.settings import DESCRIBED
from commtune.model import FEWEST_PAIRS, Configuration
from commtune.model.conclusion import (
    Ablation,
    Conclusion,
    ConfirmedCandidate,
    ConfirmedEffect,
)
from commtune.model.effects import VariableEffect
from commtune.report.page import Page
from commtune.report.record import read_record
from commtune.report.replicated_findings import (
    ReplicatedFinding,
    Replication,
    _measured,
    replicate_findings,
    replication_lines,
)
from commtune.systems.findings import all_findings
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.statistics.machine_states import MachineStates
from commtune.wiring.campaign_records import _settings


def subject(system: str, library: str, operation: str, nodes: int) -> dict[str, Any]:
    """What a campaign was about."""
    return {"system": system, "library": library, "operation": operation, "nodes": nodes}


ALPS = subject("alps", "nccl", "allreduce", 2)
GDR = {"NCCL_NET_GDR_LEVEL": "3"}
NAME = "gdr-level-allreduce"  # 3 times as fast


def effect(low: float, high: float, size: int = 1024, speed: str = "all") -> ConfirmedEffect:
    ratio = (low * high) ** 0.5
    return ConfirmedEffect(
        bytes=size, speed=speed, ratio=ratio, low=low, high=high, pairs=FEWEST_PAIRS
    )


def confirmed(setting: dict[str, str], *effects: ConfirmedEffect) -> Conclusion:
    return Conclusion(confirmed=(ConfirmedCandidate(Configuration(setting), 9, "", effects),))


def ablated(setting: dict[str, str], *effects: ConfirmedEffect) -> Conclusion:
    variable = VariableEffect(tuple(setting), setting, True, effects)
    before = Configuration({**setting, "NCCL_ALGO": "Ring"})
    return Conclusion(ablations=(Ablation(before, before, 9, None, (variable,)),))


def of(name: str, seen: tuple[ReplicatedFinding, ...]) -> ReplicatedFinding:
    return next(one for one in seen if one.named.name == name)


@pytest.mark.parametrize(
    ("effects", "again"),
    [
        ((effect(1.2, 1.4),), Replication.SEEN),
        ((effect(0.7, 0.9),), Replication.OPPOSITE),
        ((effect(0.9, 1.1),), Replication.NOT_SEEN),
        ((effect(0.9, 3.1),), Replication.UNDECIDED),
        ((effect(0.9, 1.1, 8), effect(1.2, 1.4, 64)), Replication.SEEN),
        ((effect(0.7, 0.9, 8), effect(1.2, 1.4, 64)), Replication.BOTH),
        ((effect(0.9, 1.1, 8), effect(0.9, float("inf"), 64)), Replication.UNDECIDED),
        ((effect(1.2, 1.4, speed="slow"),), Replication.NOT_COVERED),
        (
            (ConfirmedEffect(bytes=8, ratio=2, low=1.5, high=3, pairs=FEWEST_PAIRS - 1),),
            Replication.NOT_COVERED,
        ),
        ((), Replication.NOT_COVERED),
    ],
)
def test_verdicts(effects: tuple[ConfirmedEffect, ...], again: Replication) -> None:
    assert of(NAME, replicate_findings(confirmed(GDR, *effects), **ALPS)).again is again
    assert of(NAME, replicate_findings(ablated(GDR, *effects), **ALPS)).again is again


def test_the_same_setting_written_otherwise() -> None:
    found = replicate_findings(confirmed({"NCCL_NET_GDR_LEVEL": "PHB"}, effect(1.2, 1.4)), **ALPS)
    assert of(NAME, found).again is Replication.SEEN


def test_a_setting_beside_others_is_no_evidence_for_it() -> None:
    both = confirmed({**GDR, "NCCL_ALGO": "Ring"}, effect(1.2, 1.4))
    assert of(NAME, replicate_findings(both, **ALPS)).again is Replication.NOT_COVERED
    other = confirmed({"NCCL_NET_GDR_LEVEL": "PIX"}, effect(1.2, 1.4))
    assert of(NAME, replicate_findings(other, **ALPS)).again is Replication.NOT_COVERED


def test_what_is_set_in_every_run_is_not_covered() -> None:
    found = replicate_findings(confirmed(GDR, effect(1.2, 1.4)), **ALPS, pinned=GDR)
    assert of(NAME, found).again is Replication.NOT_COVERED


@pytest.mark.parametrize(
    "asked",
    [
        subject("alps", "nccl", "alltoall", 2),
        subject("alps", "cray-mpich", "allreduce", 2),
    ],
)
def test_other_operations_and_libraries_say_nothing(asked: dict[str, Any]) -> None:
    found = replicate_findings(confirmed(GDR, effect(1.2, 1.4)), **asked)
    assert of(NAME, found).again is Replication.NOT_COVERED


def test_nodes_and_sizes_bound_a_finding() -> None:
    ignore = confirmed({"NCCL_IGNORE_CPU_AFFINITY": "1"}, effect(1.2, 1.4))
    one = subject("alps", "nccl", "allreduce", 1)
    assert of("affinity-allreduce", replicate_findings(ignore, **ALPS)).again is Replication.SEEN
    assert (
        of("affinity-allreduce", replicate_findings(ignore, **one)).again
        is Replication.NOT_COVERED
    )
    block = confirmed({"MPICH_GPU_ALLREDUCE_BLK_SIZE": "134217728"}, effect(1.2, 1.4))
    for nodes, again in ((1, Replication.SEEN), (2, Replication.NOT_COVERED)):
        asked = subject("alps", "cray-mpich", "allreduce", nodes)
        assert of("allreduce-block", replicate_findings(block, **asked)).again is again
    asked = subject("alps", "cray-mpich", "ping-pong", 1)
    small, large = effect(0.9, 1.1, 2048), effect(1.2, 1.4, 4096)
    found = of(
        "ipc-threshold",
        replicate_findings(confirmed({"MPICH_GPU_IPC_THRESHOLD": "1"}, small, large), **asked),
    )
    assert (found.again, [m.bytes for m in found.measured]) == (Replication.NOT_SEEN, [2048])


def test_sizes_below_the_least_do_not_count() -> None:
    known = next(one.finding for one in all_findings() if one.name == NAME)
    found = known.model_copy(update={"least_bytes": 1024})
    measured = _measured(found, confirmed(GDR, effect(1.2, 1.4, 1023), effect(1.2, 1.4, 1024)))
    assert [one.bytes for one in measured] == [1024]


def test_what_is_confirmed_counts_before_ablation() -> None:
    both = Conclusion(
        confirmed=confirmed(GDR, effect(1.2, 1.4, 8)).confirmed,
        ablations=ablated(GDR, effect(0.7, 0.9, 8), effect(1.1, 1.2, 64)).ablations,
    )
    found = of(NAME, replicate_findings(both, **ALPS))
    assert [(m.bytes, m.confirmed) for m in found.measured] == [(8, True), (64, False)]
    assert found.again is Replication.SEEN


def test_nothing_is_said_where_nothing_is_covered() -> None:
    assert replication_lines(replicate_findings(Conclusion(), **ALPS), "alps") == []
    assert replicate_findings(Conclusion(), **subject("mine", "nccl", "allreduce", 2)) == ()


def test_words() -> None:
    seen = replicate_findings(ablated(GDR, effect(1.2, 1.4)), **ALPS)
    head, line, rest = replication_lines(seen, "alps")
    assert head == "What papers found on alps, and what this campaign measured"
    assert line.startswith(
        f"{NAME}: NCCL_NET_GDR_LEVEL=3 in allreduce, 3x there: seen again: "
        "1.20x to 1.40x (1.30x, 5 pairs) at 1 KiB"
    )
    assert line.endswith("(ablation)")
    assert rest.startswith("not covered: affinity-alltoall, affinity-allreduce, ")
    assert NAME not in rest
    assert replication_lines(seen, "alps", "replayed")[0].endswith(
        "(replayed: this says nothing about alps)"
    )
    (told,) = [one for one in (found.data() for found in seen) if one["points"]]
    assert (told["finding"], told["again"]) == (NAME, "seen again")


def page_words(
    folder: Path, conclusion: Conclusion, settings: dict[str, str], *, simulated: bool = False
) -> str:
    """The words of the report of a campaign with NCCL's space on two nodes."""
    url = f"sqlite:///{folder}/commtune.db"
    with opened_store(url) as store:
        made = Made(trials=5, settings=settings, workload={"nodes": 2}, simulated=simulated)
        made.store(store)
        campaign = describe_campaign(url, made.name)
        campaign = replace(campaign, space={**campaign.space, "library": "nccl"})
        record = replace(read_record(store, url, campaign), conclusion=conclusion)
        page = Page(record)
    return words_of(page)


def test_a_report_has_a_section_of_it(tmp_path: Path) -> None:
    words = page_words(tmp_path, confirmed(GDR, effect(1.2, 1.4)), {DESCRIBED: "alps"})
    assert "What papers found on alps, and what this campaign measured:" in words
    assert f"{NAME}: NCCL_NET_GDR_LEVEL=3 in allreduce, 3x there: seen again" in words
    assert "says nothing about alps" not in words


def test_a_report_of_a_simulation_says_so(tmp_path: Path) -> None:
    conclusion = confirmed(GDR, effect(1.2, 1.4))
    words = page_words(tmp_path, conclusion, {DESCRIBED: "alps"}, simulated=True)
    assert "(simulated: this says nothing about alps)" in words


@pytest.mark.parametrize("settings", [{}, {DESCRIBED: "frontier"}])
def test_a_report_without_any_has_none(tmp_path: Path, settings: dict[str, str]) -> None:
    assert "papers" not in page_words(tmp_path, confirmed(GDR, effect(1.2, 1.4)), settings).lower()


CAMPAIGN = """\
campaign: 1
name: a
space: nccl
system: alps
slurm: {account: a}
workload: {backend: xccl, nodes: 2, ranks: 8}
"""


def test_the_end_of_a_campaign_says_the_same() -> None:
    points = [{"bytes": 1024, "speed": "all", "ratio": 1.3, "low": 1.2, "high": 1.4, "pairs": 9}]
    stored = {"confirmed": [{"configuration": GDR, "blocks": 9, "points": points}]}
    conclusion = load_model(Conclusion, stored)
    report = CampaignResult((), {}, MachineStates(()), 2, 9, 1.0, 1.0, conclusion=conclusion)
    spec = parse_campaign(CAMPAIGN, Path.cwd())
    seen = _replicated(spec, report)
    assert of(NAME, seen).again is Replication.SEEN
    found = "\n".join(replication_lines(seen, "alps"))
    said = campaign_summary(spec.plan, report, where="x", again="y", found=found)
    assert f"\n{NAME}: " in said
    noisy = CAMPAIGN + "aggressor: {pattern: incast, nodes: 2}\n"
    assert _replicated(parse_campaign(noisy, Path.cwd()), report) == ()
    plain_one = CAMPAIGN.replace("system: alps\n", "")
    assert _replicated(parse_campaign(plain_one, Path.cwd()), report) == ()


def test_a_campaign_keeps_the_name_of_its_system_and_others_keep_nothing_new() -> None:
    spec = parse_campaign(CAMPAIGN, Path.cwd())
    assert _settings(spec)[DESCRIBED] == "alps"
    other = parse_campaign("campaign: 1\nname: a\nspace: mpich-host\n", Path.cwd())
    assert {DESCRIBED, "reference_settings"}.isdisjoint(_settings(other))
