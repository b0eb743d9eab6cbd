"""Makes rules/*.txt beside this file, on a machine with two GPUs.

    python record_rules.py record FILE.json   traces each case; what was printed goes to the file
    python record_rules.py tidy FILE.json     writes the logs, trimmed and made anonymous

The file of rules is that of ``tests/support/stored/nccl_rules.py``; in two cases its last rule is
changed. Needs commtune, and ``tests/support/stored`` on PYTHONPATH.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nccl_rules import export_nccl_rules

from commtune.app.measure import benchmarking
from commtune.app.profiles.rule_verification import deployed_settings, prove_rules
from commtune.cluster.tracing.tracer import Tracer
from commtune.errors import CommtuneError
from commtune.model import Configuration, Execution, RunRequest, Timing
from commtune.wiring import benchmark_setup

_LAST_RULE = "allreduce,2049,4096,ring,simple,0,2,2"
_CHANGED = {
    "other-ranks": "allreduce,2049,4096,ring,simple,0,2,16",
    "other-protocol": "allreduce,2049,4096,ring,ll,0,2,2",
}
#: What the parser of NCCL's logs reads.
_OF_USE = re.compile(
    r"NCCL INFO (?:commtune tuner|TUNER|\w+: \d+ Bytes|NCCL_\w+ set by|\d+ coll channels)"
    r"| tuner plugin |NCCL version|NCCL WARN| via "
)


def _record(output: Path) -> None:
    said: dict[str, object] = {}
    mpi = benchmark_setup.find_named_mpi("auto")
    with tempfile.TemporaryDirectory() as folder, _listening() as printed:
        rules, file = export_nccl_rules(Path(folder))
        # In the order of the proof: with the file, the default, and the rules as variables.
        said["proof"] = str(prove_rules(file, rules, mpi))
        for name in ("file", "default", "tree-ll", "ring-simple"):
            request, said[name] = printed.pop(0)
        own = deployed_settings(file, rules)
        del own["NCCL_TUNER_PLUGIN"]
        again = RunRequest("no-plugin", Configuration(own), request.workload, Timing())
        benchmarking.trace_each(again, [again.configuration], mpi)
        said["no-plugin"] = printed.pop()[1]
        text = file.read_text()
        for name, row in _CHANGED.items():
            assert _LAST_RULE in text
            file.write_text(text.replace(_LAST_RULE, row))
            try:
                prove_rules(file, rules, mpi)
            except CommtuneError as error:
                said[f"{name} is refused"] = f"{error.message}\n{error.hint}"
            said[name] = printed[0][1]
            printed.clear()
    output.write_text(json.dumps(said, indent=1))
    for name, words in said.items():
        print(name, words if "refused" in name or name == "proof" else "")


@contextmanager
def _listening() -> Iterator[list[tuple[RunRequest, str]]]:
    """What traced runs print, one after the other."""
    printed: list[tuple[RunRequest, str]] = []
    read = Tracer.read

    def keep(self: Tracer, request: RunRequest, output: str) -> Execution | None:
        printed.append((request, output))
        return read(self, request, output)

    Tracer.read = keep  # type: ignore[method-assign]  # put back below
    try:
        yield printed
    finally:
        Tracer.read = read  # type: ignore[method-assign]


def _tidy(recorded: Path) -> None:
    folder = Path(__file__).parent / "rules"
    folder.mkdir(exist_ok=True)
    for name, words in json.loads(recorded.read_text()).items():
        if name != "proof" and "refused" not in name:
            lines = dict.fromkeys(map(_anonymous, filter(_OF_USE.search, words.splitlines())))
            (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


def _anonymous(line: str) -> str:
    line = re.sub(r"^\S+:\d+:\d+ \[", "node0:100:100 [", line)
    line = re.sub(r"/\S*/(?=rules\.csv|libnccl)", "/home/user/", line)
    line = re.sub(r"\b\d+\.\d+\.\d+\.\d+\b", "192.0.2.1", line)
    return re.sub(r"0x[0-9a-f]{6,}", "0x1", line)


if __name__ == "__main__":
    {"record": _record, "tidy": _tidy}[sys.argv[1]](Path(sys.argv[2]))
