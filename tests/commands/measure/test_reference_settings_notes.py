"""What ``compare`` says of a named set before it measures it."""

from __future__ import annotations

import pytest

from commtune.app.measure.comparison import _reference_notes
from commtune.systems.reference_settings import find_reference_settings


@pytest.mark.parametrize(
    ("library", "said"),
    [("cray-mpich", False), ("mpich", True), ("openmpi", True)],
)
def test_a_set_for_another_library_is_said(library: str, said: bool) -> None:
    found = list(_reference_notes(find_reference_settings("lumi-docs-mpi"), [library]))
    message = f"reference:lumi-docs-mpi is for cray-mpich, and these runs use {library}"
    assert [line.startswith(message) for line in found] == [True] * said
