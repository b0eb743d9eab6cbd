"""Runs a user's command as a program for the tuner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commtune.documents.packed_files import read_kept
from commtune.kernels.adapters.formats import OUTPUTS, Reading, read_json
from commtune.kernels.records import beyond_the_run
from commtune.model import RunRequest
from commtune.tuner.ports import Records

_LARGEST_FILE = 64 * 2**20
_END = re.compile(r"^#commtune: ended (\d+) after (\S*) (\S*)$", re.MULTILINE)
#: A shell script that writes the output of rank 0 to the run's record file, and at the end how the
#: command ended. It adds no process to those of the ranks. Status 3 is changed, since that is the
#: native benchmark's status for wrong results.
_CAPTURE = """\
folder=$1 records=$2
[ -z "$3" ] || PATH=$3
[ -z "$4" ] || export MPI4PY_LIBMPI="${MPI4PY_LIBMPI:-$4}"
shift 4
cd "$folder" || exit 1
first=yes
for rank in "${PMI_RANK-}" "${PMIX_RANK-}" "${OMPI_COMM_WORLD_RANK-}" "${SLURM_PROCID-}"; do
    case $rank in '' | 0) ;; *) first=no ;; esac
done
if [ $first = no ]; then
    "$@"
    status=$?
else
    began=$(date +%s.%N)
    "$@" >"$records"
    status=$?
    [ $status -eq 0 ] || tail -c 2000 "$records"
    printf '\\n#commtune: ended %s after %s %s\\n' $status "$began" "$(date +%s.%N)" >>"$records"
fi
[ $status -ne 3 ] || status=1
exit $status
"""


@dataclass(frozen=True)
class CommandProgram:
    """A user's command; implements ``tuner.ports.Program``."""

    command: Sequence[str]  # its words, with placeholders such as ``{sizes}``
    output: str  # one of ``OUTPUTS``
    folder: Path
    path: str = ""  # PATH for the command; empty for the launcher's
    #: Where mpi4py finds the launcher's MPI, unless a protected variable says it; empty to leave
    #: that to mpi4py.
    libmpi: str = ""
    #: Empty, since such a program can't report its ranks' variables.
    env_names: Sequence[str] = field(default=(), init=False)

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        kept = [str(self.folder), str(records), self.path, self.libmpi]
        return ["/bin/sh", "-c", _CAPTURE, "commtune", *kept, *self.words(request, records)]

    def words(self, request: RunRequest, records: Path) -> list[str]:
        """Returns the command with its placeholders replaced."""
        workload = request.workload
        values = {
            "{sizes}": ",".join(str(size) for size in workload.sizes),
            "{smallest}": str(min(workload.sizes)),
            "{largest}": str(max(workload.sizes)),
            "{ranks}": str(workload.ranks),
            "{run_id}": request.run_id,
            "{json}": str(_json_of(records)),
        }
        placeholder = re.compile("|".join(map(re.escape, values)))
        return [placeholder.sub(lambda match: values[match[0]], word) for word in self.command]

    def read(self, records: Path, request: RunRequest) -> Records:
        """Reads the output of the command, without sizes that were not requested."""
        text = _text(records)
        if text is None:
            return Records()
        ended = _END.search(text)
        asked = set(request.workload.sizes)
        reading = self._reading(records, text, asked)
        status = int(ended[1]) if ended else None
        measurements = tuple(m for m in reading.measurements if m.bytes in asked)
        wrong = reading.is_wrong or any(m.wrong for m in reading.measurements)
        footer = None
        # Without the last line the output is truncated. A status other than 0 is a failure,
        # unless it is explained by wrong results.
        if ended and (status == 0 or wrong) and reading.ended is not False:
            footer = _footer(len(measurements), ended, wrong=wrong)
        problems = reading.problems if status == 0 else ()
        if footer is not None:
            problems += tuple(beyond_the_run(measurements, footer["elapsed_s"]))
        return Records(self._header(request), measurements, footer, problems)

    def _reading(self, records: Path, text: str, asked: set[int]) -> Reading:
        as_json = _text(_json_of(records)) if self.output.startswith("nccl-tests") else None
        if as_json is not None:
            return read_json(as_json, asked, in_place=self.output.endswith("in-place"))
        return OUTPUTS[self.output](text, asked)

    def _header(self, request: RunRequest) -> dict[str, Any]:
        workload = request.workload
        return {
            "record": "header",
            "run_id": request.run_id,
            "benchmark": {"command": list(self.command), "output": self.output},
            "backend": workload.backend,
            "operation": str(workload.operation),
            "ranks": workload.ranks,
        }


def _json_of(records: Path) -> Path:
    return records.with_suffix(".json")


def _text(path: Path) -> str | None:
    try:
        return read_kept(path, _LARGEST_FILE).decode(errors="replace")
    except OSError:
        return None


def _footer(measurements: int, ended: re.Match[str], *, wrong: bool) -> dict[str, Any]:
    try:
        elapsed_s = max(0.0, float(ended[3]) - float(ended[2]))
    except ValueError:  # this date(1) has no nanoseconds
        elapsed_s = 0.0
    return {
        "record": "footer",
        "status": "wrong" if wrong else "ok",
        "measurements": measurements,
        "elapsed_s": elapsed_s,
    }
