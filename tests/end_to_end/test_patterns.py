"""Patterns of messages from the command line to the report, with a real MPI."""

from __future__ import annotations

import json
import re

import pytest
from command_line import CommandLine
from report_words import words_in

_BENCH = ("bench", "--mpi", "wheel:mpich", "--sizes", "8,64KiB", "--time-cap", "5ms")

HALO = """\
campaign: 1
name: halo
space: mpich-host
mpi: wheel:mpich
workload:
  operation: matrix
  matrix: halo.txt
  inside: mpi-host
  sizes: [8, 64KiB]
timing: {max_samples: 10, time_cap: 2ms}
first: [{MPIR_CVAR_NOLOCAL: "1"}]  # whatever is left of the budget
budget: {search: 1s, ablation: 100ms, confirmation: 100ms, trials: 1}
estimand: mean
run_time_limit: 60s
"""


def test_pairs_are_a_matrix_and_all_of_them_are_there(commtune: CommandLine) -> None:
    said = commtune.succeed(*_BENCH, "--op", "pairs")
    assert said.out.startswith("pairs, 2 ranks, mpich")
    assert "latency at 8 B, us" in said.out
    assert re.search(r"bandwidth at 64 KiB, (G|M|k)B/s\n", said.out)
    assert "worst / best" in said.out
    plain = json.loads(commtune(*_BENCH, "--op", "pairs", "--ranks", "3", "--json").out)
    found = sorted((p["measurement"]["bytes"], *p["pair"]) for p in plain["pieces"])
    assert found == [(s, a, b) for s in (8, 65536) for a in range(3) for b in range(3) if a != b]
    assert plain["measurements"] == []
    assert plain["workload"]["operation"] == "pairs"


def test_a_size_that_was_moved_as_another_is_named(
    commtune: CommandLine,
) -> None:
    asked = ("--op", "ping-pong", "--sizes", "8,10")
    said = commtune.succeed(*_BENCH, *asked)
    assert any(line.startswith("moved: 10 B as 8 B; every") for line in said.out.splitlines())
    plain = json.loads(commtune(*_BENCH, *asked, "--json").out)["measurements"]
    assert [m["bytes_total"] for m in plain] == [8, 8]
    assert [m["bytes"] for m in plain] == [8, 10]
    assert all(round(m["algbw_Bps"] * m["median_s"]) == 8 for m in plain)


def test_a_run_says_what_it_cost_and_a_failed_one_shows_no_table(commtune: CommandLine) -> None:
    said = commtune(*_BENCH, "--op", "allreduce")
    assert re.search(r"^the run took .*: launch .*MPI_Init .*measuring .*end ", said.out, re.M)
    cost = json.loads(commtune(*_BENCH, "--op", "allreduce", "--json").out)["cost"]
    parts = ("launch_s", "mpi_init_s", "library_init_s", "first_calls_s", "measuring_s", "rest_s")
    assert sum(cost[part] for part in parts) + cost["end_s"] == pytest.approx(cost["wall_s"])
    without_network = ("-x", "FI_PROVIDER=none", "-x", "UCX_TLS=none")
    failed = commtune(*_BENCH, "--op", "allreduce", *without_network)
    assert (failed.code, failed.out) == (3, "")
    refused = commtune(*_BENCH, "--time-cap", "0")
    assert (refused.code, refused.out) == (2, "")


def test_patterns_have_their_words(commtune: CommandLine) -> None:
    said = commtune.succeed(
        *_BENCH, "--op", "rail", "--direction", "bidirectional", "--rotate", "yes"
    )
    assert said.out.startswith(
        "rail, 2 ranks, groups of 1, 1 of each active, bidirectional, rotating through the buffers"
    )
    assert "as CommBench counts it" in said.out
    said = commtune.succeed(*_BENCH, "--op", "striping", "--ranks", "4", "--sizes", "8")
    assert all(f"{part} alone" in said.out for part in ("split", "translate", "assemble"))
    said = commtune(*_BENCH, "--op", "rail", "--group-size", "2")
    assert said.code == 2
    assert "--group-size: 2 ranks make one group of 2" in said.err
    assert "nearest: 1" in said.err
    said = commtune(*_BENCH, "--op", "rail", "--backend", "python-host")
    assert said.code != 0
    assert "does not know the operation rail" in said.err
    assert commtune("trace", "--op", "rail").code == 2


def test_a_matrix_is_tuned_for_and_looked_at(commtune: CommandLine) -> None:
    folder = commtune.folder
    (folder / "halo.txt").write_text("0 1 100\n1 0 50\n")
    (folder / "halo.yaml").write_text(HALO)
    said = commtune.succeed("tune", "halo.yaml")
    pattern = re.search(
        r"halo: matrix of float32, (file [0-9a-f]{12} \(halo\.txt\), inside nodes by mpi-host),",
        said.out,
    )
    assert pattern, said.out

    said = commtune("best", "--op", "matrix", "--bytes", "64KiB")
    assert f"pattern: {pattern[1]}" in said.out
    assert "speedups are ratios of mean times" in said.out
    commtune.succeed("report", "halo", "--output", "halo.html")
    report = words_in((folder / "halo.html").read_text())
    assert f"matrix ({pattern[1]}) of float32" in report
    assert "Its parts, each by itself" in report
    assert re.search(r"64 KiB inside \d", report)

    # A profile is measured again without the file, and the campaign goes on without its comments.
    (folder / "halo.txt").unlink()
    # On a noisy machine, sizes may have a profile each.
    (best,) = json.loads(commtune("best", "--op", "matrix", "--bytes", "8B", "--json").out)[:1]
    again = ("compare", "default", f"{best['campaign']}/{best['name']}", "--time", "100ms")
    said = commtune.succeed(*again)
    assert f"matrix of float32, {pattern[1].replace(' (halo.txt)', '')}, 2 ranks" in said.out
    assert "A / B is the ratio of mean times, as in the profile's campaign" in said.out
    (kept,) = (folder / "data" / "commtune" / "matrices").iterdir()
    assert kept.read_text() == "0 1 100.0\n1 0 50.0\n"
    kept.chmod(0o666)
    kept.parent.chmod(0o755)
    assert f"the matrix {kept} is not used: everybody can write it" in commtune(*again).err
    kept.unlink()
    said = commtune(*again)
    assert said.code == 2
    assert "measured matrix is missing" in said.err
    commtune.succeed(*again, "--op", "ring")
    said = commtune("compare", "default", "MPIR_CVAR_NOLOCAL=1", "--op", "matrix")
    assert said.code == 2
    assert "only a profile of a campaign on matrix says which messages" in said.err
    (folder / "halo.txt").write_text("# the same\n0 1 100\n1 0 50.0\n")
    commtune.succeed("tune", "halo.yaml")
    (folder / "halo.txt").write_text("0 1 100\n1 0 51\n")
    said = commtune("tune", "halo.yaml")
    assert said.code == 2
    assert "started with a different question" in said.err
    assert "workload.shape.matrix" in said.err
