"""Whatever is done to a document, reading it gives a result or an error in words, and soon.

``COMMTUNE_EXAMPLES=3000`` tries more than the default number for each kind of document.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commtune.campaign.loading import parse_campaign
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import parse_document
from commtune.errors import CommtuneError, SpaceError
from commtune.kernels.adapters.formats import OUTPUTS, read_json
from commtune.kernels.records import read_records
from commtune.replay.recording import load_grid
from commtune.slurm_templates.rendering import Job, Step, render_block
from commtune.spaces.catalogue.schema import Catalogue
from commtune.spaces.loading import build_space
from commtune.systems.loading import build_system

_EXAMPLES = int(os.environ.get("COMMTUNE_EXAMPLES", "40"))
#: Generous: machines may be busy. What this is about took minutes or the whole memory.
_SOON_S = 60.0

SPACE = """\
space: 1
name: small
library: own
facts: [mpich]
pin: {A_PIN: "1"}
parameters:
  - {name: MPIR_CVAR_CH4_NUM_VCIS, values: [1, 2, 4]}
  - {name: A, kind: integer, range: [1, 9], step: 2, also: [auto, -1], source: s}
  - {name: B, kind: power-of-two, range: [1, 64], source: s, when: {A: [set]}}
  - {name: C, kind: bytes, range: [1KiB, 1MiB], factor: 4, written: K, source: s}
  - {name: D, kind: bool, spelling: n/y, risks: [hang], opt_in: true, source: s}
  - name: E
    kind: group
    choices: {one: {E_A: x}, two: {E_A: "y", E_B: 2}}
forbidden: [{when: {A: "1", B: [2, 4]}, why: w}]
relations:
  - {at_most: [A, B], why: w}
  - {product_at_most: {of: [A, B], limit: 64}, why: w}
"""
CAMPAIGN = """\
campaign: 1
name: small
space: mpich-host-allreduce
mpi: wheel:mpich
seed: 3
workload:
  operation: allreduce
  sizes: [8, 64KiB]
  ranks: 2
timing: {max_samples: 10, time_cap: 2ms}
budget: {search: 60s, ablation: 1min, confirmation: 0.5h, trials: 3}
minimum_gain: 2%
confidence: 0.95
messages: {64KiB: 1000}
protected_variables: [UCX_TLS]
slurm: {partition: gpu, time: 1h}
narrow: {MPIR_CVAR_DEVICE_COLLECTIVES: [all]}
"""
RECORDING = """\
{"format":"commtune-grid","version":1,"recording":true,"name":"x","recorded":"2025-01-01",\
"system":{},"stack":{},"workload":{"operation":"allreduce","sizes":[8,16],"ranks":2},\
"timing":{},"campaign":"","pinned":{},"benchmark":{},"seed":1}
{"variables":["A"],"configurations":[[null],["1"]]}
{"c":0,"t":0,"w":1.5,"m":[[1000,900,900,990,1100],null]}
{"c":1,"t":2,"w":1.5,"o":"crashed","why":"signal 9","load":0.5,"m":[]}
"""
RECORDS = """\
{"record":"header","contract":1,"run_id":"r-1","backend":"mpi-host","operation":"allreduce",\
"dtype":"float32","reduction":"sum","memory":"host","timing":{"mode":"blocking","timer":"wall"},\
"oversubscribed":false,"shape":{},"ranks":2,"nodes":1,"mpi":{"library":"MPICH Version: 5.0.2"},\
"rank_info":[{"rank":0,"node":0,"host":"a","environment":{}},{"rank":1,"environment":{"A":null}}]}
{"record":"measurement","bytes":8,"count":2,"warmup":5,"samples":3,"samples_ns":[900.0,1000,1100],\
"time_s":{"min":9e-7,"p5":9e-7,"p25":9e-7,"median":1e-6,"p75":1.1e-6,"p95":1.1e-6,"p99":1.1e-6,\
"max":1.1e-6,"mean":1e-6,"stdev":1e-7},"median_ci_s":[9e-7,1.1e-6],"stop":"time-cap",\
"batch":1,"algbw_Bps":8e6,"busbw_Bps":8e6,"canary_ns":{"before":null,"after":null},\
"first_call_s":0.005,"rank_skew":1.4,"wrong":0,"checked":8,"status":"ok","elapsed_s":0.5}
{"record":"footer","status":"ok","measurements":1,"elapsed_s":0.6,"init_s":0.1}
"""


def _shipped(*path: str) -> str:
    return resources.files("commtune").joinpath(*path).read_text("utf-8")


def _space(text: str, folder: Path) -> object:
    space = build_space(parse_document(text, folder / "x.yaml", SpaceError))
    return space.count()


def _campaign(text: str, folder: Path) -> object:
    return parse_campaign(text, folder)


def _system(text: str, folder: Path) -> object:
    return build_system(parse_document(text, folder / "x.yaml"))


def _catalogue(text: str, folder: Path) -> object:
    return validate_document(parse_document(text, folder / "x.yaml"), Catalogue)


def _recording(text: str, folder: Path) -> object:
    file = folder / "x.gz"
    file.write_bytes(gzip.compress(text.encode("utf-8", "replace")))
    return load_grid(file).span_s


def _template(text: str, folder: Path) -> object:
    (folder / "block.sh.j2").write_text(text, "utf-8", "replace")
    job = Job("job-1", nodes=1, ranks_per_node=2, time_s=60, output="out")
    step = Step(("true",), "out", "exit", time_limit_s=5)
    return render_block(job, (step,), ".", folder)


def _matrix(text: str, folder: Path) -> object:
    (folder / "x").write_text(text, "utf-8", "replace")
    workload = "operation: matrix\n  matrix: x"
    return parse_campaign(CAMPAIGN.replace("operation: allreduce", workload), folder)


def _records(text: str, folder: Path) -> object:
    file = folder / "x.jsonl"
    file.write_text(text, "utf-8", "replace")
    return read_records(file).problems


def _output(text: str, folder: Path) -> object:  # noqa: ARG001  # it is read from memory
    # A mutated output may be whose it is not.
    return [read(text) for read in (*OUTPUTS.values(), read_json)]


def _recorded(name: str) -> str:
    folder = Path(__file__).parents[1] / "kernels" / "adapters" / "recorded"
    return (folder / name).read_text("utf-8")[:3000]


_KINDS: dict[str, tuple[Callable[[str, Path], object], str]] = {
    "space": (_space, SPACE),
    "campaign": (_campaign, CAMPAIGN),
    "system": (_system, _shipped("systems", "descriptions", "delta.yaml")),
    "catalogue": (_catalogue, _shipped("spaces", "catalogue", "aws-ofi-nccl.yaml")[:6000]),
    "recording": (_recording, RECORDING),
    "template": (_template, _shipped("slurm_templates", "templates", "block.sh.j2")),
    "matrix": (_matrix, "# FROM TO BYTES\n0 1 8\n1 0 8e3  # back\n"),
    "records": (_records, RECORDS),
    "osu": (_output, _recorded("osu-allreduce-7.5.txt")),
    "nccl-tests": (_output, _recorded("nccl-tests-2.19-made.json")),
}

#: What was found to go wrong somewhere, or is likely to.
_HOSTILE = (
    "8", "-1", "0", "9" * 400, "9" * 5000, "1e400", ".inf", ".nan", "NaN", "Infinity", "1e-320",
    "true", "null", "~", "[]", "{}", "[[[]]]", '""', "'", '"', '"\\0"', '"\\ud800"', "\udc80",
    "\x1b]52;c;x\x07", "\u202e", "²", "--5", "0x10", "~nosuchuser/x", "./" + "x" * 5000,
    "/dev/zero", "../../x.yaml", "*a", "&a [*a]", "!!python/name:os.system", "[" * 450, "- " * 80,
    "{a: " * 450, "\t", "\n", ": ", "{{ 1/0 }}", "{% for x in y %}", "{{ job.name.upper(1) }}",
)  # fmt: skip
_CUT = "cut"


def _mutate(text: str, changes: list[tuple[str, int, int]]) -> str:
    for change, first, second in changes:
        at = first % (len(text) + 1)
        lines = text.split("\n")
        here = first % len(lines)
        if change == _CUT:
            text = text[:at] + text[at + second % 40 :]
        elif change == "drop":
            text = "\n".join(lines[:here] + lines[here + 1 :])
        elif change == "double":
            text = "\n".join([*lines[: here + 1], *lines[here:]])
        elif change == "value":
            key, colon, _ = lines[here].partition(":")
            lines[here] = f"{key}{colon} {_HOSTILE[second % len(_HOSTILE)]}"
            text = "\n".join(lines)
        else:
            text = text[:at] + _HOSTILE[second % len(_HOSTILE)] + text[at:]
    return text


_CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["value", "value", "value", "insert", _CUT, "drop", "double"]),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("kind", _KINDS)
def test_unchanged_documents_are_read(kind: str, tmp_path: Path) -> None:
    read, text = _KINDS[kind]
    if kind != "catalogue":  # of which a part is taken
        result = read(text, tmp_path)
        assert kind != "records" or result == ()


@pytest.mark.parametrize("kind", _KINDS)
def test_mutated_documents_are_read_or_refused(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    read, text = _KINDS[kind]
    folder = tmp_path_factory.mktemp(kind)

    @settings(max_examples=_EXAMPLES)
    @given(_CHANGES)
    def mutated(changes: list[tuple[str, int, int]]) -> None:
        began = time.process_time()
        try:
            read(_mutate(text, changes), folder)
        except CommtuneError as error:
            assert error.message
        assert time.process_time() - began < _SOON_S

    mutated()
