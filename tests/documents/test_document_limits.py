"""Documents that once ended in a traceback, in minutes of silence, or in all of the memory."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest

from commtune.campaign.loading import load_campaign, parse_campaign
from commtune.documents.files import read_file
from commtune.documents.yaml_document import load_document, parse_document
from commtune.errors import CommtuneError, DocumentError, SpaceError, UserError
from commtune.replay.recording import load_grid
from commtune.spaces.loading import build_space
from commtune.spaces.space import Space

SPACE = "space: 1\nname: x\nlibrary: own\n"
CAMPAIGN = "campaign: 1\nname: small\nspace: mpich-host-allreduce\n"
LONG = "x" * 5000
HOME = "~nosuchuser is not the home folder of any user here"


def short(value: str) -> str:
    """What a case is called: some are very long."""
    return value[:30]


def space_of(parameters: str, further: str = "") -> Space:
    return build_space(parse_document(f"{SPACE}parameters:\n{parameters}{further}"))


def names(count: int) -> list[str]:
    return [f"V{i}" for i in range(count)]


def integers(count: int, low: int, high: int, kind: str = "integer") -> str:
    lines = [f"- {{name: {n}, kind: {kind}, range: [{low}, {high}]}}\n" for n in names(count)]
    return "".join(lines)


def product(count: int, limit: int) -> str:
    of = ", ".join(names(count))
    return f"relations: [{{product_at_most: {{of: [{of}], limit: {limit}}}, why: w}}]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: " + "[" * 450 + "]" * 450, "1: nested too deeply"),
        ("a: " + "{a: " * 450 + "1" + "}" * 450, "1: nested too deeply"),
        (
            "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 900)),
            "1: nested too deeply",
        ),
        ("[" + "a," * 60_000 + "]", "1: more than 50,000 entries"),
        ("a: " + "1" * 5000, "the number '1111"),
        ("a: -" + "1" * 400, "the number '-111"),
        ("a: " + "1" * 400 + ".5", "the number '1111"),
        ('a: "x\\0y"', "1: a NUL character can't stand here"),
        ('"x\\0y": a', "1: a NUL character can't stand here"),
        ('a: "\\ud800"', "1: half a character (a surrogate) can't stand here"),
        ('b: 1\na: "\\U00110000"', "2: not proper YAML: a number is too large"),
        ("%YAML 1." + "1" * 5000 + "\n---\na: b", "1: not proper YAML: a number is too large"),
    ],
    ids=short,
)
def test_what_no_document_needs_is_refused(text: str, words: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_document(text, Path("x.yaml"))
    assert words in refused.value.message and refused.value.hint


def test_the_largest_number_of_64_bits_is_read() -> None:
    text = "[18446744073709551615, -9223372036854775808]"
    assert parse_document(text).data == [2**64 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("benchmark: {python: '~nosuchuser/x.py:P'}", HOME),
        ("slurm: {templates: '~nosuchuser/x'}", HOME),
        (f"benchmark: {{python: './{LONG}.py:P'}}", "file name too long"),
        (f"benchmark: {{command: ['/{LONG}'], output: osu}}", "file name too long"),
        (f"slurm: {{templates: ./{LONG}}}", "file name too long"),
        (f"system: ./{LONG}.yaml", "file name too long"),
        ("benchmark: {python: /dev/zero}", "there is no pattern file /dev/zero"),
        (f"budget: {{search: {'9' * 4500}s}}", "is not an amount"),
        (f"budget: {{search: '{'9' * 400}'}}", "is not an amount"),
        (f"workload: {{sizes: '8 .. {'9' * 4500} x2'}}", "is not an amount"),
        (f"workload: {{ranks: '{'9' * 400}'}}", "is out of range"),
    ],
    ids=short,
)
def test_campaigns_with_odd_values_are_refused_at_their_line(
    key: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_campaign(CAMPAIGN + key, tmp_path)
    assert words in refused.value.message
    assert refused.value.line == 4
    assert len(refused.value.message) < 1000


@pytest.mark.parametrize(
    "text",
    [
        "facts: [mpich]\nparameters: [{name: MPIR_CVAR_CH4_NUM_VCIS, values: 8}]\n",
        f"include: [{LONG}]\nparameters: [{{name: V, kind: bool}}]\n",
        f"include: [./{LONG}.yaml]\nparameters: [{{name: V, kind: bool}}]\n",
    ],
    ids=short,
)
def test_spaces_with_odd_values_are_refused_at_their_line(text: str) -> None:
    with pytest.raises(SpaceError) as refused:
        build_space(parse_document(SPACE + text, Path("x.yaml"), SpaceError))
    assert "x.yaml:" in refused.value.message or "too long" in refused.value.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("parameters:\n- {name: V, kind: bool}\n- {name: W, kind: choice, values: [%s]}\n", 6),
        ("parameters:\n- {name: %s, kind: bool}\n", 5),
        ("parameters:\n- name: G\n  kind: group\n  choices: {a: {V: '%s'}}\n", 5),
        ("pin: {V: '%s'}\nparameters:\n- {name: W, kind: bool}\n", 4),
    ],
)
def test_a_variable_that_no_program_can_be_started_with_is_refused(text: str, line: int) -> None:
    words = rf"x\.yaml:{line}: '.*' and its value have more bytes than Linux takes"
    with pytest.raises(SpaceError, match=words):
        build_space(parse_document(SPACE + text % ("A" * 300_000), Path("x.yaml"), SpaceError))


def test_digits_of_other_scripts_are_words() -> None:
    space = space_of("- {name: V, kind: integer, values: [1], also: ['²', --5, '٣']}\n")
    assert space.by_name["V"].numbers == {"1": 1}


@pytest.mark.parametrize("name", ["pipe", "device", "large"])
def test_only_regular_files_of_a_sensible_size_are_read(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (2**20 + 1))
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    file = tmp_path / f"{name}.yaml"
    words = "it is larger than 1 MiB" if name == "large" else "it is a pipe or a device"
    with pytest.raises(DocumentError, match=words):
        load_document(file)
    with pytest.raises(OSError, match=words):
        read_file(file)
    if name != "large":
        with pytest.raises(UserError, match=words):
            load_grid(file)


def test_a_link_that_leads_to_itself_is_said_in_words(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    words = "many levels of symbolic links"
    with pytest.raises(DocumentError, match=words):
        load_document(loop)
    with pytest.raises(UserError, match=words):
        load_grid(loop)
    for named in (
        "benchmark: {python: 'loop.yaml:X'}\n", "slurm: {partition: p, templates: loop.yaml}\n",
        "space: loop.yaml\n", "system: loop.yaml\n",
    ):  # fmt: skip
        key = named.partition(":")[0]
        rest = "".join(line for line in CAMPAIGN.splitlines(True) if not line.startswith(key))
        (tmp_path / "campaign.yaml").write_text(rest + named)
        with pytest.raises(CommtuneError, match=r"loop\.yaml"):
            load_campaign(tmp_path / "campaign.yaml")


def test_a_recording_is_unpacked_no_further_than_it_is_read(tmp_path: Path) -> None:
    packed = tmp_path / "bomb.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        for _ in range(257):
            file.write(bytes(2**20))
    with pytest.raises(UserError, match="unpacked, it is larger than 256 MiB"):
        load_grid(packed)


def test_products_of_many_parameters_are_counted() -> None:
    # Each is unset or one of 7 powers of two; the sum of 8 exponents is at most 20.
    space = space_of(integers(8, 1, 64, "power-of-two"), product(8, 2**20))
    ways = [1]
    for _ in range(8):
        ways = [sum(ways[max(0, i - 6) : i + 1]) for i in range(len(ways) + 6)]
    assert space.count() == 8**8 - 7**8 + sum(ways[:21])


def test_a_thousand_parameters_are_counted_and_drawn() -> None:
    space = space_of("".join(f"- {{name: {n}, kind: bool}}\n" for n in names(1000)))
    assert space.count() == 3**1000
    assert not space.check(space.sample(random.Random(1)))
    assert len(next(iter(space.configurations()))) == 0


def test_few_cases_that_many_rules_look_at_are_refused_too() -> None:
    pairs = ((i, j) for j in range(10) for i in range(j))
    rules = "relations:\n" + "".join(f"- {{at_most: [V{i}, V{j}], why: w}}\n" for i, j in pairs)
    with pytest.raises(CommtuneError, match=r"rules between V0, .* leave too many cases"):
        space_of(integers(10, 1, 4), rules).count()


@pytest.mark.parametrize(
    "rules",
    [
        product(9, 10**9),
        "relations:\n"
        + "".join(f"- {{at_most: [V{i}, V{(i + 4) % 9}], why: w}}\n" for i in range(9)),
    ],
)
def test_what_would_take_minutes_to_count_is_refused(rules: str) -> None:
    space = space_of(integers(9, 1, 40), rules)
    with pytest.raises(CommtuneError, match=r"rules between V0, .* leave too many cases"):
        space.count()


def test_a_path_with_a_nul_byte_is_refused_in_our_own_words() -> None:
    with pytest.raises(UserError, match="no path has a NUL byte"):
        load_campaign(Path("campaign\0.yaml"))
