"""Which nodes failed in which jobs: said once, kept over controllers, left out after two."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.cluster.jobs.failures import FailedNodes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "failed-nodes.json"


def test_one_job_counts_once_and_is_said_once(file: Path) -> None:
    said: list[str] = []
    nodes = FailedNodes(file, said.append)
    nodes.add_failure("7", ["n2", "n1"])
    nodes.add_failure("7", ["n1"])
    FailedNodes(file, said.append).add_failure("7", ["n2"])
    assert said == ["job 7 lost a node (n1, n2): its runs are re-run"]
    assert nodes.excluded == ()


def test_a_node_that_failed_in_two_jobs_is_left_out_and_said(file: Path) -> None:
    said: list[str] = []
    FailedNodes(file, said.append).add_failure("7", ["n1", "n2"])
    later = FailedNodes(file, said.append)
    later.add_failure("8", ["n2"])
    assert said[1:] == [
        "job 8 lost a node (n2): its runs are re-run",
        "node n2 failed in 2 jobs (7, 8) and is left out from now on",
    ]
    later.add_failure("9", ["n2", "n3"])
    assert said[3:] == ["job 9 lost a node (n2, n3): its runs are re-run"]
    assert later.excluded == FailedNodes(file, said.append).excluded == ("n2",)


def test_what_another_part_of_the_controller_notes_counts(file: Path) -> None:
    said: list[str] = []
    steps, succession = FailedNodes(file, said.append), FailedNodes(file, said.append)
    steps.add_failure("7", ["n1"])
    succession.add_failure("8", ["n2"])
    steps.add_failure("8", ["n1"])
    assert succession.excluded == steps.excluded == ("n1",)
    succession.add_failure("9", ["n2"])
    assert FailedNodes(file, said.append).excluded == ("n1", "n2")


@pytest.mark.parametrize(
    "text",
    ["", '{"n1": ["7"', "[1]", "null", '{"n1": 5}', '{"n1": "78"}', '{"n1": [7, [8]]}', "\udcff"],
)
def test_a_damaged_file_excludes_nothing_and_is_written_anew(file: Path, text: str) -> None:
    file.write_bytes(text.encode(errors="surrogateescape"))
    nodes = FailedNodes(file, lambda _: None)
    assert nodes.excluded == ()
    for job in ("7", "8"):
        nodes.add_failure(job, ["n1"])
    assert FailedNodes(file, lambda _: None).excluded == ("n1",)


def test_what_can_not_be_written_is_said_and_known_as_long_as_we_live(tmp_path: Path) -> None:
    said: list[str] = []
    nodes = FailedNodes(tmp_path / "nowhere" / "failed-nodes.json", said.append)
    nodes.add_failure("7", ["n1"])
    assert "can't be saved" in said[-1]
    assert "No such file" in said[-1]
    nodes.add_failure("8", ["n1"])
    assert nodes.excluded == ("n1",)
