"""What is written, word for word, and what is refused."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from export_documents import (
    DOCUMENT,
    FOR_ALL_NAMES,
    GOOD_GUARDS,
    HURT,
    PROFILE,
    UNCLEAR,
    point,
    with_values,
)

from commtune.errors import ExportRefused, UnknownName
from commtune.export import render_profile
from commtune.export.document import ExportDocument
from commtune.export.formats import FORMATS
from commtune.export.rules import RULE_FORMATS
from commtune.model import DEFAULT, Interval, PointEvidence, Verdict
from commtune.model.profile import RangeBoundary

GOLDEN = Path(__file__).parent / "golden"
MODULES = ("lmod", "tcl")


def with_guards(*guards: PointEvidence) -> ExportDocument:
    return replace(DOCUMENT, profile=replace(PROFILE, guards=guards))


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_the_whole_file_is_as_recorded(format: str) -> None:
    """COMMTUNE_WRITE_GOLDEN=1 writes the files anew; look at the difference before committing."""
    text = render_profile(format, DOCUMENT)
    file = GOLDEN / f"profile.{format}"
    if os.environ.get("COMMTUNE_WRITE_GOLDEN") == "1":
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_every_file_says_where_it_comes_from_and_what_it_is_for(format: str) -> None:
    text = render_profile(format, DOCUMENT)
    for words in (
        "allreduce, 256 KiB to 1 MiB", "Campaign first, 2026-01-02", "laptop", "faa162548b462f89",
        "mpich 5.0.2 (wheel)", "2 ranks, 1 node", "alltoall, broadcast", "For allreduce in that",
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "Verify:", "Undo:", "slow",
    ):  # fmt: skip
        assert words in text


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_every_file_says_where_another_range_begins_at_an_unknown_size(format: str) -> None:
    borders = tuple(RangeBoundary(size // 2, size) for size in (2**16, 2**18, 2**21, 2**23))
    profile = replace(PROFILE, boundaries=borders)
    said = render_profile(format, replace(DOCUMENT, profile=profile))
    for ends in ("128 KiB and 256 KiB", "1 MiB and 2 MiB"):
        assert f"Not measured between {ends}: what is best changes there." in said
    # Other borders of the campaign are not the profile's. Modules have the text twice.
    assert said.count("Not measured between") == 2 * said.count("For allreduce in that range")


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_no_file_unsets_what_the_profile_leaves_unset(format: str) -> None:
    document = replace(DOCUMENT, unset=("SOMEBODYS_OWN",))
    lines = [
        line for line in render_profile(format, document).splitlines() if "SOMEBODYS_OWN" in line
    ]
    assert lines
    assert all(
        "nothing here unsets" in line or line.strip() == '"SOMEBODYS_OWN"' for line in lines
    )


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
@pytest.mark.parametrize("verdict", [Verdict.DEFAULT, Verdict.UNDECIDED])
def test_a_profile_without_a_gain_is_refused(format: str, verdict: Verdict) -> None:
    document = replace(DOCUMENT, profile=replace(PROFILE, verdict=verdict))
    with pytest.raises(ExportRefused, match="not faster") as refusal:
        render_profile(format, document, allow_unguarded=True)
    assert "keep the default" in refusal.value.hint


LIKELY = replace(
    PROFILE, name="p-likely", verdict=Verdict.LIKELY, note="likely, not proven: 1.20x at 8 B"
)


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_a_likely_profile_is_written_only_where_that_is_accepted(format: str) -> None:
    document = replace(DOCUMENT, profile=LIKELY)
    with pytest.raises(ExportRefused, match="is likely, not proven: 1") as refusal:
        render_profile(format, document, allow_unguarded=True)
    assert f"commtune verify {DOCUMENT.campaign}/p-likely" in refusal.value.hint
    assert "--accept likely" in refusal.value.hint
    text = render_profile(format, document, allow_unguarded=True, accept_likely=True)
    assert "WARNING: NOT PROVEN" in text
    assert "WARNING: NOT PROVEN" not in render_profile(format, DOCUMENT, accept_likely=True)


def test_what_is_accepted_as_likely_still_needs_its_guards() -> None:
    document = replace(DOCUMENT, profile=replace(LIKELY, guards=()))
    with pytest.raises(ExportRefused, match="module file is for general use"):
        render_profile("lmod", document, accept_likely=True)


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_an_empty_configuration_is_refused_whatever_its_verdict(format: str) -> None:
    document = replace(DOCUMENT, profile=replace(PROFILE, configuration=DEFAULT))
    with pytest.raises(ExportRefused, match="nothing to export"):
        render_profile(format, document)


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_a_simulated_profile_is_refused(format: str) -> None:
    document = replace(DOCUMENT, profile=replace(PROFILE, simulated=True))
    with pytest.raises(ExportRefused, match="simulated"):
        render_profile(format, document, allow_unguarded=True)


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "A-B", "A;touch x", "Ä", "A\nB", "A\n"])
def test_a_name_that_is_none_is_refused(format: str, name: str) -> None:
    with pytest.raises(ExportRefused) as refusal:
        render_profile(format, with_values({name: "1"}))
    assert repr(name) in refusal.value.message


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
@pytest.mark.parametrize("value", ["a\0b", "\udc80"])
def test_a_value_that_no_environment_holds_is_refused(format: str, value: str) -> None:
    with pytest.raises(ExportRefused, match="value of THE_NAME"):
        render_profile(format, with_values({"THE_NAME": value}))


def test_a_pinned_value_is_checked_like_the_profiles_own() -> None:
    with pytest.raises(ExportRefused, match="value of PINNED"):
        render_profile("env", replace(DOCUMENT, pinned={"PINNED": "two\nlines"}))


def test_the_profiles_value_wins_over_a_pinned_one() -> None:
    document = replace(with_values({"A": "tuned"}), pinned={"A": "pinned", "B": "pinned"})
    assert json.loads(render_profile("json", document))["environment"] == {
        "B": "pinned",
        "A": "tuned",
    }


def test_an_unknown_format_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="'yaml'") as error:
        render_profile("yaml", DOCUMENT)
    assert all(name in error.value.hint for name in (*FORMATS, *RULE_FORMATS))


@pytest.mark.parametrize("format", MODULES)
def test_a_module_without_guards_is_refused_with_the_lines_that_add_them(format: str) -> None:
    with pytest.raises(ExportRefused, match="no other operation was measured") as refusal:
        render_profile(format, with_guards())
    assert "guard_operations: [broadcast, alltoall]" in refusal.value.hint
    assert "with the same flags and --guard broadcast --guard alltoall" in refusal.value.hint


@pytest.mark.parametrize("own", [{"operation": "own:train.py"}, {"backend": "command"}])
def test_a_benchmark_of_ones_own_is_not_told_to_measure_what_it_can_not(
    own: dict[str, str],
) -> None:
    document = with_guards()
    document = replace(document, profile=replace(document.profile, **own))  # type: ignore[arg-type]
    with pytest.raises(ExportRefused) as refusal:
        render_profile("lmod", document)
    assert "guard_operations" not in refusal.value.hint
    assert "--allow-unguarded" in refusal.value.hint
    with pytest.raises(ExportRefused) as refusal:
        render_profile("lmod", with_guards(HURT))
    assert "--allow-unguarded" in refusal.value.hint


@pytest.mark.parametrize("format", MODULES)
def test_the_tuned_operation_is_no_guard_of_itself(format: str) -> None:
    with pytest.raises(ExportRefused, match="no other operation"):
        render_profile(format, with_guards(replace(GOOD_GUARDS[0], operation="allreduce")))


@pytest.mark.parametrize("format", MODULES)
@pytest.mark.parametrize(
    ("bad", "words"),
    [(HURT, "broadcast is slower: 0.75x to 0.82x"), (UNCLEAR, "not shown unharmed")],
)
def test_one_bad_guard_among_good_ones_refuses_a_module(
    format: str, bad: PointEvidence, words: str
) -> None:
    with pytest.raises(ExportRefused, match=words):
        render_profile(format, with_guards(*GOOD_GUARDS, bad))


def test_the_tolerance_decides_what_counts_as_unharmed() -> None:
    written = render_profile("lmod", with_guards(point("broadcast", 2**20, (1.0, 0.951, 1.02))))
    assert "at most 5 % slower" in written
    with pytest.raises(ExportRefused, match="not shown unharmed"):
        render_profile("lmod", with_guards(point("broadcast", 2**20, (1.0, 0.949, 1.02))))


@pytest.mark.parametrize("format", MODULES)
def test_an_unguarded_module_says_so_loudly_in_its_help(format: str) -> None:
    text = render_profile(format, with_guards(HURT), allow_unguarded=True)
    assert "WARNING: NOT FOR GENERAL USE" in text
    assert "SLOWER: broadcast: 0.75x to 0.82x (0.79x, 22 pairs) at 1 MiB" in text
    assert "WARNING" not in render_profile(format, DOCUMENT, allow_unguarded=True)


@pytest.mark.parametrize("format", ["env", "sh", "csh", "fish", "json"])
def test_other_forms_need_no_guards_but_say_that_there_are_none(format: str) -> None:
    assert "No guard operations were measured" in render_profile(format, with_guards())


def test_guards_that_settle_nothing_were_measured_all_the_same() -> None:
    text = render_profile("sh", with_guards(UNCLEAR))
    assert "POSSIBLY SLOWER: alltoall: 0.90x to 1.04x (0.97x, 22 pairs) at 1 MiB" in text
    assert "Guard operations were measured; they don't settle what is slower." in text
    assert "No guard operations" not in text
    assert "don't settle" not in render_profile("sh", with_guards(UNCLEAR, HURT))


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (
            Interval(0.54, 0.003, 109.1, 7),
            "nothing known, too noisy (7 pairs) allreduce: inconclusive",
        ),
        (Interval(1.3, 0.0, math.inf, 1), "too few pairs (1) allreduce: inconclusive"),
        (
            Interval(30.0, 2.0, 39.0, 7),
            "2.00x to 39.00x (30.00x, 7 pairs) allreduce: inconclusive",
        ),
    ],
)
def test_an_interval_that_says_nothing_is_no_number(gain: Interval, said: str) -> None:
    points = (replace(PROFILE.points[0], gain=gain, verdict=Verdict.UNDECIDED),)
    text = render_profile("sh", replace(DOCUMENT, profile=replace(PROFILE, points=points)))
    (row,) = [" ".join(line.split()) for line in text.splitlines() if "allreduce: " in line]
    assert row.endswith(said)


def test_the_level_of_the_campaign_is_that_of_the_table() -> None:
    each = replace(PROFILE, level=0.999)
    said = render_profile("sh", replace(DOCUMENT, profile=each))
    assert "speedup, simultaneous 95 % CI" in said
    assert "99.9" not in said
    alone = render_profile("sh", replace(DOCUMENT, profile=each, level=None))
    assert "speedup, 99.9 % CI each" in alone


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_every_file_says_how_to_verify_it(format: str) -> None:
    text = render_profile(format, replace(DOCUMENT, campaign="my campaign"))
    assert "commtune verify 'my campaign/allreduce-256k-1m'" in text


@pytest.mark.parametrize("format", FOR_ALL_NAMES)
def test_text_in_comments_cannot_leave_them(format: str) -> None:
    evil = "x\nexport EVIL=1\r\nsetenv EVIL 1\u2028]]\\ \\"
    profile = replace(PROFILE, name=evil, note=evil)
    document = replace(DOCUMENT, profile=profile, campaign=evil, system=evil, stack=evil)
    starts = ("export EVIL", "setenv EVIL", "EVIL")
    lines = render_profile(format, document).splitlines()
    assert not [line for line in lines if line.startswith(starts)]
    assert not [line for line in lines if line.startswith(("#", "--")) and line.endswith("\\")]


@pytest.mark.parametrize(("format", "command"), [("lmod", "whatis("), ("tcl", "module-whatis")])
def test_what_a_module_is_for_is_said_in_one_line(format: str, command: str) -> None:
    text = render_profile(format, with_guards(replace(HURT, speed="x\ny")), allow_unguarded=True)
    said = [line for line in text.splitlines() if line.startswith(command)]
    assert "x y" in said[-1] and all(line.rstrip(")").endswith('"') for line in said)


def test_the_examples_in_the_documentation_are_the_recorded_files() -> None:
    """Every fenced block of a file in docs/exports.md stands in a golden file."""
    text = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()
    blocks = [block.partition("\n") for block in text.split("```")[1::2]]
    golden = "\n".join(file.read_text() for file in sorted(GOLDEN.iterdir()))
    known = {line.strip(" ,") for line in golden.splitlines()}
    files = [body for kind, _, body in blocks if kind not in ("yaml", "console")]
    shown = [line for body in files for line in body.splitlines()]
    assert len(shown) > 30
    assert [line for line in shown if line.strip(" ,") not in known] == []
