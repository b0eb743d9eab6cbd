"""How a run ended, from its processes and from what it wrote."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from commtune import process
from commtune.formatting import format_count, list_first
from commtune.model import Operation, Outcome, RunRequest, RunResult
from commtune.tuner.ports import Records

#: Exit status of the benchmark for wrong data (its contract).
WRONG_RESULT = 3
#: How it says that ranks came up otherwise than they were asked for. Its exit status is 4 then,
#: but the launcher's is that of the ranks which it ended for it.
#: Likewise that this machine can't do what was asked for, with status 5.
_NO_FAULT_OF_SETTINGS = re.compile(r"commtune-bench: ((?:asked for were|waived:) .*)")
#: What coreutils' timeout answers: the time was over; it had to kill.
OVER_TIME = (124, 137)
#: Launchers turn a rank's death by signal into words, each its own.
_SIGNAL_WORDS = re.compile(r"exited on signal|KILLED BY SIGNAL|EXIT STRING: .*\(signal", re.I)


MISSING = "a program is missing"
#: What the C library, shells, Open MPI and our benchmark print when the machine has no room or no
#: process left, and when a shell can't start a program that is there otherwise.
_MACHINE_FAULTS = {
    "a disk is full": r"No space left on device|Disk quota exceeded|can't write a record",
    "no process can be started": (
        r"(?:fork|clone|spawn|thread|process|exec).*Resource temporarily unavailable"
        r"|can't start new thread|[Cc]annot fork|pmix_progress_thread_start failed"
        r"|Unable to start listen thread|system limit exceeded on number of processes"
        r"|ERROR: .*odls_default_module"
    ),
    # Shells, Python and Perl have statuses of their own for a script that they can't read.
    MISSING: r"[Cc]an(?:not|'t) open .*No such file",
}
_CANT_START = {126: "a program can't be executed", 127: MISSING}
_FRAMED = re.compile(r"^-{9,}\n(.*\w.*)", re.MULTILINE)  # as Open MPI says what is wrong
_BUS_ERROR = re.compile(r"Bus error|EXIT STRING: .*\(signal 7\)")
_NO_SHARED_MEMORY = (
    "a rank was ended by a bus error: /dev/shm is most likely full or too small (df -h /dev/shm)"
)

#: From what a launcher printed for a run that failed, whether ranks came up, and whether it was
#: ended at its time limit: what the launcher is to blame for, in words; or ``None``.
JudgeLauncher = Callable[[str, bool, bool], tuple[Outcome, str] | None]


def judge_run(
    found: Records,
    completed: process.Completed,
    time_limit_s: float,
    judge_launcher: JudgeLauncher | None = None,
) -> tuple[Outcome, str]:
    """How a run ended, from its process and its records, and why in words.

    Args:
        judge_launcher: tells from its output whether the launcher is to blame.
    """
    # srun ends with 0 where a node died under a step.
    if judge_launcher is not None and not (completed.ok and found.footer):
        began = found.header is not None
        if lost := judge_launcher(completed.output, began, completed.timed_out):
            return lost
    outcome, detail = _judge_end(found, completed, time_limit_s)
    blamed = outcome.blames_configuration and outcome is not Outcome.WRONG_RESULT
    fault = _find_machine_fault(completed) if blamed else ""
    return (Outcome.NODE_FAILURE, fault) if fault else (outcome, detail)


def _find_machine_fault(completed: process.Completed) -> str:
    """What the machine lacked for a moment, in words; empty where no sign of that is there."""
    for fault, words in _MACHINE_FAULTS.items():
        if said := re.search(f".*(?:{words}).*", completed.output):
            return f"{fault}: {said[0].strip()}"
    if why := _CANT_START.get(completed.exit_code or 0):
        framed = _FRAMED.search(completed.output)
        shown = framed[1] if framed else completed.output.strip().rpartition("\n")[2]
        return f"{why} (status {completed.exit_code}): {shown}".removesuffix(": ")
    return ""


def _judge_end(
    found: Records, completed: process.Completed, time_limit_s: float
) -> tuple[Outcome, str]:
    if completed.timed_out:
        count = len(found.measurements)
        finished = f"{count} size{'' if count == 1 else 's'} finished"
        return Outcome.TIMED_OUT, f"over its {time_limit_s:.1f} s, with {finished}"
    if completed.exit_code == WRONG_RESULT or (found.footer or {}).get("status") == "wrong":
        every = (*found.measurements, *(piece.measurement for piece in found.pieces))
        wrong = sum(measurement.wrong for measurement in every)
        return Outcome.WRONG_RESULT, f"{wrong} elements of the result were wrong"
    return _judge_world(found, completed) or _judge_exit(completed) or _judge_completeness(found)


def _judge_world(found: Records, completed: process.Completed) -> tuple[Outcome, str] | None:
    """Judges runs whose ranks came up otherwise than asked for, or that this machine can't do."""
    if completed.exit_code and (said := _NO_FAULT_OF_SETTINGS.search(completed.output)):
        return Outcome.MISSING_PROGRAM, said[1]
    return (Outcome.MISSING_PROGRAM, found.mismatch) if found.mismatch else None


def _judge_exit(completed: process.Completed) -> tuple[Outcome, str] | None:
    code = completed.exit_code
    ended_by = completed.signal or (code or 0) - 128
    if ended_by == signal.SIGBUS or (code and _BUS_ERROR.search(completed.output)):
        return Outcome.CRASHED, _NO_SHARED_MEMORY
    if completed.signal is not None:
        return Outcome.CRASHED, f"the launcher was ended by signal {completed.signal}"
    if not code:
        return None
    if _SIGNAL_WORDS.search(completed.output):
        return Outcome.CRASHED, f"a rank was ended by a signal (status {code})"
    # A shell's word for a child that a signal ended.
    if 128 < code <= 128 + signal.SIGRTMAX:
        return Outcome.CRASHED, f"ended by signal {code - 128}"
    return Outcome.FAILED, f"exit status {code}"


def _judge_completeness(found: Records) -> tuple[Outcome, str]:
    """Whether the record file of processes that ended well is whole."""
    if found.problems:
        return Outcome.MALFORMED, "; ".join(found.problems[:3])
    if found.footer is not None:
        return Outcome.OK, ""
    if "command" in (found.header or {}).get("benchmark", {}):
        return Outcome.TRUNCATED, "the command ended before its table was complete"
    return Outcome.TRUNCATED, "the record file has no footer"


def _judge_content(
    request: RunRequest, found: Records, expected: Mapping[str, str], watched: Sequence[str]
) -> tuple[Outcome, str]:
    """Whether the records of a run that ended well hold what was asked for.

    Of a good run the words say what disturbed it, if its GPUs were slowed down.

    Args:
        expected, watched: as for ``strange_environment``.
    """
    for operation in request.workload.operations:
        missing = set(request.workload.sizes) - _measured(request, operation, found)
        if missing:
            named = f" of {operation}" if request.workload.then else ""
            sizes = f"{format_count(len(missing), 'size')}: {list_first(sorted(missing))} bytes"
            return Outcome.MALFORMED, f"no record{named} for {sizes}"
    strange = _strange_environment(found.header or {}, expected, watched)
    if strange:
        return Outcome.FAILED, strange
    return Outcome.OK, _find_throttled_ranks(found.footer)


def judge_whole(
    request: RunRequest,
    found: Records,
    judged: tuple[Outcome, str],
    expected: Mapping[str, str],
    watched: Sequence[str],
) -> tuple[Outcome, str]:
    """What ``judge_run`` says of a run, and what its records hold or where it failed."""
    outcome, detail = judged
    if outcome is Outcome.OK:
        return _judge_content(request, found, expected, watched)
    at = _failed_operations(request, found) if outcome.blames_configuration else ""
    return outcome, detail + at


def result_of(
    request: RunRequest,
    found: Records,
    judged: tuple[Outcome, str],
    started_at: float,
    completed: process.Completed,
    padding: Mapping[str, int],
) -> RunResult:
    """The result of a run from its records and process; ``started_at`` in seconds since 1970."""
    outcome, detail = judged
    header = None
    if found.header is not None:
        header = {**found.header, **({"environment": padding} if padding else {})}
    return RunResult(
        run_id=request.run_id,
        outcome=outcome,
        started_at=started_at,
        wall_s=completed.wall_s,
        measurements=found.measurements,
        pieces=found.pieces,
        header=header,
        footer=found.footer,
        detail=detail,
        output_tail=completed.output if outcome is not Outcome.OK else "",
        exit_code=completed.exit_code,
        oversubscribed=bool((found.header or {}).get("oversubscribed")),
    )


def _failed_operations(request: RunRequest, found: Records) -> str:
    """The operations that a failed run of several failed at, in words; empty where it had one.

    Those with wrong elements, else the first one that is not measured whole.
    """
    workload = request.workload
    if not workload.then:
        return ""
    wrong = {m.operation or workload.operation for m in found.measurements if m.wrong}
    named = [operation for operation in workload.operations if operation in wrong]
    sizes = set(workload.sizes)
    lacking = (o for o in workload.operations if sizes - _measured(request, o, found))
    named = named or list(islice(lacking, 1))
    # Without a header nothing was measured yet: all of it failed.
    return f" (at {', '.join(named)})" if named and found.header is not None else ""


def _measured(request: RunRequest, operation: Operation, found: Records) -> set[int]:
    """The sizes of an operation that are there: of pairs, those with all of them."""
    first = request.workload.operation
    if operation is not Operation.PAIRS:
        return {m.bytes for m in found.measurements if (m.operation or first) == operation}
    counts = Counter(piece.measurement.bytes for piece in found.pieces)
    ranks = request.workload.ranks
    return {size for size, count in counts.items() if count == ranks * (ranks - 1)}


def _strange_environment(
    header: Mapping[str, object], expected: Mapping[str, str], watched: Sequence[str]
) -> str:
    """What ranks saw otherwise than they should, in words; empty where all is as it should be.

    Args:
        expected: pinned variables and the configuration; a watched variable that is not in it
            must be unset on every rank.
    """
    ranks = header.get("rank_info")
    for rank in ranks if isinstance(ranks, list) else []:
        seen = rank.get("environment", {})
        for name in watched:
            if seen.get(name) != expected.get(name):
                saw = f"{name}={seen[name]}" if name in seen else f"{name} unset"
                return f"rank {rank.get('rank')} saw {saw}, not {expected.get(name, 'unset')}"
    return ""


#: What somebody set, which holds for all runs alike.
_CHOSEN = frozenset({"none", "idle", "gpu-idle", "applications-clocks", "display-clock"})


def _find_throttled_ranks(footer: Mapping[str, Any] | None) -> str:
    """Which ranks' GPUs were slowed down before or after the sizes, and why; else empty."""
    ranks = (footer or {}).get("gpus")
    told = []
    for rank, states in enumerate(ranks if isinstance(ranks, list) else []):
        if reasons := _reasons(states):
            told.append(f"rank {rank} {', '.join(reasons)}")
    return f"GPUs were slowed down: {'; '.join(told)}" if told else ""


def _reasons(states: object) -> list[str]:
    """Reasons of a rank, before and after, each once; whatever is no list of words is none."""
    found: dict[str, None] = {}
    for state in states.values() if isinstance(states, Mapping) else ():
        throttle = state.get("throttle") if isinstance(state, Mapping) else None
        words = throttle if isinstance(throttle, list) else []
        found.update(dict.fromkeys(str(word) for word in words if word not in _CHOSEN))
    return list(found)
