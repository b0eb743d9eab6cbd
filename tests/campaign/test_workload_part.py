"""What a campaign file says of backends, emulated nodes, windows and timing."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import parse_campaign
from commtune.campaign.plan import Plan
from commtune.campaign.workload import rounded_words
from commtune.errors import CampaignError
from commtune.kernels.python_bench.layout import WINDOW
from commtune.model import Backend, Operation, OwnBenchmark, Timing, Workload
from commtune.model.operations import IN_PYTHON

HEAD = "campaign: 1\nname: w\nspace: nccl\n"


def plan(text: str) -> Plan:
    return parse_campaign(HEAD + text, Path.cwd()).plan


@pytest.mark.parametrize(
    "backend", ["mpi-host", "mpi-device", "mpi-staged", "ipc-put", "ipc-get", "xccl"]
)
def test_every_backend_of_the_benchmark_has_a_word(backend: str) -> None:
    assert plan(f"workload: {{backend: {backend}}}\n").workload.backend == backend


def test_a_stream_says_its_window_and_a_command_has_none() -> None:
    assert plan("workload: {operation: stream, window: 8}\n").workload.pattern == "window of 8"
    words = plan("workload: {operation: stream}\n").workload.words
    assert words == "stream of float32, window of 64"
    assert (WINDOW, plan("workload: {operation: ring}\n").workload.pattern) == (64, "")
    own = OwnBenchmark(command=("./osu_bw",), output="osu")
    command = Workload(Operation.STREAM, (8,), backend=Backend.COMMAND, own=own)
    assert (command.words, command.pattern) == ("stream", "")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("workload: {operation: pairs}", "no time of the whole", "commtune bench --op pairs"),
        ("workload: {backend: nccl}", "'nccl' is not a known value", "nearest: xccl"),
        ("workload: {emulate_nodes: 2}", "for the backend xccl only", "backend: xccl"),
        (
            "workload: {backend: xccl, ranks: 3, emulate_nodes: 2}",
            "3 ranks can't be divided evenly among 2 emulated nodes",
            "nearest: ranks: 2",
        ),
        (
            "workload: {backend: xccl, ranks: 4, emulate_nodes: 2}\nslurm: {}",
            "without a scheduler",
            "remove it",
        ),
        ("workload: {backend: xccl, emulate_nodes: 1}", "1 is out of range", "from 2"),
        ("workload: {window: 8}", "allreduce has no window", "operation: stream"),
        ("workload: {ranks: 5000}", "5000 is out of range", "from 2 to 4096; a command of your"),
        ("workload: {ranks: 1}", "1 is out of range", "from 2 to 4096; a command of your"),
        ("workload: {operation: own:mine}", "own:mine needs a benchmark", "add `benchmark:"),
        ("timing: {operations: 5}", "for batches only", "mode: batched"),
        ("timing: {timer: device}", "mpi-host has no clock", "backend: xccl"),
        ("timing: {mode: batched}", "mpi-host enqueues nothing", "backend: xccl"),
        (
            "workload: {backend: mpi-device}\ntiming: {mode: batched}",
            "mpi-device enqueues nothing",
            "backend: xccl",
        ),
        ("timing: {mode: batched, graph: true}", "mpi-host can't be recorded", "backend: xccl"),
        (
            "workload: {backend: xccl}\ntiming: {graph: true}",
            "a graph is a recorded batch",
            "mode: batched",
        ),
        ("timing: {graph: 20}", "graph", "true"),
        ("timing: {mode: fast}", "'fast' is not a known value", "blocking"),
    ],
)
def test_what_does_not_go_together(text: str, message: str, hint: str) -> None:
    with pytest.raises(CampaignError) as caught:
        plan(text + "\n")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_timing_in_batches() -> None:
    timing = plan("workload: {backend: xccl}\ntiming: {mode: batched}\n").timing
    assert (timing.mode, timing.operations, timing.timer) == ("batched", 20, "wall")
    ours = plan("workload: {backend: xccl}\ntiming: {timer: device}\n").timing
    assert (ours.mode, ours.operations, ours.timer) == ("blocking", 0, "device")


def test_graphs_are_a_part_of_the_question() -> None:
    head = "workload: {backend: xccl}\ntiming: {mode: batched"
    graphs, off, before = (
        plan(head + end + "}\n") for end in (", graph: true", ", graph: false", "")
    )
    assert graphs.timing.graph
    assert graphs.comparable({})["timing"]["graph"] is True
    assert graphs.comparable({}) != before.comparable({})
    assert off.comparable({}) == before.comparable({})
    assert "graph" not in before.comparable({})["timing"]


def test_the_refusal_of_a_graph_names_the_line() -> None:
    with pytest.raises(CampaignError) as caught:
        parse_campaign(HEAD + "timing:\n  mode: batched\n  graph: true\n", Path.cwd())
    assert caught.value.line == 6


def test_campaigns_from_before_there_were_backends_ask_the_same_question() -> None:
    """What was stored then has none of the later names in it, and still compares."""
    what = plan("").comparable({})
    assert set(what["workload"]) == {
        "operation", "sizes", "ranks", "nodes", "backend", "dtype", "reduction",
    }  # fmt: skip
    assert set(what["timing"]) == {
        "warmup", "min_samples", "max_samples", "relative_ci", "time_cap_s",
    }  # fmt: skip
    assert type(what["workload"]["backend"]) is str


def test_emulated_nodes_are_a_part_of_the_question() -> None:
    two = plan("workload: {backend: xccl, ranks: 4, emulate_nodes: 2}\n")
    none = plan("workload: {backend: xccl, ranks: 4}\n")
    assert two.comparable({})["workload"]["emulated_nodes"] == 2
    assert two.comparable({}) != none.comparable({})
    assert two.emulated == "emulated nodes: 2, over sockets on one machine"
    assert none.emulated == ""


def test_workload_and_timing_come_back_from_where_they_are_stored() -> None:
    workload = Workload(
        Operation.STREAM, (8, 64), 4, backend=Backend.XCCL, emulated_nodes=2, window=16
    )
    assert Workload.of_plain(workload.plain()) == workload
    timing = Timing(mode="batched", operations=5, timer="device", graph=True)
    assert Timing(**timing.plain()) == timing
    assert Timing(**Timing().plain()) == Timing()


def test_sizes_that_are_no_whole_elements_are_said_to_be_rounded_down() -> None:
    found = parse_campaign(HEAD + "workload: {sizes: [8, 10, 1027]}\n", Path.cwd())
    assert found.plan.workload.sizes == (8, 10, 1027)
    assert found.remarks == (
        "note: 10 B, 1 KiB + 3 B: rounded down to whole elements of float32 (4 bytes)",
    )


@pytest.mark.parametrize(
    "text",
    [
        "workload: {sizes: [8, 12, 1MiB]}",
        "workload: {sizes: [1, 3], dtype: uint8, reduction: max}",
        "workload: {sizes: [1, 3]}\nbenchmark: {command: [echo], output: osu}",
    ],
)
def test_nothing_is_said_of_whole_elements(text: str) -> None:
    said = parse_campaign(HEAD + text + "\n", Path.cwd()).remarks
    assert "rounded" not in "".join(said)


def test_a_remark_names_a_few_sizes_of_many() -> None:
    sizes = tuple(range(9, 30))
    said = rounded_words(Workload(Operation.ALLREDUCE, sizes))
    assert said.startswith("9 B, 10 B, 11 B, 13 B, ...: rounded down")


@pytest.mark.parametrize("backend", ["python-host", "python-device"])
@pytest.mark.parametrize(
    ("text", "line", "operation"),
    [
        ("workload:\n  operation: rail\n  group_size: 1\n  backend: {}\n", 7, "rail"),
        ("workload: {{backend: {}, operation: incast}}\n", 4, "incast"),
        (
            "workload: {{backend: {}}}\nguard_operations:\n  - ring\n  - one-to-many\n",
            7,
            "one-to-many",
        ),
    ],
)
def test_the_benchmark_in_python_refuses_what_it_does_not_do(
    backend: str, text: str, line: int, operation: str
) -> None:
    with pytest.raises(CampaignError) as caught:
        plan(text.format(backend))
    assert caught.value.line == line
    assert caught.value.message == (
        f"the backend {backend} does not know the operation {operation}"
    )
    assert caught.value.hint == f"it knows {', '.join(IN_PYTHON)}"


@pytest.mark.parametrize("operation", IN_PYTHON)
def test_and_takes_what_it_does(operation: str) -> None:
    measured = plan(f"workload: {{backend: python-host, operation: {operation}}}\n").workload
    assert (measured.operation, measured.backend) == (operation, "python-host")


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        (
            "operation: [broadcast, allreduce]",
            "a campaign tunes one operation",
            "name one, and the others under guard_operations, at the top level",
        ),
        (
            "sizes: 1KiB-1MiB",
            "'1KiB-1MiB' is not a range of sizes",
            'write "1KiB .. 1MiB x2"',
        ),
    ],
)
def test_several_operations_and_ranges_of_another_form_are_shown_the_right_one(
    written: str, message: str, hint: str
) -> None:
    with pytest.raises(CampaignError) as caught:
        parse_campaign(HEAD + f"workload: {{{written}}}\n", Path.cwd())
    assert caught.value.message.endswith(message)
    assert caught.value.hint == hint
