"""What a wrong catalogue file says: exact place, offending value, nearest legal one."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogue_checks import build_catalogue

from commtune.documents.yaml_document import load_document, parse_document
from commtune.errors import DocumentError, UnknownName
from commtune.spaces.catalogue.loading import is_after_version, is_before_version, load_catalogue

HEAD = """\
catalogue: 1
library: mylib
title: MyLib
summary: A library.
prefixes: [MYLIB_]
numbers: Plain.
checked: {newest: 2.1, how: By reading.}
sources: {src: my source}
parts: {extra: {title: a part}}
variables:
"""
A = """\
  MYLIB_A:
    type: choice
    values: [x, y]
    meaning: What it does.
    operations: [collectives]
    scope: both
    role: tune
    known_from: source
    documented: true
    source: src
"""
B = A.replace("MYLIB_A", "MYLIB_B")
FIRST = len(HEAD.splitlines()) + 1  # the line of MYLIB_A

WRONG = {
    "unknown key": (
        A.replace("    scope: both", "    scope: both\n    defualt: 1"),
        f"{FIRST + 6}: unknown key 'defualt' in variables.MYLIB_A",
        "nearest: default",
    ),
    "unknown danger": (
        A + "    dangers: [abort, hangs]\n",
        f"{FIRST + 10}: variables.MYLIB_A.dangers[1]: 'hangs' is not a known value",
        "nearest: hang",
    ),
    "missing key": (
        A.replace("    meaning: What it does.\n", ""),
        f"{FIRST}: key 'meaning' is missing in variables.MYLIB_A",
        "add `meaning: ...`",
    ),
    "truth value": (
        A.replace("[x, y]", "[x, no]"),
        f"{FIRST + 2}: variables.MYLIB_A.values[1]: no without quotes is a truth value in YAML",
        'write "no"',
    ),
    "doubled name": (
        A + A,
        f"{FIRST + 10}: key 'MYLIB_A' occurs twice; first in line {FIRST}",
        "remove one of them",
    ),
    "an alias that is a variable": (
        A + "    aliases: [MYLIB_B]\n" + B,
        f"{FIRST + 11}: 'MYLIB_B' stands here and under MYLIB_A",
        "name it once",
    ),
    "no source of that key": (
        A.replace("source: src", "source: {scr: file.c}"),
        f"{FIRST + 9}: MYLIB_A: no source is called 'scr'",
        "nearest: src",
    ),
    "need of an unknown variable": (
        A + "    needs:\n      - {variable: MYLIB_BC, one_of: [1]}\n" + B,
        f"{FIRST + 11}: 'MYLIB_BC' is not a variable of mylib",
        "nearest: MYLIB_B",
    ),
    "need of itself": (
        A + "    needs:\n      - {variable: MYLIB_A, above: 0}\n",
        f"{FIRST + 11}: MYLIB_A needs itself",
        "leave it out",
    ),
    "need with two tests": (
        A + "    needs:\n      - {variable: MYLIB_B, above: 0, one_of: [1]}\n" + B,
        f"{FIRST + 11}: variables.MYLIB_A.needs[0]: a need has one of one_of, none_of and above",
        "",
    ),
    "unknown part": (
        A + "    part: extar\n",
        f"{FIRST + 10}: MYLIB_A: no part is called 'extar'",
        "nearest: extra",
    ),
    "restricted and offered": (
        A + "    restricted: [y]\n",
        f"{FIRST + 10}: MYLIB_A: the value 'y' occurs twice",
        "remove one; a restricted value is not among `values`",
    ),
    "choice without values": (
        A.replace("    values: [x, y]\n", ""),
        f"{FIRST}: MYLIB_A is a choice without values",
        "add `values: [...]`, or make it `type: text`",
    ),
    "no version": (
        A + "    history: {before: x}\n",
        f"{FIRST}: MYLIB_A: 'before' does not begin with a version",
        "write it in numbers and dots; further words belong into `note`",
    ),
    "both seen and since": (
        A + "    seen: 1.0\n    since: 2.0\n",
        f"{FIRST + 10}: MYLIB_A has both `seen` and `since`",
        "write `since` where the version that it came with is known",
    ),
    "prefix": (
        A.replace("MYLIB_A", "MYLLIB_A"),
        f"{FIRST}: 'MYLLIB_A' begins with none of the file's prefixes",
        "prefixes: MYLIB_",
    ),
    "interaction of an unknown variable": (
        A + "interactions:\n  x:\n    variables: [MYLIB_A, MYLIB_Q*]\n    rule: Both.\n",
        f"{FIRST + 12}: 'MYLIB_Q*' is not a variable of any catalogue",
        "nearest: MYLIB_A",
    ),
    "a spelling of no value": (
        A + "    read_as: {1: z}\n",
        f"{FIRST + 10}: MYLIB_A: '1' is no other spelling of 'z'",
        "write SPELLING: VALUE; the value is a legal one, the spelling is not",
    ),
    "a spelling that is a value": (
        A + "    read_as: {x: y}\n",
        f"{FIRST + 10}: MYLIB_A: 'x' is no other spelling of 'y'",
        "write SPELLING: VALUE; the value is a legal one, the spelling is not",
    ),
    "wrong right name": (
        A + "not_variables:\n  MYLIB_AA: {what: misspelled, truth: One A., use: [MYLIB_B]}\n",
        f"{FIRST + 11}: 'MYLIB_B' is not a variable of any catalogue",
        "nearest: MYLIB_A",
    ),
    "a variable that is none": (
        A + "not_variables:\n  MYLIB_A: {what: removed, truth: It is gone.}\n",
        f"{FIRST + 11}: 'MYLIB_A' stands here and under variables",
        "name it once",
    ),
    "unused source": (
        A + "interactions: {}\n",
        "8: source 'other' is not used",
        "leave it out; one that holds for the whole file begins with 'general: '",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_line(case: str, tmp_path: Path) -> None:
    body, message, hint = WRONG[case]
    head = HEAD.replace("src: my source", "src: my source, other: x") if "unused" in case else HEAD
    file = tmp_path / "wrong.yaml"
    file.write_text(head + body)
    with pytest.raises(DocumentError) as caught:
        build_catalogue(load_document(file))
    assert caught.value.message == f"{file}:{message}"
    assert caught.value.hint == hint


def test_a_right_file() -> None:
    good = A + "    needs:\n      - {variable: MYLIB_B, none_of: [0, 1]}\n    default: 1.50\n" + B
    good += "interactions: {order: {variables: [MYLIB_*, NCCL_ALGO], rule: Both.}}\n"
    found = build_catalogue(parse_document(HEAD + good)).variables["MYLIB_A"]
    assert found.default == "1.50"  # as written
    assert str(found.needs[0]) == "MYLIB_B is not 0 or 1"
    assert found.source == {"src": []}


def test_reading_quickly_finds_the_same(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(HEAD + A + "    default: no\n")
    for document in (load_document(file), parse_document(file.read_text(), file, quick=True)):
        with pytest.raises(DocumentError, match=rf"a.yaml:{FIRST + 10}: .*truth value"):
            build_catalogue(document)


def test_a_library_without_a_catalogue() -> None:
    with pytest.raises(UnknownName) as caught:
        load_catalogue("ncl")
    assert caught.value.hint == "nearest: nccl"


@pytest.mark.parametrize(
    ("version", "bound", "is_before", "is_after"),
    [
        ("4.1.6", "4.1", False, False), ("4.0", "4.1", True, False), ("5.0.1", "4.1", False, True),
        ("2.30.7-1", "2.30.7", False, False), ("2.9.6", "2.30", True, False),
        ("2.3", "2.3.5", True, False), ("2021.13.1", "2021.9", False, True),
    ],
)  # fmt: skip
def test_versions_compare_by_number(
    version: str, bound: str, is_before: bool, is_after: bool
) -> None:
    assert (is_before_version(version, bound), is_after_version(version, bound)) == (
        is_before,
        is_after,
    )
