"""What counts as a difference between a library and its catalogue, on made-up answers."""

from __future__ import annotations

import pytest
from asked_libraries import Answer
from catalogue_comparing import Difference, Known, complaints, default_at, differences, lacking

from commtune.spaces.catalogue.loading import load_catalogue
from commtune.spaces.catalogue.schema import Catalogue

#: Since 1.12.0, 512M by default, since 1.16.0 inf.
NAME = "UCX_RCACHE_MAX_UNRELEASED"
#: A choice of 0 to 6 in Open MPI 5.0.
CHOICE = "OMPI_MCA_coll_tuned_allreduce_algorithm"


def only(library: str, *names: str) -> Catalogue:
    full = load_catalogue(library)
    kept = {name: full.variables[name] for name in names}
    return full.model_copy(update={"variables": kept, "others": []})


def compared(version: str, defaults: dict[str, str | None]) -> set[Difference]:
    return differences(Answer("ucx", version, defaults), only("ucx", NAME), others=True)


@pytest.mark.parametrize("value", ["512M", "512m", "512MiB", "536870912", "512 mb"])
def test_spellings_of_one_default_are_equal(value: str) -> None:
    assert compared("1.13.1", {NAME: value}) == set()


@pytest.mark.parametrize(
    ("version", "printed", "kind"),
    [
        ("1.13.1", "inf", "default"),
        ("1.13.1", "512K", "default"),
        ("1.13.1", "", "default"),
        ("1.20.1", "512M", "default"),
        ("1.20.1", "inf", None),
        ("1.20.1", "18446744073709551615", None),
        ("1.20.1", None, None),  # it has the name and says nothing of a default
        ("1.11.2", "512M", "present"),
    ],
)
def test_defaults_and_versions(version: str, printed: str | None, kind: str | None) -> None:
    assert {one.kind for one in compared(version, {NAME: printed})} == ({kind} - {None})


def test_a_name_that_is_not_there() -> None:
    assert compared("1.20.1", {}) == {Difference("absent", NAME)}
    assert compared("1.11.2", {}) == set()


def test_the_default_of_a_version_that_nobody_looked_at_is_unknown() -> None:
    variable = load_catalogue("ucx").variables[NAME]
    found = [default_at(variable, version) for version in ("1.10", "1.12.1", "1.16.0", "2.0")]
    assert found == [None, "512M", "inf", "inf"]


def test_values_that_the_library_does_not_list() -> None:
    words = {CHOICE: {"0": "ignore", "1": "basic_linear"}}
    answer = Answer(
        "openmpi", "5.0.11", {CHOICE: "ignore"}, {CHOICE: frozenset(["0", "1", "2", "3"])}, words
    )
    found = differences(answer, only("openmpi", CHOICE), others=True)
    assert found == {Difference("values", CHOICE, "4, 5, 6")}


def test_names_without_an_entry_are_looked_for_on_demand() -> None:
    catalogue = only("ucx").model_copy(update={"others": [NAME]})
    empty = Answer("ucx", "1.20.1", {})
    assert differences(empty, catalogue, others=True) == {Difference("absent", NAME)}
    assert differences(empty, catalogue, others=False) == set()


def test_a_name_that_is_said_not_to_be_read() -> None:
    answer = Answer("ucx", "1.20.1", {"UCX_IB_REG_METHODS": "odp", NAME: "inf"})
    assert differences(answer, only("ucx", NAME)) == {Difference("named", "UCX_IB_REG_METHODS")}


def test_what_is_lacking() -> None:
    answer = Answer("ucx", "1.20.1", {NAME: "inf", "UCX_NEW": None, "OTHER": None})
    assert lacking(answer, only("ucx", NAME)) == ["UCX_NEW"]


ABSENT = Difference("absent", "UCX_A_B")
DEFAULT = Difference("default", "UCX_A_C", "2", "1")


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ([], ["UCX_A_B: the catalogue has it", "UCX_A_C: default '2', in the catalogue '1'"]),
        ([Known("absent", "UCX_A_B", "why"), Known("default", "UCX_A_C", "why", "2")], []),
        ([Known("absent", "UCX_*_B", "why"), Known("default", "UCX_A_C", "why", "2")], []),
        (
            [Known("absent", "UCX_*", "why"), Known("default", "UCX_A_C", "why", "2")],
            ["UCX_A_C: UCX_* is known as absent, and this is there"],
        ),
        (
            [Known("absent", "UCX_A_B", "why"), Known("default", "UCX_A_C", "why", "3")],
            ["UCX_A_C: default '2', in the catalogue '1', known as '3'"],
        ),
        (
            [
                Known("absent", "UCX_A_B", "why"),
                Known("default", "UCX_A_C", "why", "2"),
                Known("present", "UCX_A_D", "why"),
            ],
            ["UCX_A_D: known as present, and is not: why"],
        ),
    ],
)
def test_complaints(known: list[Known], said: list[str]) -> None:
    answer = Answer("ucx", "1.20.1", {"UCX_A_C": "2"})
    found = complaints({ABSENT, DEFAULT}, known, answer)
    assert len(found) == len(said)
    assert all(one.startswith(start) for one, start in zip(found, said, strict=True)), found
