"""The catalogue against the libraries themselves: names, versions, defaults and values.

A library that differs from the catalogue in a way that ``known/`` doesn't give a reason
for fails, and so does a reason for what is no difference any more.
"""

from __future__ import annotations

import pytest
from asked_libraries import LABELS, WITH_OTHERS, Answer, NotHere, ask
from catalogue_comparing import (
    KNOWN,
    Difference,
    complaints,
    differences,
    known_differences,
    lacking,
)
from components import require_component

from commtune.spaces.catalogue.loading import load_catalogue


def asked(label: str) -> Answer:
    try:
        return ask(label)
    except NotHere as missing:
        require_component(str(missing), False)
        raise


def found_differences(label: str, answer: Answer) -> set[Difference]:
    return differences(answer, load_catalogue(answer.library), others=label in WITH_OTHERS)


@pytest.mark.parametrize("label", LABELS)
def test_a_library_says_what_the_catalogue_says(label: str) -> None:
    answer = asked(label)
    said = complaints(found_differences(label, answer), known_differences(label), answer)
    assert not said, "\n".join(
        [f"{label} ({answer.version}) and its catalogue, or catalogue/known/{label}.yaml:", *said]
    )


@pytest.mark.parametrize("label", LABELS)
def test_what_the_catalogue_lacks_is_known(label: str) -> None:
    answer = asked(label)
    listed = (KNOWN / f"{label}.lacks.txt").read_text(encoding="utf-8").splitlines()
    lacks = lacking(answer, load_catalogue(answer.library))
    assert lacks == listed, "write it again: .venv/bin/python scripts/catalogue-lacks"


def test_no_file_is_left_over() -> None:
    names = {path.name for path in KNOWN.iterdir()}
    assert names == {f"{label}{end}" for label in LABELS for end in (".yaml", ".lacks.txt")}


@pytest.mark.parametrize("label", LABELS)
def test_every_answer_has_something_to_compare(label: str) -> None:
    """So that nothing is called equal because nothing was read."""
    answer = asked(label)
    catalogue = load_catalogue(answer.library)
    shared = [name for name in catalogue.variables if name in answer.defaults]
    assert len(shared) >= 14
    if answer.library not in ("nccl", "oneccl", "rccl"):  # these say nothing of defaults
        assert sum(answer.defaults[name] is not None for name in shared) >= 10
