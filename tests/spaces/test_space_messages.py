"""What a wrong space file says: exact place, offending value, nearest legal one."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.documents.yaml_document import parse_document
from commtune.errors import CommtuneError, SpaceError, UnknownName
from commtune.spaces.loading import build_space, load_space

HEAD = "space: 1\nname: wrong\nlibrary: none\nparameters:\n"  # four lines

WRONG = {
    "unknown key": (
        "  - name: A\n    kind: bool\n    speling: n/y\n",
        "wrong.yaml:7: unknown key 'speling' in parameters[0] (A)",
        "nearest: spelling",
    ),
    "unknown kind": (
        "  - name: A\n    kind: boolean\n",
        "wrong.yaml:6: parameters[0] (A).kind: 'boolean' is not a known value",
        "nearest: bool",
    ),
    "missing key": (
        "  - name: A\n    kind: choice\n",
        "wrong.yaml:5: key 'values' is missing in parameters[0] (A)",
        "add `values: ...`",
    ),
    "yes without quotes": (
        "  - name: A\n    kind: choice\n    values: [maybe, yes]\n",
        "wrong.yaml:7: parameters[0] (A).values[1]: yes without quotes is a truth value in YAML",
        'write "yes"',
    ),
    "doubled key": (
        "  - name: A\n    kind: bool\n    kind: choice\n",
        "wrong.yaml:7: key 'kind' occurs twice; first in line 6",
        "remove one of them",
    ),
    "doubled parameter": (
        "  - name: A\n    kind: bool\n  - name: A\n    kind: bool\n",
        "wrong.yaml:7: parameter 'A' occurs twice",
        "keep one of them; a campaign changes a parameter with `narrow`",
    ),
    "doubled value": (
        "  - name: A\n    kind: choice\n    values:\n      - x\n      - y\n      - x\n",
        "wrong.yaml:10: the value 'x' occurs twice",
        "remove one",
    ),
    "no values": (
        "  - name: A\n    kind: choice\n    values: []\n",
        "wrong.yaml:7: parameters[0] (A).values is empty",
        "give it at least one entry",
    ),
    "more values than fit into memory": (
        "  - name: A\n    kind: integer\n    range: [1, 1000000000000000000000]\n",
        "wrong.yaml:7: A has 1,000,000,000,000,000,000,000 values",
        "widen the step",
    ),
    "empty range": (
        "  - name: A\n    kind: integer\n    range: [8, 4]\n",
        "wrong.yaml:7: A: the range 8 to 4 is empty",
        "nearest: [4, 8]",
    ),
    "not a power of two": (
        "  - name: A\n    kind: power-of-two\n    range: [3, 8]\n",
        "wrong.yaml:7: A: 3 is not a power of two",
        "nearest: 2",
    ),
    "ambiguous size": (
        "  - name: A\n    kind: bytes\n    values: [4KiB, 64K]\n",
        "wrong.yaml:7: parameters[0] (A).values[1]: '64K' has no known unit of bytes",
        "nearest: 64KiB",
    ),
    "condition on an unknown variable": (
        "  - name: NCCL_ALGO\n    kind: choice\n    values: [Ring]\n"
        "  - name: B\n    kind: bool\n    when: {NCCL_ALG: Ring}\n",
        "wrong.yaml:10: 'NCCL_ALG' is not a parameter of the space",
        "nearest: NCCL_ALGO",
    ),
    "condition on an illegal word": (
        "  - name: NCCL_ALGO\n    kind: choice\n    values: [Ring, Tree]\n"
        "  - name: B\n    kind: bool\n    when:\n      NCCL_ALGO: [Ring, tre]\n",
        "wrong.yaml:11: 'tre' is not a value of NCCL_ALGO",
        "nearest: Tree",
    ),
    "condition on an illegal size": (
        "  - name: A\n    kind: bytes\n    values: [4KiB, 64KiB]\n"
        "  - name: B\n    kind: bool\n    when: {A: 60KiB}\n",
        "wrong.yaml:10: '60KiB' is not a value of A",
        "nearest: 65536 (64 KiB)",
    ),
    "condition on a word where numbers are": (
        "  - name: A\n    kind: integer\n    values: [16, 32]\n"
        "  - name: B\n    kind: bool\n    when: {A: tree}\n",
        "wrong.yaml:10: 'tree' is not a value of A",
        "known: 16, 32",
    ),
    "condition on a number where words are": (
        "  - name: A\n    kind: choice\n    values: [ring, tree]\n"
        "  - name: B\n    kind: bool\n    when: {A: 16}\n",
        "wrong.yaml:10: '16' is not a value of A",
        "known: ring, tree",
    ),
    "conditions in a circle": (
        "  - name: A\n    kind: bool\n    when: {B: 1}\n"
        "  - name: B\n    kind: bool\n    when: {A: 1}\n",
        "wrong.yaml:7: conditions are circular: A -> B -> A",
        "remove one of these conditions",
    ),
    "default outside": (
        "  - name: A\n    kind: bool\n    unset: false\n",
        "wrong.yaml:7: the default is not in the space: A must not be unset",
        "leave out `unset: false`, give A a condition, or pin it",
    ),
    "default forbidden": (
        "  - name: A\n    kind: bool\nforbidden:\n  - when: {A: unset}\n    why: hangs\n",
        "wrong.yaml:7: the default is not in the space: A=(unset) is forbidden: hangs",
        "a forbidden combination must name at least one value that is set",
    ),
    "harm without an opt-in": (
        "  - name: A\n    kind: bool\n    risks: [harm-to-others]\n",
        "wrong.yaml:7: A has the risk 'harm-to-others' without an opt-in",
        "add `opt_in: true`, or put the value at fault under `restricted`",
    ),
    "unknown risk": (
        "  - name: A\n    kind: bool\n    risks: [harm]\n",
        "wrong.yaml:7: parameters[0] (A).risks[0]: 'harm' is not a known value",
        "nearest: harm-to-others",
    ),
    "relation without numbers": (
        "  - name: A\n    kind: bool\n  - name: B\n    kind: integer\n    values: [1]\n"
        "relations:\n  - at_most: [A, B]\n    why: w\n",
        "wrong.yaml:11: A has no numbers",
        "relations are between numbers",
    ),
    "variable in two places": (
        "  - name: A\n    kind: bool\n"
        "  - name: g\n    kind: group\n    choices:\n      x: {A: 1}\n",
        "wrong.yaml:7: variable A of g is already set by A",
        "one variable belongs to one parameter, group or pin",
    ),
    "unknown operation": (
        "  - name: A\n    kind: bool\noperations: [all-reduce]\n",
        "wrong.yaml:7: operations[0]: 'all-reduce' is not a known value",
        "nearest: allreduce",
    ),
    "tab": (
        "  - name: A\n\t  kind: bool\n",
        "wrong.yaml:6: not proper YAML: while scanning for the next token, "
        "found character '\\t' that cannot start any token",
        "indent with spaces; YAML does not allow tabs",
    ),
    "colon in plain text": (
        "  - name: A\n    note: a: b\n    kind: bool\n",
        "wrong.yaml:6: not proper YAML: mapping values are not allowed here",
        "indent keys alike; put a value with ': ' in quotes",
    ),
    "several": (
        "  - name: A\n    kind: bool\n    spell: 1\n"
        "  - name: B\n    kind: boool\n  - name: C\n    kind: choice\n    values: [off]\n",
        "wrong.yaml:7: unknown key 'spell' in parameters[0] (A) (3 problems in all)",
        "nearest: spelling\n"
        "line 9: parameters[1] (B).kind: 'boool' is not a known value (nearest: bool)\n"
        "line 12: parameters[2] (C).values[0]: off without quotes is a truth value in YAML "
        '(write "off")',
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_space_says_where_and_how_to_mend_it(case: str) -> None:
    text, message, hint = WRONG[case]
    with pytest.raises(SpaceError) as caught:
        build_space(parse_document(HEAD + text, Path("wrong.yaml"), SpaceError))
    assert caught.value.message == message
    assert caught.value.hint == hint


def test_another_format_version_is_refused() -> None:
    text = "space: 2\nname: later\nlibrary: none\nparameters: [{name: A, kind: bool}]\n"
    with pytest.raises(SpaceError, match=r"later.yaml:1: space: '2' is not a known value"):
        build_space(parse_document(text, Path("later.yaml"), SpaceError))


def test_twenty_problems_fit_on_one_screen() -> None:
    text = HEAD + "".join(f"  - name: V{i}\n    kind: boool\n" for i in range(20))
    with pytest.raises(SpaceError) as caught:
        build_space(parse_document(text, Path("wrong.yaml"), SpaceError))
    assert "(20 problems in all)" in caught.value.message
    assert len(caught.value.hint.splitlines()) == 6
    assert caught.value.hint.endswith("\nand 15 more")


def test_empty_and_foreign_documents() -> None:
    for text, message in {
        "": "x.yaml: the document is empty",
        "[]": "x.yaml:1: the document is not a mapping",
        "[" * 10_000: "x.yaml:1: nested too deeply",
        "a: &a [*a]": "x.yaml:1: aliases make the document endless",
        "a: 1\n---\nb: 2": "x.yaml:2: not proper YAML: expected a single document in the stream, "
        "but found another document",
        "a: !!python/name:os.system x": "x.yaml:1: tag "
        "'tag:yaml.org,2002:python/name:os.system' is not used here",
    }.items():
        with pytest.raises(SpaceError) as caught:
            build_space(parse_document(text, Path("x.yaml"), SpaceError))
        assert caught.value.message == message


def test_names_of_spaces(tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        load_space("mpich-hots")
    assert caught.value.message == "no space is called 'mpich-hots'"
    assert caught.value.hint.startswith("nearest: mpich-host;")
    missing = tmp_path / "missing.yaml"
    with pytest.raises(SpaceError) as not_there:
        load_space(missing)
    assert not_there.value.message == f"{missing}: can't be read: no such file or directory"


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(CommtuneError, match="not UTF-8 text"):
        load_space(path)
