"""Records NCCL over sockets, many configurations in one launch, for the benchmark of the search.

    python benchmarks/search/record_nccl.py plan examples/nccl-sockets-dense.yaml > plan.txt
    g++ -O2 -std=c++17 benchmarks/search/nccl_forks.cpp -o nccl_forks -lnccl -lcudart
    ./nccl_forks plan.txt runs-0.jsonl 0 540       # a machine with two GPUs; from line 0, 540 s
    python benchmarks/search/record_nccl.py pack examples/nccl-sockets-dense.yaml HEADER.json \
        GRID.jsonl.gz runs-*.jsonl

``plan`` prints a line a run: the configuration's index and its variables. There are three rounds;
each holds every configuration once in random order, and the default among every 24 runs.
``pack`` puts the runs of any number of sessions into one recording (``commtune.replay``).
HEADER.json holds what only the machine knows: ``recorded``, ``system``, ``stack``, ``pinned``.

A run here is a forked pair of processes, not a launch: it lacks the launcher and MPI.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commtune.campaign.loading import load_campaign
from commtune.model import Configuration, Outcome
from commtune.replay.recording import Grid, GridHeader, RecordedRun, parse_size

ROUNDS, DEFAULT_EVERY, SEED = 3, 24, 1
OUTCOMES = {
    "ok": Outcome.OK,
    "wrong": Outcome.WRONG_RESULT,
    "timeout": Outcome.TIMED_OUT,
    "crashed": Outcome.CRASHED,
}


def plan_runs(others: int) -> Iterator[int]:
    """Indices of configurations in the order of their runs; 0 is the default."""
    rng = random.Random(SEED)
    for _ in range(ROUNDS):
        order = rng.sample(range(1, others + 1), others)
        for start in range(0, others, DEFAULT_EVERY - 1):
            chunk = [*order[start : start + DEFAULT_EVERY - 1], 0]
            yield from rng.sample(chunk, len(chunk))


def print_plan(campaign: Path) -> None:
    configurations = list(load_campaign(campaign).plan.space.configurations())
    for index in plan_runs(len(configurations) - 1):
        settings = [f"{name}={value}" for name, value in configurations[index].items()]
        print(index, *settings)


def recorded_runs(sessions: list[Path], sizes: tuple[int, ...]) -> Iterator[RecordedRun]:
    """The runs of all sessions in the order of the plan; time between sessions is left out."""
    base_s = 0.0
    for session in sorted(sessions, key=lambda file: _lines(file)[0]["n"]):
        lines = _lines(session)
        for line in lines:
            yield RecordedRun(
                configuration=line["c"],
                started_s=base_s + line["t"],
                wall_s=line["w"],
                outcome=OUTCOMES[line["o"]],
                sizes=tuple(
                    parse_size(size, (middle, None, None, low, high), wall_s=line["w"])
                    for size, (middle, low, high) in zip(sizes, line["m"], strict=False)
                ),
                detail=line["why"],
            )
        base_s += lines[-1]["t"] + lines[-1]["w"]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def pack(campaign: Path, machine: Path, out: Path, sessions: list[Path]) -> None:
    plan = load_campaign(campaign).plan
    header = GridHeader(
        name=plan.name,
        workload=plan.workload,
        timing=plan.timing,
        campaign=campaign.read_text("utf-8"),
        seed=SEED,
        **json.loads(machine.read_text("utf-8")),
    )
    configurations: tuple[Configuration, ...] = tuple(plan.space.configurations())
    runs = tuple(recorded_runs(sessions, plan.workload.sizes))
    out.write_bytes(Grid(header, configurations, runs).packed())
    print(f"{out}: {len(runs)} runs of {len({run.configuration for run in runs})} configurations")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    paths = [Path(argument) for argument in arguments]
    if command == "plan":
        print_plan(paths[0])
    else:
        pack(paths[0], paths[1], paths[2], paths[3:])
