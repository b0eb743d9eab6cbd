"""Numbers of old releases in a campaign file: taken for the names that they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import parse_campaign
from commtune.campaign.plan import Plan
from commtune.errors import CampaignError
from commtune.model import Configuration


def plan(text: str) -> Plan:
    head = "campaign: 1\nname: o\nspace: nccl-node\nworkload: {backend: xccl}\n"
    return parse_campaign(f"{head}{text}\n", Path.cwd()).plan


@pytest.mark.parametrize(
    "text",
    [
        "first: [{{NCCL_P2P_LEVEL: {}}}]",
        "pin: {{NCCL_P2P_LEVEL: {}}}",
        "narrow: {{NCCL_P2P_LEVEL: [{}]}}",
    ],
)
def test_a_number_is_the_name_that_it_stands_for(text: str) -> None:
    # One spelling in the space, or the results of one setting were those of two.
    for number, name in (("1", "PIX"), ("3", "PHB")):
        by_number, by_name = plan(text.format(number)), plan(text.format(name))
        assert by_number.first == by_name.first
        assert by_number.space.key == by_name.space.key
        assert by_number.space.pinned == by_name.space.pinned
    assert name in f"{by_number.first} {by_number.space.pinned} {by_number.space.by_name}"


def test_a_configuration_that_a_program_makes_has_the_names() -> None:
    (problem,) = plan("seed: 2").space.check({"NCCL_P2P_LEVEL": "3"})
    assert "write PHB: the library reads 3 as PHB" in problem


def test_a_number_of_what_needs_an_opt_in_says_so() -> None:
    with pytest.raises(CampaignError) as caught:
        plan("first: [{NCCL_P2P_LEVEL: 4}]")
    why = 'reads 4 as SYS, which needs an opt-in: opt_in: ["NCCL_P2P_LEVEL=SYS"]'
    assert why in caught.value.message
    opted = plan('first: [{NCCL_P2P_LEVEL: SYS}]\nopt_in: ["NCCL_P2P_LEVEL=SYS"]')
    assert opted.first == (Configuration({"NCCL_P2P_LEVEL": "SYS"}),)


def test_a_number_of_a_value_that_the_space_lacks_names_both() -> None:
    with pytest.raises(CampaignError) as caught:
        plan("first: [{NCCL_P2P_LEVEL: 0}]")
    assert "the library reads 0 as LOC; " in caught.value.message


def test_what_stands_for_nothing_gets_the_nearest_value() -> None:
    with pytest.raises(CampaignError) as caught:
        plan("first: [{NCCL_P2P_LEVEL: PBH}]")
    assert "(nearest: " in caught.value.message
