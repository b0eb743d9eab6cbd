"""What a campaign changes in a space: narrow, pin, extend, opt in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commtune.documents.validation import validate_part
from commtune.documents.yaml_document import parse_document
from commtune.errors import CampaignError, SpaceError
from commtune.model import DEFAULT
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import build_space
from commtune.spaces.schema import CustomizationDocument
from commtune.spaces.space import Space

TEXT = """\
space: 1
name: small
library: toy
pin: {TOY_DEBUG: 0}
parameters:
  - name: TOY_ALGO
    kind: choice
    values: [ring, tree, wild]
    restricted:
      - {value: wild, risks: [wrong-result], why: sums are wrong on odd ranks}
  - name: TOY_RADIX
    kind: power-of-two
    range: [2, 8]
    when: {TOY_ALGO: tree}
  - name: TOY_SIZE
    kind: bytes
    range: [4KiB, 64KiB]
    factor: 4
  - name: TOY_LANE
    kind: integer
    range: [0, 3]
    opt_in: true
    risks: [harm-to-others]
  - name: limits
    kind: group
    choices:
      low: {TOY_MIN: 1, TOY_MAX: 2}
      high: {TOY_MIN: 4}
"""

RELATIONS = """
relations:
  - {at_most: [TOY_RADIX, TOY_SIZE], times: 2, why: a stage each}
  - {product_at_most: {of: [TOY_SIZE, TOY_RADIX], limit: 1000000}, why: no more memory}
"""
RULED = TEXT + RELATIONS

CAMPAIGN = """\
campaign: 1
name: mine
space: small
narrow:
  TOY_SIZES: [4KiB]
  TOY_SIZE: [4KiB, 5KiB]
  TOY_ALGO: [wild]
  TOY_LANE: 1
pin:
  TOY_SIZE: 60KiB
  TOY_RADIX: 2
opt_in: [TOY_LANES]
extend:
  - name: TOY_NEW
    kind: booll
"""


def small() -> Space:
    return build_space(parse_document(TEXT, Path("small.yaml"), SpaceError))


def test_counts_of_the_whole() -> None:
    # algorithm: unset, ring, or tree with 4 radix values; 4 sizes; 3 limits
    assert small().count() == 6 * 4 * 3
    assert small().pinned == {"TOY_DEBUG": "0"}
    assert "TOY_DEBUG" in small().variables


def test_pins_are_not_part_of_configurations() -> None:
    assert next(small().configurations()) == DEFAULT
    assert small().check({"TOY_DEBUG": "0"}) == ["TOY_DEBUG is pinned to '0' in every run"]


def test_pinning_moves_a_variable_from_the_search_to_every_run() -> None:
    space = customize_space(small(), pin={"TOY_SIZE": "16KiB", "limits": "high"})
    assert space.pinned == {"TOY_DEBUG": "0", "TOY_SIZE": "16384", "TOY_MIN": "4"}
    assert space.count() == 6
    assert next(space.configurations()) == DEFAULT


def test_conditions_see_pins() -> None:
    assert customize_space(small(), pin={"TOY_ALGO": "ring"}).count() == 4 * 3
    tree = customize_space(small(), pin={"TOY_ALGO": "tree"})
    assert tree.count() == 4 * 4 * 3
    assert tree.check({"TOY_RADIX": "8"}) == []


def test_pinning_to_unset_leaves_a_variable_alone() -> None:
    space = customize_space(small(), pin={"TOY_ALGO": "unset"})
    assert space.count() == 4 * 3
    assert "TOY_ALGO" not in space.variables


def test_opting_in() -> None:
    assert customize_space(small(), opt_in=["TOY_LANE"]).count() == 72 * 5
    assert customize_space(small(), opt_in=["TOY_ALGO=wild"]).count() == 7 * 4 * 3
    assert customize_space(small(), opt_in=["TOY_ALGO"]).check({"TOY_ALGO": "wild"}) == []
    narrowed = customize_space(small(), opt_in=["TOY_LANE"], narrow={"TOY_LANE": ["1"]})
    assert narrowed.count() == 72 * 2


def test_extending_may_build_on_what_is_there() -> None:
    new: list[dict[str, Any]] = [
        {"name": "TOY_DEPTH", "kind": "integer", "range": [1, 2], "when": {"TOY_ALGO": "tree"}},
        {"name": "SITE_NIC", "kind": "choice", "values": ["cxi0"]},
    ]
    assert customize_space(small(), extend=new).count() == (2 + 4 * 3) * 4 * 3 * 2
    pinned = customize_space(small(), extend=new, pin={"SITE_NIC": "cxi0"})
    assert pinned.pinned["SITE_NIC"] == "cxi0"


def test_extending_what_is_there_adds_values_to_it() -> None:
    # A number between others has their part in conditions and rules.
    size = {"name": "TOY_SIZE", "kind": "bytes", "values": [1, "16KiB"]}
    radix = {"name": "TOY_RADIX", "kind": "integer", "values": [16]}
    algorithm = {"name": "TOY_ALGO", "kind": "choice", "values": ["star"]}
    space = customize_space(small(), extend=[size, radix, algorithm])
    assert space.count() == (7 + 1) * 5 * 3
    assert space.check({"TOY_SIZE": "1", "TOY_ALGO": "star"}) == []
    assert space.check({"TOY_ALGO": "tree", "TOY_RADIX": "16"}) == []
    assert "it needs TOY_ALGO tree" in space.check({"TOY_ALGO": "star", "TOY_RADIX": "16"})[0]
    lane = customize_space(
        small(), extend=[{"name": "TOY_LANE", "kind": "integer", "values": [99]}]
    )
    assert lane.left_out["TOY_LANE"].numbers["99"] == 99  # still for the site to open
    assert lane.count() == small().count()


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ({"kind": "bool"}, "TOY_ALGO is of the kind choice in space small"),
        ({"kind": "choice", "values": ["ring"]}, "TOY_ALGO is in space small already"),
        ({"kind": "choice", "values": ["star"], "unset": False}, "so 'unset' can't be said of it"),
    ],
)
def test_extending_changes_nothing_else_of_what_is_there(
    addition: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpaceError, match=message):
        customize_space(small(), extend=[{"name": "TOY_ALGO", **addition}])
    group = {"name": "limits", "kind": "group", "choices": {"all": {"TOY_MIN": 9}}}
    with pytest.raises(SpaceError, match="limits is in space small already"):
        customize_space(small(), extend=[group])


def test_extending_twice_with_one_name_is_refused() -> None:
    new = {"name": "TOY_NEW", "kind": "bool"}
    with pytest.raises(SpaceError, match="parameter 'TOY_NEW' occurs twice"):
        customize_space(small(), extend=[new, new])
    with pytest.raises(SpaceError, match="TOY_DEBUG of TOY_DEBUG is already set by a pin"):
        customize_space(small(), extend=[{"name": "TOY_DEBUG", "kind": "bool"}])


def test_a_pin_that_takes_the_default_away_is_refused() -> None:
    new = {"name": "TOY_X", "kind": "bool", "unset": False, "when": {"TOY_ALGO": "tree"}}
    space = customize_space(small(), extend=[new])
    with pytest.raises(SpaceError) as caught:
        customize_space(space, pin={"TOY_ALGO": "tree"})
    assert caught.value.problem == "the default is not in the space: TOY_X must not be unset"
    assert customize_space(space, pin={"TOY_ALGO": "tree", "TOY_X": "1"}).pinned["TOY_X"] == "1"


def test_the_key_is_the_content() -> None:
    noted = TEXT.replace("kind: bytes\n", "kind: bytes\n    note: a note\n    source: a book\n")
    renamed = noted.replace("name: small", "name: other")
    assert build_space(parse_document(renamed)).key == small().key
    for old, new in {
        "TOY_DEBUG: 0": "TOY_DEBUG: 1",
        "range: [2, 8]": "range: [2, 4]",
        "when: {TOY_ALGO: tree}": "when: {TOY_ALGO: ring}",
        "TOY_MAX: 2": "TOY_MAX: 3",
    }.items():
        assert build_space(parse_document(TEXT.replace(old, new))).key != small().key
    ruled = build_space(parse_document(RULED))
    for old, new in {"times: 2": "times: 3", "limit: 1000000": "limit: 1000001"}.items():
        assert build_space(parse_document(RULED.replace(old, new))).key != ruled.key
    assert customize_space(small(), narrow={"TOY_SIZE": ["4KiB"]}).key != small().key
    assert customize_space(small(), opt_in=["TOY_LANE"]).key != small().key


def test_a_pin_of_a_variable_that_the_space_lacks_says_how_to_add_it() -> None:
    with pytest.raises(SpaceError) as caught:
        customize_space(small(), pin={"OTHER_NAME": "1"})
    assert caught.value.hint == "declare it: `extend: [{name: OTHER_NAME, ...}]`"
    with pytest.raises(SpaceError) as caught:
        customize_space(small(), pin={"NCCL_PROTO": "Simple"})
    hint = caught.value.hint
    assert hint.startswith("declare it: `extend: [{name: NCCL_PROTO, kind: choice, values: [LL, ")
    with pytest.raises(SpaceError) as caught:
        customize_space(small(), pin={"NCCL_P2P_DISABLE": "1"})
    assert "{name: NCCL_P2P_DISABLE, kind: bool, spelling: 0/1}" in caught.value.hint


@pytest.mark.parametrize(
    ("part", "message", "hint"),
    [
        ({"narrow": ["TOY_SIZES"]}, "5: 'TOY_SIZES' is not a parameter of space small",
         "nearest: TOY_SIZE"),
        ({"narrow": ["TOY_SIZE"]}, "6: '5KiB' is not a value of TOY_SIZE",
         "nearest: 4096 (4 KiB)"),
        ({"narrow": ["TOY_ALGO"]}, "7: TOY_ALGO=wild needs an opt-in",
         'add `opt_in: ["TOY_ALGO=wild"]`'),
        ({"narrow": ["TOY_LANE"]}, "8: 'TOY_LANE' needs an opt-in", "add `opt_in: [TOY_LANE]`"),
        ({"pin": ["TOY_SIZE"]}, "10: '60KiB' is not a value of TOY_SIZE",
         "nearest: 65536 (64 KiB)"),
        ({"opt_in": [0]}, "12: 'TOY_LANES' does not need an opt-in",
         "nearest: TOY_LANE"),
    ],
)  # fmt: skip
def test_errors_stand_in_the_campaign_file(
    part: dict[str, list[Any]], message: str, hint: str
) -> None:
    document = parse_document(CAMPAIGN, Path("c.yaml"), CampaignError)
    written = {key: document.data[key] for key in ("narrow", "pin", "opt_in")}
    wanted = validate_part(document, written, CustomizationDocument)
    ((key, names),) = part.items()
    value: Any = getattr(wanted, key)
    chosen = value if isinstance(value, list) else {name: value[name] for name in names}
    arguments: dict[str, Any] = {key: chosen}
    with pytest.raises(CampaignError) as caught:
        customize_space(small(), **arguments, document=document)
    assert caught.value.message == f"c.yaml:{message}"
    assert caught.value.hint == hint


def test_a_wrong_extension_stands_in_the_campaign_file() -> None:
    document = parse_document(CAMPAIGN, Path("c.yaml"), CampaignError)
    with pytest.raises(CampaignError) as caught:
        customize_space(small(), extend=document.data["extend"], document=document)
    assert caught.value.message == (
        "c.yaml:15: extend[0] (TOY_NEW).kind: 'booll' is not a known value"
    )


def test_a_group_is_set_whole() -> None:
    space = small()
    assert space.assignment({"TOY_MIN": "1", "TOY_MAX": "2"})["limits"] == "low"
    (problem,) = space.check({"TOY_MIN": "4", "TOY_MAX": "2"})
    assert problem.startswith("'TOY_MIN=4 TOY_MAX=2' is not a choice of group limits (nearest: ")


def test_words_for_what_is_wrong() -> None:
    assert small().check({"TOY_RADIX": "3", "TOY_ALG": "ring", "TOY_LANE": "1"}) == [
        "'TOY_ALG' is not in the space (nearest: TOY_ALGO)",
        "TOY_LANE needs an opt-in (harm-to-others): opt_in: [TOY_LANE]",
        "'3' is not a value of TOY_RADIX (nearest: 2)",
    ]
    assert small().check({"TOY_RADIX": "4"}) == [
        "TOY_RADIX=4 has no effect here: it needs TOY_ALGO tree"
    ]
    needed = TEXT.replace("name: TOY_RADIX\n", "name: TOY_RADIX\n    unset: false\n")
    space = build_space(parse_document(needed, Path("small.yaml"), SpaceError))
    assert space.check({"TOY_ALGO": "tree"}) == ["TOY_RADIX must be set here, to one of 2, 4, 8"]
    with pytest.raises(
        SpaceError, match="not a configuration of space small: 'x' is not"
    ) as caught:
        small().assignment({"TOY_ALGO": "x", "TOY_RADIX": "3"})
    assert caught.value.hint == "'3' is not a value of TOY_RADIX (nearest: 2)"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "times: 2",
            "times: 1000",
            "4096: 1000 * TOY_RADIX must be at most TOY_SIZE: a stage each",
        ),
        (
            "[TOY_RADIX, TOY_SIZE], times: 2",
            "[TOY_SIZE, TOY_RADIX]",
            "8: TOY_SIZE must be at most TOY_RADIX: a stage each",
        ),
        ("limit: 1000000", "limit: 32767", "8: the product must be at most 32767: no more memory"),
    ],
)
def test_words_for_numbers_that_do_not_go_together(old: str, new: str, said: str) -> None:
    space = build_space(parse_document(RULED.replace(old, new)))
    (problem,) = space.check({"TOY_ALGO": "tree", "TOY_RADIX": "8", "TOY_SIZE": "4096"})
    assert problem.endswith(f"={said}")
