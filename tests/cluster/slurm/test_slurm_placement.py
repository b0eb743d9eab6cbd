"""Node lists in Slurm's short form, and how far nodes stand apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commtune.cluster.placement import _MOST_HOSTS, Distance, Switches, expand_hosts, find_distance
from commtune.cluster.slurm.allocation import (
    Srun,
    _switches_by_address,
    _switches_by_xname,
    read_topology,
)
from commtune.errors import EnvironmentFault

TREE = """
# three levels
SwitchName=root Switches=g[0-1] LinkSpeed=4
SwitchName=g0 Switches=s[0-1]
switchname=g1 switches=s2
SwitchName=s0 Nodes=n[0-1]  # leaf
SwitchName=s1 Nodes=n[2-3]
SwitchName=s2 Nodes=n4,\\
n5
"""

# What 'scontrol show topology' prints.
SHOWN = """SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[001-003,007]", ["n001", "n002", "n003", "n007"]),
        ("n[8-10]", ["n8", "n9", "n10"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[099-101]", ["n099", "n100", "n101"]),
        ("n[01-02,7],gpu-a[1-2]b3", ["n01", "n02", "n7", "gpu-a1b3", "gpu-a2b3"]),
        ("r[0-1]n[0-1]", ["r0n0", "r0n1", "r1n0", "r1n1"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
        ("x1000c0s[0-1]b0n[0-1]", [f"x1000c0s{s}b0n{n}" for s in (0, 1) for n in (0, 1)]),
        ("b,a,b", ["b", "a", "b"]),
        ("[1-2]", ["1", "2"]),
        ("", []),
        ("(null)", []),
        ("None assigned", []),
    ],
)
def test_lists(text: str, names: list[str]) -> None:
    assert list(expand_hosts(text)) == names


@pytest.mark.parametrize(
    "text",
    [
        "n[1-2",
        "n1-2]",
        "n[[1-2]]",
        "n[]",
        "n[2-1]",
        "n[1-x]",
        "n1,,n2",
        ",n1",
        "n 1",
        "n[1-999999999]",
        "n[0-65535],m",
        "n[0-999]m[0-999]",
        "[1-9]" * 9,
    ],
)
def test_what_is_no_list_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        expand_hosts(text)
    assert repr(text[:20])[1:-1] in caught.value.message
    assert caught.value.hint


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        names = expand_hosts(text)
    except EnvironmentFault:
        return
    assert len(names) <= _MOST_HOSTS


@given(st.text(alphabet="n01[]-,9 "))
def test_any_text_like_a_list_is_read_or_refused(text: str) -> None:
    try:
        names = expand_hosts(text)
    except EnvironmentFault:
        return
    assert all(re.fullmatch(r"[n0-9-]+", name) for name in names)


@given(
    st.text(alphabet="abc-", min_size=1),
    st.integers(0, 999),
    st.integers(0, 50),
    st.integers(1, 5),
    st.sampled_from(["", "x", "-ib"]),
)
def test_ranges_give_what_counting_gives(
    prefix: str, low: int, count: int, width: int, suffix: str
) -> None:
    text = f"{prefix}[{low:0{width}}-{low + count:0{width}}]{suffix}"
    expected = [f"{prefix}{n:0{width}}{suffix}" for n in range(low, low + count + 1)]
    assert list(expand_hosts(text)) == expected


def at(*switches: str) -> Switches:
    return tuple(frozenset({switch}) for switch in switches)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        (at("r", "g0", "s0"), at("r", "g0", "s0"), Distance.SAME_SWITCH),
        (at("r", "g0", "s0"), at("r", "g0", "s1"), Distance.SAME_GROUP),
        (at("r", "g0", "s0"), at("r", "g1", "s2"), Distance.DIFFERENT_GROUPS),
        (at("s0"), at("s1"), Distance.DIFFERENT_GROUPS),
        (at("s0"), at(), Distance.UNKNOWN),
        (at(), at(), Distance.UNKNOWN),
    ],
)
def test_distances(one: Switches, other: Switches, distance: Distance) -> None:
    assert find_distance({"a": one, "b": other}, ["a", "b"]) is distance
    assert find_distance({"a": one, "b": other}, ["b", "a"]) is distance


def test_a_site_may_call_its_groups_switches() -> None:
    site = {"n0": at("g0"), "n1": at("g0"), "n2": at("g1")}
    near, far = (find_distance(site, ["n0", n], switch_is_group=True) for n in ("n1", "n2"))
    assert (near, far) == (Distance.SAME_GROUP, Distance.DIFFERENT_GROUPS)


def test_a_run_is_as_far_apart_as_its_farthest_nodes() -> None:
    site = {"a": at("r", "g", "s"), "b": at("r", "g", "s"), "c": at("r", "g", "t")}
    assert find_distance(site, "a") is Distance.SAME_NODE
    assert find_distance(site, "aa") is Distance.SAME_NODE
    assert find_distance({}, "dd") is Distance.SAME_NODE
    assert find_distance(site, "ab") is Distance.SAME_SWITCH
    assert find_distance(site, "abc") is Distance.SAME_GROUP
    assert find_distance(site, "abd") is Distance.UNKNOWN
    assert find_distance(site, "") is Distance.UNKNOWN


def test_an_address_of_slurm() -> None:
    switches = _switches_by_address("s0.s[4-5].tux1.site", "switch.switch.node")
    assert switches == (frozenset({"s0"}), frozenset({"s4", "s5"}))
    assert _switches_by_address("b1.n1", "block.node") == at("b1")
    assert _switches_by_address("n1", "node") == at()
    # A node that hangs higher up has no switch at the lowest levels.
    assert _switches_by_address("s0..n1", "switch.switch.node") == at("s0")


@pytest.mark.parametrize(
    ("address", "pattern"),
    [
        ("", ""),
        ("n1", ""),
        ("a.b", "switch.switch.node"),
        ("s[.n1", "switch.node"),
        ("a", "b"),
        ("s0.", "switch.node"),  # of no node
    ],
)
def test_what_is_no_address(address: str, pattern: str) -> None:
    assert _switches_by_address(address, pattern) == ()


@given(st.text(alphabet="s[1-].n"), st.text(alphabet="node.swich"))
def test_any_address_is_read_or_not(address: str, pattern: str) -> None:
    assert all(_switches_by_address(address, pattern))


def test_topology_conf() -> None:
    topology = read_topology(TREE)
    assert topology["n0"] == at("root", "g0", "s0")
    assert find_distance(topology, ["n0", "n1"]) is Distance.SAME_SWITCH
    assert find_distance(topology, ["n0", "n3"]) is Distance.SAME_GROUP
    assert find_distance(topology, ["n0", "n5"]) is Distance.DIFFERENT_GROUPS
    assert find_distance(topology, ["n0", "nowhere"]) is Distance.UNKNOWN


def test_what_scontrol_shows_of_the_topology() -> None:
    topology = read_topology(SHOWN)
    assert topology["n3"] == at("top", "s1")
    assert find_distance(topology, ["n0", "n3"]) is Distance.SAME_GROUP


def test_blocks() -> None:
    topology = read_topology("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n3\nBlockSizes=2,4\n")
    assert find_distance(topology, ["n1", "n2"]) is Distance.SAME_SWITCH
    assert find_distance(topology, ["n1", "n3"]) is Distance.DIFFERENT_GROUPS


def test_switches_that_contain_each_other_come_to_an_end() -> None:
    cycle = "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=b Nodes=n1\n"
    assert read_topology(cycle) == {"n1": at("a", "b")}


@given(st.text())
def test_any_text_is_a_topology_or_refused(text: str) -> None:
    try:
        assert read_topology(text) is not None
    except EnvironmentFault as fault:
        assert fault.hint


def test_places_as_nodes_say_them() -> None:
    topology = Srun().read_places(
        "n1 top.leaf1.n1 switch.switch.node -\nn2 top.leaf1.n2 switch.switch.node x1c0s0b0n0\n"
        "n3 top.leaf2.n3 switch.switch.node -\nn4 n4 node x1000c0s0b0n0\n"
        "n5 n5 node x1000c0s0b0n1\n"
        "n6 n6 node -\nn7 - - -\nsrun: error: something else\n"
    )
    assert set(topology) == {"n1", "n2", "n3", "n4", "n5"}
    assert find_distance(topology, ["n1", "n2"]) is Distance.SAME_SWITCH
    assert find_distance(topology, ["n1", "n3"]) is Distance.SAME_GROUP
    assert find_distance(topology, ["n4", "n5"]) is Distance.SAME_SWITCH
    assert find_distance(topology, ["n1", "n6"]) is Distance.UNKNOWN


@given(st.text())
def test_any_text_is_a_list_of_places(text: str) -> None:
    assert Srun({}).read_places(text) is not None


def test_xnames() -> None:
    names = {
        "nid001000": "x1000c0s0b0n0",
        "nid001001": "x1000c0s0b0n1",
        "nid001004": "x1000c1s0b0n0",
        "nid001005": "x1001c0s0b0n0",
    }
    nodes, site = list(names), {node: _switches_by_xname(xname) for node, xname in names.items()}
    assert all(site.values())
    assert find_distance(site, nodes[:2]) is Distance.SAME_SWITCH
    assert find_distance(site, nodes[:3]) is Distance.SAME_GROUP
    assert find_distance(site, nodes) is Distance.DIFFERENT_GROUPS
    assert _switches_by_xname("x1000c0r1b0") == ()
