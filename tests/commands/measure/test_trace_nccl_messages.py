"""``commtune trace-messages --nccl`` over a real log, which a script lays where NCCL would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine

from commtune.campaign.loading import load_campaign

LOG = Path(__file__).parents[2] / "cluster" / "tracing" / "nccl_logs" / "calls.txt"
#: As NCCL does: under the name that the variable says, if it is to log calls at all.
_PROGRAM = """\
test "$NCCL_DEBUG $NCCL_DEBUG_SUBSYS" = "INFO COLL" || exit 3
cp "$0" "$(dirname "$NCCL_DEBUG_FILE")/node0-100"
echo trained
"""
PROGRAM = ("sh", "-c", _PROGRAM, str(LOG))


def test_calls_are_counted_by_operation_ranks_and_size(tmp_path: Path) -> None:
    said = CommandLine(tmp_path)("trace-messages", "--nccl", "--json", "--", *PROGRAM)
    assert (said.code, said.err) == (0, "trained\n")
    counted = {(one["operation"], one["ranks"]): one["messages"] for one in json.loads(said.out)}
    assert counted == {
        ("allgather", 2): {"2048": 1},
        ("allreduce", 1): {"512": 2},
        ("allreduce", 2): {"1024": 5, "2048": 3},
        ("alltoall", 2): {"2048": 1},
        ("broadcast", 2): {"512": 1},
        ("reduce", 2): {"256": 1},
        ("reduce-scatter", 2): {"2048": 1},
    }


def test_a_campaign_is_written_that_tunes_what_moves_most(tmp_path: Path) -> None:
    CommandLine(tmp_path).succeed("trace-messages", "--nccl", "-o", "ddp.yaml", "--", *PROGRAM)
    workload = load_campaign(tmp_path / "ddp.yaml").plan.workload
    assert (workload.operation, workload.ranks) == ("allreduce", 2)
    assert "messages: {1024: 5, 2048: 3}\n" in (tmp_path / "ddp.yaml").read_text()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "no collective of NCCL was counted: the program called none"),
        ("echo out of memory; exit 3", "sh ended with exit code 3:\nout of memory"),
    ],
)
def test_a_program_that_calls_nothing_or_fails_is_told(
    tmp_path: Path, script: str, words: str
) -> None:
    said = CommandLine(tmp_path)("trace-messages", "--nccl", "--", "sh", "-c", script)
    assert said.code == 2
    assert words in said.err
