"""What a campaign file says of patterns: groups, directions, mechanisms, a matrix of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import load_campaign, parse_campaign
from commtune.campaign.plan import Plan
from commtune.errors import CampaignError
from commtune.model import PatternParameters, Workload
from commtune.tuner.execution.time_limits import first_limit

HEAD = "campaign: 1\nname: w\nspace: mpich-host\n"


def plan(text: str, folder: Path | None = None) -> Plan:
    return parse_campaign(HEAD + text, folder or Path.cwd()).plan


def workload(text: str, folder: Path | None = None) -> Workload:
    return plan(f"workload: {{{text}}}\n", folder).workload


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("operation: rail, ranks: 4", PatternParameters()),
        (
            "operation: rail, ranks: 8, group_size: 4, active: 3, direction: omnidirectional",
            PatternParameters(group_size=4, active=3, direction="omnidirectional"),
        ),
        ("operation: symmetric, ranks: 8, group_size: 2, active: 2", PatternParameters(2, 2)),
        ("operation: striping, ranks: 8", PatternParameters(group_size=4)),
        ("operation: striping, ranks: 2", PatternParameters(group_size=1)),
        (
            "operation: striping, ranks: 4, inside: mpi-host, between: mpi-host",
            PatternParameters(group_size=2, inside="mpi-host", between="mpi-host"),
        ),
        (
            "operation: striping, ranks: 2, assemble: mpi-host",
            PatternParameters(assemble="mpi-host"),
        ),
    ],
)
def test_shapes_as_they_are_written(text: str, shape: PatternParameters) -> None:
    found = workload(text)
    assert found.shape == shape
    assert Workload.of_plain(found.plain()) == found


def test_groups_are_those_of_a_node_unless_it_is_said_otherwise() -> None:
    text = "workload: {operation: rail, ranks: 8, nodes: 2%s}\nslurm: {}\n"
    assert plan(text % "").workload.shape.group_size == 4
    assert plan(text % ", group_size: 2").workload.shape.group_size == 2
    emulated = "workload: {operation: rail, ranks: 8, backend: xccl, emulate_nodes: 4}\n"
    assert parse_campaign("campaign: 1\nname: w\nspace: nccl\n" + emulated, Path.cwd())\
        .plan.workload.shape.group_size == 2  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key", "message", "hint"),
    [
        (
            "operation: rail\n  ranks: 6\n  group_size: 4",
            3,
            "6 ranks can't be divided into groups of 4",
            "nearest: 3; legal: 1, 2, 3",
        ),
        (
            "operation: rail\n  ranks: 4\n  group_size: 4",
            3,
            "one group of 4, which has no other",
            "nearest: 2",
        ),
        (
            "operation: rail\n  ranks: 4\n  group_size: 5",
            3,
            "can't be divided into groups of 5",
            "nearest: 2",
        ),
        (
            "operation: rail\n  ranks: 4\n  group_size: 2\n  active: 3",
            4,
            "3 active ranks are more than a group of 2",
            "nearest: 2",
        ),
        (
            "operation: striping\n  ranks: 8\n  group_size: 2",
            3,
            "2 is not half of 8 ranks",
            "nearest: 4",
        ),
        ("operation: striping\n  ranks: 3", 2, "3 ranks don't make them", "an even number"),
        ("operation: allreduce\n  active: 2", 2, "allreduce has no active", "operation: rail or"),
        (
            "operation: striping\n  ranks: 4\n  direction: outbound",
            3,
            "striping has no direction",
            "operation: rail",
        ),
        (
            "operation: ring\n  matrix: x",
            2,
            "ring has no matrix file",
            "operation: matrix",
        ),
        ("operation: matrix", 1, "operation matrix needs a file of messages", "matrix: FILE"),
        (
            "operation: matrix\n  matrix: ''",
            2,
            "operation matrix needs a file of messages",
            "matrix: FILE",
        ),
        (
            "operation: matrix\n  matrix: /dev/zero",
            2,
            "/dev/zero can't be read: it is a pipe or a device",
            "folder",
        ),
        (
            "operation: matrix\n  matrix: ~no-such-user/m",
            2,
            "~no-such-user is not the home folder of any user here",
            "write ./~no-such-user",
        ),
        (
            "operation: rail\n  ranks: 4\n  direction: sideways",
            3,
            "'sideways' is not a known value",
            "outbound",
        ),
        (
            "operation: striping\n  ranks: 4\n  inside: ipc-put\n  backend: mpi-host",
            3,
            "ipc-put works on device memory, and the backend mpi-host on host memory",
            "write backend: ipc-put",
        ),
        (
            "operation: matrix\n  ranks: 4\n  assemble: mpi-host\n  matrix: m",
            3,
            "matrix has no assemble",
            "write operation: striping",
        ),
        (
            "operation: striping\n  ranks: 4\n  assemble: ipc-get\n  backend: mpi-host",
            3,
            "ipc-get works on device memory",
            "write backend: ipc-get",
        ),
        (
            "operation: striping\n  ranks: 4\n  inside: xccl\n  backend: mpi-device",
            3,
            "results with xccl are bound to its version",
            "write backend: xccl",
        ),
        (
            "operation: rail\n  ranks: 4\n  rotate: true\n  backend: python-host",
            3,
            "python-host does not rotate",
            "remove it",
        ),
        ("operation: pairs", 1, "pairs has no time of the whole", "commtune bench --op pairs"),
    ],
)
def test_what_does_not_fit_is_said_at_its_line(
    tmp_path: Path, text: str, key: int, message: str, hint: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"{HEAD}workload:\n  {text}\n")
    with pytest.raises(CampaignError) as caught:
        load_campaign(file)
    # Where a key is not written, what is around it has the line.
    lines = {4 + key, 4} if "needs a file of" in message else {4 + key}
    assert caught.value.line in lines
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_groups_across_the_borders_of_nodes_are_refused() -> None:
    text = "workload: {operation: rail, ranks: 12, nodes: 3, group_size: 3}\nslurm: {}\n"
    with pytest.raises(CampaignError, match="cross the boundaries of nodes with 4 ranks") as e:
        plan(text)
    assert "nearest: 2; legal: 1, 2, 4" in e.value.hint


def test_patterns_guard_nothing_and_two_mechanisms_have_no_batches() -> None:
    with pytest.raises(CampaignError, match="rail needs more than a size"):
        plan("guard_operations: [broadcast, rail]\n")
    striping = "workload: {operation: striping, ranks: 4, inside: ipc-put, between: xccl}\n"
    with pytest.raises(CampaignError, match="no single stream"):
        plan(striping + "timing: {mode: batched}\n")
    with pytest.raises(CampaignError, match="no single stream"):
        plan(striping + "timing: {timer: device}\n")
    assembled = "workload: {operation: striping, ranks: 4, backend: xccl, assemble: ipc-get}\n"
    with pytest.raises(CampaignError, match="no single stream"):
        plan(assembled + "timing: {mode: batched}\n")


def test_a_matrix_belongs_to_the_question_by_its_messages(tmp_path: Path) -> None:
    file = tmp_path / "halo.txt"
    file.write_text("# halo\n0 1 100\n1 0 50.5 # back\n2 3 0\n")
    text = "operation: matrix, matrix: halo.txt, ranks: 4"
    first = workload(text, tmp_path)
    content = first.shape.content
    assert content is not None
    assert content.flows == ((0, 1, 100.0), (1, 0, 50.5))
    assert content.text == "0 1 100.0\n1 0 50.5\n"
    stored = first.plain()
    assert stored["shape"] == {"matrix": content.key}
    assert str(tmp_path) not in str(stored)
    assert Workload.of_plain(stored) == first

    file.write_text("0 1 100\n\n1 0 50.5\n")
    assert workload(text, tmp_path) == first
    file.write_text("0 1 100\n1 0 51\n")
    assert workload(text, tmp_path).plain() != stored


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("0 1 8\n0 4 8\n", ":2", "rank 4 is named, and there are 4 ranks", "nearest: 3"),
        ("0 1\n", ":1", "'0 1' is not a message", "sender, receiver, bytes"),
        ("0 1 8 9\n", ":1", "is not a message", "three numbers"),
        ("# nothing\n0 -1 8\n", ":2", "is not a message", "three numbers"),
        ("0 1 inf\n", ":1", "is not a message", "three numbers"),
        ("0 1_0 8\n", ":1", "is not a message", "three numbers"),
        ("0 1 8_000\n", ":1", "is not a message", "three numbers"),
        ("0 1 eight\n", ":1", "is not a message", "three numbers"),
        ("# nothing\n0 1 0\n", "", "nobody sends anything", "FROM TO BYTES"),
    ],
)
def test_a_matrix_file_is_checked_line_by_line(
    tmp_path: Path, text: str, place: str, message: str, hint: str
) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(CampaignError) as caught:
        workload("operation: matrix, matrix: m.txt, ranks: 4", tmp_path)
    assert caught.value.message.startswith(f"{tmp_path / 'm.txt'}{place}: ")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_matrix_file_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"m.txt can't be read: no such file") as caught:
        workload("operation: matrix, matrix: m.txt", tmp_path)
    assert "campaign file's folder" in caught.value.hint
    (tmp_path / "m.txt").write_bytes(b"\xff\xfe\n")
    with pytest.raises(CampaignError, match="is not text"):
        workload("operation: matrix, matrix: m.txt", tmp_path)


def test_what_was_stored_before_there_were_patterns_reads_as_before() -> None:
    stored = {
        "operation": "allreduce", "sizes": [8], "ranks": 2, "nodes": 1, "backend": "mpi-host",
        "dtype": "float32", "reduction": "sum",
    }  # fmt: skip
    assert Workload.of_plain(stored).plain() == stored


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [
        ("workload: {operation: striping, ranks: 4}\n", 60),
        ("workload: {operation: ring, sizes: [8, 64]}\ntiming: {time_cap: 20s}\n", 3 * 2 * 20),
        # The whole and four parts; the whole and two.
        (
            "workload: {operation: striping, ranks: 4, sizes: [8, 64]}\ntiming: {time_cap: 20s}\n",
            3 * 2 * 5 * 20,
        ),
        (
            "workload: {operation: matrix, sizes: [8], matrix: m}\ntiming: {time_cap: 20s}\n",
            3 * 3 * 20,
        ),
    ],
)
def test_a_first_run_has_time_for_all_parts(tmp_path: Path, text: str, limit_s: float) -> None:
    (tmp_path / "m").write_text("0 1 1\n")
    found = plan(text, tmp_path)
    assert first_limit(found.workload, found.timing) == limit_s


@pytest.mark.parametrize("key", ["inside", "between", "assemble", "backend"])
def test_nodes_are_emulated_for_xccl_wherever_it_is_named(key: str) -> None:
    text = f"workload: {{operation: striping, ranks: 4, {key}: xccl, emulate_nodes: 2}}\n"
    found = parse_campaign("campaign: 1\nname: w\nspace: nccl\n" + text, Path.cwd())
    assert (found.plan.workload.backend, found.plan.workload.emulated_nodes) == ("xccl", 2)
