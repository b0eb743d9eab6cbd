"""Documents: what plain words become, and where everything stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.documents.exact_values import AmbiguousWord, exact_text
from commtune.documents.yaml_document import load_document, parse_document
from commtune.errors import CampaignError

TEXT = """\
# a comment
name: first
values:
  - 0644
  - 12
  - 1.50
  - no
  - "no"
  - 0x10
  - 1_000
  - 12:30
  - 2024-01-01
  - true
  -
inner: {key: [a,
  b]}
"""


def test_scalars_keep_what_was_written() -> None:
    values = parse_document(TEXT).data["values"]
    assert values == [
        "0644", 12, 1.5, "no", "no", "0x10", "1_000", "12:30", "2024-01-01", True, None,
    ]  # fmt: skip
    assert isinstance(values[3], AmbiguousWord)
    assert not isinstance(values[4], AmbiguousWord)


def test_exact_text_is_the_written_one() -> None:
    values = parse_document(TEXT).data["values"]
    assert [exact_text(v) for v in (values[0], values[1], values[2], values[4])] == [
        "0644", "12", "1.50", "no",
    ]  # fmt: skip
    for refused in list[object]((values[3], True, None, [], {})):
        with pytest.raises(ValueError):
            exact_text(refused)


def test_every_key_and_element_has_a_line() -> None:
    document = parse_document(TEXT)
    assert document.lines[("name",)] == 2
    assert document.lines[("values",)] == 3
    assert document.lines[("values", 2)] == 6
    assert document.lines[("inner", "key", 0)] == 15
    assert document.lines[("inner", "key", 1)] == 16
    assert ("values", 99) not in document.lines


def test_an_error_goes_to_the_nearest_known_place() -> None:
    document = parse_document(TEXT, Path("c.yaml"), CampaignError)
    error = document.error("odd", ("inner", "key", 7, "deeper"), hint="mend it")
    assert isinstance(error, CampaignError)
    assert (error.message, error.line, error.hint) == ("c.yaml:15: odd", 15, "mend it")


def test_aliases_are_data_and_keep_their_own_lines() -> None:
    document = parse_document("one: &x {A: [1, 2]}\ntwo: *x\n")
    assert document.data == {"one": {"A": [1, 2]}, "two": {"A": [1, 2]}}


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(CampaignError, match="endless"):
        parse_document("\n".join(lines), error_class=CampaignError)


def test_files_are_read_as_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "µ.yaml"
    path.write_text("name: Zürich\n", encoding="utf-8")
    assert load_document(path).data == {"name": "Zürich"}
