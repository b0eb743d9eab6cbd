"""Judges how a run ended, by its exit status, its output and its records."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from commtune import process
from commtune.formatting import format_count, list_first
from commtune.model import FEWEST_TAIL_SAMPLES, Operation, Outcome, RunRequest, RunResult
from commtune.tuner.ports import Records

#: Exit status of the benchmark for wrong data (its contract).
WRONG_RESULT = 3
#: Messages of the benchmark when the launcher started other ranks than were asked for (exit status
#: 4), or this machine can't do what was asked for (5). The launcher's own exit status may be that
#: of other ranks, which it killed.
_NO_FAULT_OF_SETTINGS = re.compile(r"commtune-bench: ((?:asked for were|waived:) .*)")
#: Exit status of coreutils' timeout after SIGKILL, and all that it has once the time is over.
KILLED = 137
OVER_TIME = (124, KILLED)
#: Messages of launchers when a signal ended a rank.
_SIGNAL_WORDS = re.compile(r"exited on signal|KILLED BY SIGNAL|EXIT STRING: .*\(signal", re.I)


MISSING = "a program is missing"
#: Messages of the C library, shells, Open MPI and our benchmark when a disk is full or no process
#: can be created, and when a shell finds no program. Not "Too many open files" of one process,
#: "Cannot allocate memory" and "Input/output error": settings can cause them by more sockets,
#: larger buffers, or a transport that fails (UCX). If it's the machine, the default fails as well.
_MACHINE_FAULTS = {
    "a disk is full": r"No space left on device|Disk quota exceeded|can't write a record",
    "no process can be started": (
        r"(?:fork|clone|spawn|thread|process|exec).*Resource temporarily unavailable"
        r"|can't start new thread|[Cc]annot fork|pmix_progress_thread_start failed"
        r"|Unable to start listen thread|system limit exceeded on number of processes"
        r"|ERROR: .*odls_default_module"
    ),
    "a file system failed": r"Stale (?:NFS )?file handle|Read-only file system",
    "too many files are open": r"Too many open files in system",
    # Shells, Python and Perl differ in their exit statuses for a script that they can't read.
    MISSING: r"[Cc]an(?:not|'t) open .*No such file",
}
_CANT_START = {126: "a program can't be executed", 127: MISSING}
#: What shells say then. Launchers add that a process failed, and Open MPI prints that first.
_SHELL_WORDS = re.compile(
    r"^.*: (?:.*not found|Permission denied|No such file or directory|cannot execute.*)$", re.M
)
_FRAMED = re.compile(r"^-{9,}\n(.*\w.*)", re.MULTILINE)  # an error message of Open MPI
#: The error stack of MPICH and Intel MPI. Its last line with a message says most.
_ERROR_STACK = re.compile(r"Fatal error in .* error stack:((?:\n\w+\(\d+\)\.*:.*)+)")
_WITHOUT_MESSAGE = re.compile(r"\n.*: *$", re.MULTILINE)
#: Counts as the configuration's, since settings can ask for more shared memory than the default.
_BUS_ERROR = re.compile(r"Bus error|EXIT STRING: .*\(signal 7\)")
_NO_SHARED_MEMORY = (
    "a rank was ended by a bus error: /dev/shm is most likely full or too small (df -h /dev/shm)"
)

#: Takes a failed run's output, whether ranks came up, and whether it was killed at its time limit;
#: returns what the launcher is to blame for, with a message, or ``None``.
JudgeLauncher = Callable[[str, bool, bool], tuple[Outcome, str] | None]


def judge_run(
    found: Records,
    completed: process.Completed,
    time_limit_s: float,
    judge_launcher: JudgeLauncher | None = None,
) -> tuple[Outcome, str]:
    """Returns how a run ended, from its process and its records, with a message."""
    # srun may end with 0 although a node failed during the step.
    if judge_launcher is not None and not (completed.ok and found.footer):
        began = found.header is not None
        if lost := judge_launcher(completed.output, began, completed.timed_out):
            return lost
    outcome, detail = _judge_end(found, completed, time_limit_s)
    blamed = outcome.blames_configuration and outcome is not Outcome.WRONG_RESULT
    fault = _find_machine_fault(completed) if blamed else ""
    return (Outcome.NODE_FAILURE, fault) if fault else (outcome, detail)


def _find_machine_fault(completed: process.Completed) -> str:
    """Returns a message if the machine lacked space, processes or a program; else empty."""
    for fault, words in _MACHINE_FAULTS.items():
        if said := re.search(f".*(?:{words}).*", completed.output):
            return f"{fault}: {said[0].strip()}"
    if why := _CANT_START.get(completed.exit_code or 0):
        said = _SHELL_WORDS.search(completed.output)
        reason = said[0] if said else find_reason(completed.output)
        return f"{why} (status {completed.exit_code}): {reason}".removesuffix(": ")
    return ""


def find_reason(output: str) -> str:
    """Returns the line of a failed launch's output that says why it failed, or the last one."""
    framed, stack = _FRAMED.search(output), _ERROR_STACK.search(output)
    if framed:
        return framed[1]
    said = _WITHOUT_MESSAGE.sub("", stack[1]) if stack else output
    return said.strip().rpartition("\n")[2]


def _judge_end(
    found: Records, completed: process.Completed, time_limit_s: float
) -> tuple[Outcome, str]:
    if completed.timed_out:
        finished = format_count(len(found.measurements), "size")
        return Outcome.TIMED_OUT, f"over its {time_limit_s:.1f} s, with {finished} finished"
    if completed.exit_code == WRONG_RESULT or (found.footer or {}).get("status") == "wrong":
        every = (*found.measurements, *(piece.measurement for piece in found.pieces))
        wrong = sum(measurement.wrong for measurement in every)
        return Outcome.WRONG_RESULT, f"{wrong} elements of the result were wrong"
    # Other ranks than were asked for, or what this machine can't do.
    if completed.exit_code and (said := _NO_FAULT_OF_SETTINGS.search(completed.output)):
        return Outcome.MISSING_PROGRAM, said[1]
    if found.mismatch:
        return Outcome.MISSING_PROGRAM, found.mismatch
    return _judge_exit(completed) or _judge_completeness(found)


def _judge_exit(completed: process.Completed) -> tuple[Outcome, str] | None:
    code = completed.exit_code
    ended_by = completed.signal or (code or 0) - 128
    if ended_by == signal.SIGBUS or (code and _BUS_ERROR.search(completed.output)):
        return Outcome.CRASHED, _NO_SHARED_MEMORY
    if completed.signal is not None:
        return Outcome.CRASHED, f"the launcher was ended by signal {completed.signal}"
    if not code:
        return None
    # First: a launcher may report the signals by which it ended the other ranks.
    if _ERROR_STACK.search(completed.output):
        return Outcome.FAILED, f"MPI failed: {find_reason(completed.output)}"
    if _SIGNAL_WORDS.search(completed.output):
        return Outcome.CRASHED, f"a rank was ended by a signal (status {code})"
    # A shell's exit status for a child that a signal ended.
    if 128 < code <= 128 + signal.SIGRTMAX:
        return Outcome.CRASHED, f"ended by signal {code - 128}"
    return Outcome.FAILED, f"exit status {code}"


def _judge_completeness(found: Records) -> tuple[Outcome, str]:
    """Checks that the record file of a run with exit status 0 is complete."""
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
    """Checks that the records of a successful run contain what was asked for.

    The message of a good run says whether its GPUs were throttled.
    """
    for operation in request.workload.operations:
        missing = set(request.workload.sizes) - _measured(request, operation, found)
        if missing:
            named = f" of {operation}" if request.workload.then else ""
            sizes = f"{format_count(len(missing), 'size')}: {list_first(sorted(missing))} bytes"
            return Outcome.MALFORMED, f"no record{named} for {sizes}"
    if few := _find_few_samples(request, found):
        return Outcome.MALFORMED, few
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
    """Completes the outcome of ``judge_run``: checks records, or says which operation failed."""
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
    """Returns the result of a run; ``started_at`` is in seconds since 1970."""
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
    """Names the operations at which a run of several failed; empty for a run of one.

    These are the ones with wrong elements, or else the first one with missing sizes.
    """
    workload = request.workload
    if not workload.then:
        return ""
    wrong = {m.operation or workload.operation for m in found.measurements if m.wrong}
    named = [operation for operation in workload.operations if operation in wrong]
    sizes = set(workload.sizes)
    lacking = (o for o in workload.operations if sizes - _measured(request, o, found))
    named = named or list(islice(lacking, 1))
    # Without a header nothing was measured, so that no operation can be named.
    return f" (at {', '.join(named)})" if named and found.header is not None else ""


def _measured(request: RunRequest, operation: Operation, found: Records) -> set[int]:
    """Returns the sizes (bytes) that were measured; for PAIRS, those with all pairs of ranks."""
    first = request.workload.operation
    if operation is not Operation.PAIRS:
        return {m.bytes for m in found.measurements if (m.operation or first) == operation}
    counts = Counter(piece.measurement.bytes for piece in found.pieces)
    ranks = request.workload.ranks
    return {size for size, count in counts.items() if count == ranks * (ranks - 1)}


def _find_few_samples(request: RunRequest, found: Records) -> str:
    """Names a size with too few samples for its 95th percentile; empty if nobody asked for it.

    Of commtune's own benchmarks it has as many in every run, because it depends on their number.
    """
    if request.timing.percentile == 50:
        return ""
    is_command = "command" in (found.header or {}).get("benchmark", {})
    least = FEWEST_TAIL_SAMPLES if is_command else request.timing.min_samples
    hint = "print them as times_s" if is_command else "raise timing.time_cap"
    few = [(len(m.samples_s), m.bytes) for m in found.measurements if len(m.samples_s) < least]
    if not few:
        return ""
    count, size = min(few)
    return f"{count} of {least} samples for the 95th percentile at {size} bytes: {hint}"


def _strange_environment(
    header: Mapping[str, Any], expected: Mapping[str, str], watched: Sequence[str]
) -> str:
    """Returns a message if a rank had an unexpected value of a variable; else empty.

    Args:
        expected: pinned variables and the configuration; a watched variable that is not in it
            must be unset on every rank.
    """
    for rank in header.get("rank_info", ()):
        seen = rank["environment"]
        for name in watched:
            if seen.get(name) != expected.get(name):
                saw = f"{name}={seen[name]}" if name in seen else f"{name} unset"
                return f"rank {rank.get('rank')} saw {saw}, not {expected.get(name, 'unset')}"
    return ""


#: Throttle reasons that don't disturb: the GPU was idle, or has fixed clocks in all runs.
_CHOSEN = frozenset({"none", "idle", "gpu-idle", "applications-clocks", "display-clock"})


def _find_throttled_ranks(footer: Mapping[str, Any] | None) -> str:
    """Names the ranks whose GPUs were throttled before or after the sizes, and why; else empty."""
    ranks = (footer or {}).get("gpus")
    told = []
    for rank, states in enumerate(ranks if isinstance(ranks, list) else []):
        if reasons := _reasons(states):
            told.append(f"rank {rank} {', '.join(reasons)}")
    return f"GPUs were slowed down: {'; '.join(told)}" if told else ""


def _reasons(states: object) -> list[str]:
    """Returns a rank's distinct throttle reasons; ignores anything that isn't a list of them."""
    found: dict[str, None] = {}
    for state in states.values() if isinstance(states, Mapping) else ():
        throttle = state.get("throttle") if isinstance(state, Mapping) else None
        words = throttle if isinstance(throttle, list) else []
        told = (word for word in words if isinstance(word, str) and word not in _CHOSEN)
        found.update(dict.fromkeys(told))
    return list(found)
