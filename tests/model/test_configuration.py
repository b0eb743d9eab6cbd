"""Configurations as values: order, equality, keys, and the shell commands of changes."""

from __future__ import annotations

import subprocess
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commtune.model import DEFAULT, Configuration
from commtune.model.configuration import Changes

_NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,12}", fullmatch=True)
_VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@given(st.dictionaries(_NAMES, _VALUES), st.randoms())
def test_the_order_of_assignments_is_no_part_of_it(values: dict[str, str], rng: Random) -> None:
    shuffled = list(values.items())
    rng.shuffle(shuffled)
    one, other = Configuration(values), Configuration(dict(shuffled))
    assert one == other and hash(one) == hash(other)
    assert (one.key, str(one), list(one)) == (other.key, str(other), sorted(values))


def test_keys_stay_those_that_databases_hold() -> None:
    assert DEFAULT.key == "44136fa355b3678a"
    assert Configuration({"NCCL_ALGO": "Tree", "A": "ü"}).key == "c14e7fda09cf1e89"


def test_it_is_no_one_elses_to_change() -> None:
    given_values = {"A": "1"}
    configuration = Configuration(given_values)
    given_values["A"] = "2"
    assert dict(configuration) == {"A": "1"}
    with pytest.raises(TypeError):
        configuration["A"] = "3"  # type: ignore[index]


@settings(max_examples=25)
@given(st.dictionaries(_NAMES.map("CT_{}".format), st.none() | _VALUES, min_size=1))
def test_a_shell_does_what_changes_say(changes: dict[str, str | None]) -> None:
    # Each variable is there before, so that what is unset can be seen to be gone.
    before = dict.fromkeys(changes, "before")
    done = subprocess.run(
        ["sh", "-c", f"{Changes(changes)}; env -0"], env=before, capture_output=True, check=True
    )
    after = dict(item.split("=", 1) for item in done.stdout.decode().split("\0") if item)
    assert {name: after.get(name) for name in changes} == changes
