"""sbatch, squeue, sacct, scancel, sinfo and scontrol of the fake Slurm.

They know the options that commtune gives them, and refuse others as Slurm does.
"""

# Every call of a program pays for what is imported, most of all for pathlib, json and re.
# ruff: noqa: PTH109, PTH119, PTH123

from __future__ import annotations

import os
import sys
import time

from fake_slurm.placing import compact, expand, place
from fake_slurm.state import Stay, Store, attempt, current, is_live, now_in, stays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fake_slurm.state import Json

#: sbatch's options that commtune or a template may give; they are taken and say nothing here.
_SBATCH = """
    account begin chdir cluster-constraint clusters comment constraint contiguous cpu-freq
    cpus-per-gpu cpus-per-task deadline dependency error exclude exclusive export gpus
    gpus-per-node gpus-per-task gres hint hold job-name kill-on-invalid-dep licenses mem
    mem-per-cpu mem-per-gpu network nice nodelist nodes no-requeue ntasks ntasks-per-node
    open-mode output overcommit parsable partition priority qos reservation requeue signal
    spread-job switches test-only threads-per-core time time-min use-min-nodes wckey
"""
_SHORT = {"N": "nodes", "n": "ntasks", "p": "partition", "J": "job-name", "t": "time"}
_REFUSED = "sbatch: error: Batch job submission failed: "


class Refusal(Exception):
    """What a program says before it ends with a status.

    Args:
        said: as Slurm says it.
    """

    def __init__(self, said: str, status: int = 1) -> None:
        super().__init__(said)
        self.said = said
        self.status = status


def options_in(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by their long names, and what else was given."""
    options: dict[str, str] = {}
    rest: list[str] = []
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            options[name] = value
        elif word.startswith("-") and word[1:2].isalpha():
            options[_SHORT.get(word[1], word[1])] = word[2:].lstrip("=")
        else:
            rest.append(word)
    return options, rest


def main(program: str, words: list[str], folder: str) -> int:
    """Does what a program does; returns its exit status."""
    store = Store(folder)
    said = ""
    try:
        with store.reading() as state:
            store.note_call(program, words, now_in(state))
            jobs = len(state["jobs"])
            answer = _planned_answer(state, program)
            if not answer or answer["acts"]:
                said = PROGRAMS[program](words, state)
            if answer or program in ("scancel", "scontrol") or jobs != len(state["jobs"]):
                store.write(state)
    except Refusal as refusal:
        sys.stderr.write(refusal.said + "\n")
        return refusal.status
    if program == "sbatch" and said:
        _run(store, state["jobs"][said.strip()])
    if answer:
        return _say(answer)
    sys.stdout.write(said)
    return 0


def _run(store: Store, job: Json) -> None:
    if job["run"] == "now":
        from fake_slurm.running import run_now

        run_now(store, job)
    elif job["run"] == "background":
        with open(f"{store.folder}/to-run/{job['number']}", "w"):
            pass


def _say(answer: Json) -> int:
    time.sleep(answer["hang_s"])
    sys.stderr.write(answer["text"])
    return int(answer["status"])


def _planned_answer(state: Json, program: str) -> Json | None:
    for answer in state["answers"]:
        if answer["program"] in (program, "*") and answer["times"] > 0:
            answer["times"] -= 1
            if not answer["times"]:
                state["answers"].remove(answer)
            found: Json = answer
            return found
    return None


def sbatch(words: list[str], state: Json) -> str:
    """Takes a job: its fate is the next that a test has put down, or the usual one."""
    given, rest = options_in(words)
    if not rest:
        raise Refusal("sbatch: error: Batch script is empty!")
    options = {**_directives(rest[0]), **given}
    for name in options:
        if name not in _SBATCH.split():
            raise Refusal(f"sbatch: unrecognized option '--{name}'")
    _check(options, state)
    now, number = now_in(state), state["next_number"]
    nodes = place(options, state, number)
    if "test-only" in options:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now))
        sys.stderr.write(
            f"sbatch: Job {number} to start at {when} using {len(nodes)} processors on nodes "
            f"{compact(nodes)} in partition {options.get('partition', 'main')}\n"
        )
        return ""
    state["next_number"] += 1
    state["jobs"][str(number)] = _new_job(options, rest[0], number, now, nodes, state)
    return f"{number}\n"


def _directives(script: str) -> dict[str, str]:
    try:
        with open(script) as file:
            text = file.read()
    except OSError:
        raise Refusal(f"sbatch: error: Unable to open file {script}") from None
    if not text.startswith("#!"):
        raise Refusal("sbatch: error: This does not look like a batch script.  The first")
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("#SBATCH "):
            found += line.removeprefix("#SBATCH ").split()  # commtune's hold no quotes
        elif line.strip() and not line.startswith("#"):
            break
    return options_in(found)[0]


def _check(options: dict[str, str], state: Json) -> None:
    partition = options.get("partition", state["partitions"][0])
    if partition not in state["partitions"]:
        raise Refusal(
            f"sbatch: error: invalid partition specified: {partition}\n"
            f"{_REFUSED}Invalid partition name specified"
        )
    if options.get("time") and not _is_time(options["time"]):
        raise Refusal("sbatch: error: Invalid --time specification")
    known = state["nodes"]
    for name in ("nodelist", "exclude"):
        if not set(expand(options.get(name, ""))) <= set(known):
            raise Refusal(f"{_REFUSED}Invalid node name specified")
    if int(options.get("nodes") or 1) > len(known) - len(expand(options.get("exclude", ""))):
        raise Refusal(f"{_REFUSED}Requested node configuration is not available")


def _is_time(text: str) -> bool:
    """Whether this is a time: days-hours:minutes:seconds, or the end of it."""
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    return len(parts) <= 3 and all(part.isdecimal() for part in ([days] if dash else []) + parts)


def _new_job(
    options: dict[str, str], script: str, number: int, now: float, nodes: list[str], state: Json
) -> Json:
    fate = state["fates"].pop(0) if state["fates"] else state["usual_fate"]
    attempts = [attempt(**{**one, "nodes": nodes}) for one in fate["attempts"]]
    if "hold" in options:
        attempts[0].update(wait_s=None, waits_for="JobHeldUser")
    return {
        "number": number,
        "name": options.get("job-name") or os.path.basename(script),
        "user": os.getuid(),
        "node_count": len(nodes),
        "partition": options.get("partition", state["partitions"][0]),
        "tasks": int(options.get("ntasks") or 0)
        or len(nodes) * int(options.get("ntasks-per-node") or 1),
        "script": script,
        "folder": options.get("chdir") or os.getcwd(),
        "output": options.get("output") or "slurm-%j.out",
        "submitted": now,
        "cancelled": None,
        "hidden": [],
        "run": fate["run"],
        "program": fate["program"],
        "attempts": attempts,
    }


def squeue(words: list[str], state: Json) -> str:
    """Lists jobs: all that live, and with --states=all those that ended some minutes ago."""
    known = "noheader array all states user users clusters format jobs steps"
    options = _known(words, "squeue", known)
    now, jobs = now_in(state), _asked(options, state, "squeue")
    if len(options.get("jobs", "").split(",")) == 1 and "jobs" in options and not jobs:
        raise Refusal("slurm_load_jobs error: Invalid job id specified")
    wanted = int(options["user"]) if options.get("user", "").isdigit() else None
    lines = []
    for job in jobs:
        stay = stays(job, now)[-1]
        kept_s = 0.0 if options.get("states") != "all" else state["min_job_age_s"]
        over = not is_live(job, now) and stay.ended is not None and now >= stay.ended + kept_s
        if over or (wanted is not None and job["user"] != wanted):
            continue
        if "steps" in options:
            lines += [f"{job['number']}.batch"] if stay.word == "RUNNING" else []
        else:
            lines.append(_queue_line(job, stay, options["format"]))
    return "".join(line + "\n" for line in lines)


def _queue_line(job: Json, stay: Stay, form: str) -> str:
    number = str(job["number"])
    values = {
        "i": number,
        "A": number,
        "T": stay.word,
        "r": stay.reason,
        "S": _time(stay.started),
        "e": _time(stay.ended),
        "D": str(job["node_count"]),
        "N": compact(stay.nodes),
        "j": job["name"],
    }
    return _filled(form, values)


def _time(moment: float | None, unknown: str = "N/A") -> str:
    if moment is None:
        return unknown
    form = os.environ.get("SLURM_TIME_FORMAT", "%Y-%m-%dT%H:%M:%S")
    return str(int(moment)) if form == "%s" else time.strftime(form, time.localtime(moment))


def sacct(words: list[str], state: Json) -> str:
    """Lists what the accounts have of jobs, every attempt of each."""
    known = (
        "allocations duplicates noheader parsable2 delimiter format jobs starttime endtime "
        "user clusters"
    )
    options = _known(words, "sacct", known)
    if state["accounts"] == "off":
        raise Refusal("Slurm accounting storage is disabled")
    if state["accounts"] == "down":
        raise Refusal("sacct: error: Problem talking to the database: Connection refused")
    seen_until = now_in(state) - state["accounts_lag_s"]
    jobs = _asked(options, state, "sacct")
    start = options.get("starttime", "now").removeprefix("uts")
    since = float(start) if start.isdigit() else seen_until
    user = options.get("user", "")
    lines = []
    for job in jobs:
        if job["submitted"] > seen_until or user not in ("", str(job["user"])):
            continue
        attempts = stays(job, seen_until)
        for stay in attempts if "duplicates" in options else attempts[-1:]:
            if (stay.ended or seen_until) >= since:
                lines.append(_account_line(job, stay, seen_until, options))
    return "".join(line + "\n" for line in lines)


def _account_line(job: Json, stay: Stay, now: float, options: dict[str, str]) -> str:
    number, by = str(job["number"]), stay.cancelled_by
    ran_s = 0.0 if stay.started is None else (stay.ended or now) - stay.started
    values = {
        "JobIDRaw": number,
        "State": stay.word if by is None else f"{stay.word} by {by}",
        "Reason": stay.reason if stay.word == "PENDING" else "None",
        "Start": _time(stay.started, "Unknown"),
        "End": _time(stay.ended, "Unknown"),
        "ElapsedRaw": str(int(ran_s)),
        "AllocNodes": str(len(stay.nodes)),
        "NodeList": compact(stay.nodes) or "None assigned",
        "JobName": job["name"],
    }
    return options["delimiter"].join(values[name] for name in options["format"].split(","))


def _asked(options: dict[str, str], state: Json, program: str) -> list[Json]:
    wanted = options["jobs"].split(",") if "jobs" in options else state["jobs"]
    found = [state["jobs"][number] for number in wanted if number in state["jobs"]]
    return [job for job in found if program not in job["hidden"]]


def _known(words: list[str], program: str, names: str) -> dict[str, str]:
    options, rest = options_in(words)
    for name in options:
        if name not in names.split():
            raise Refusal(f"{program}: unrecognized option '--{name}'")
    if rest:
        raise Refusal(f"{program}: error: Unrecognized option: {rest[0]}")
    return options


def scancel(words: list[str], state: Json) -> str:
    """Cancels jobs; what is over or unknown is passed over in silence, as by Slurm."""
    options, numbers = options_in(words)
    if options.keys() - {"clusters"} or not all(n.isdecimal() for n in numbers):
        raise Refusal(f"scancel: error: Invalid job id {' '.join(words)}")
    for number in numbers:
        job = state["jobs"].get(number)
        if job and is_live(job, now_in(state)):
            job["cancelled"] = [now_in(state), os.getuid()]
    return ""


def sinfo(words: list[str], state: Json) -> str:
    """Lists nodes, one a line."""
    options = _known(words, "sinfo", "Node noheader clusters nodes format")
    nodes = state["nodes"]
    wanted = expand(options["nodes"]) if "nodes" in options else list(nodes)
    values = [{"N": name, "T": nodes[name]} for name in wanted if name in nodes]
    return "".join(_filled(options["format"], value) + "\n" for value in values)


def _filled(form: str, values: dict[str, str]) -> str:
    first, *others = form.split("%")
    return first + "".join(values[other[0]] + other[1:] for other in others)


def scontrol(words: list[str], state: Json) -> str:
    """What commtune asks of the site: its configuration and its network; and puts jobs back."""
    accounts = "none" if state["accounts"] == "off" else "slurmdbd"
    config = {
        "ClusterName": "fake",
        "SLURM_VERSION": "22.05.8",
        "AccountingStorageType": f"accounting_storage/{accounts}",
    }
    answers: dict[str, str] = {
        "ping": "Slurmctld(primary) at fake is UP\n",
        "show config": "".join(f"{key:<23} = {value}\n" for key, value in config.items()),
        "show topology": state["topology"],
    }
    asked = " ".join(words)
    if asked.startswith("show hostnames "):
        return "".join(name + "\n" for name in expand(words[2]))
    if words[:1] in (["update"], ["requeue"]):
        return _put_back(words, state)
    if asked not in answers:
        raise Refusal(f"scontrol: error: the fake one does not know: {asked}")
    return answers[asked]


def _put_back(words: list[str], state: Json) -> str:
    """update jobid=7 requeue=1; requeue 7."""
    job = state["jobs"][words[1].removeprefix("jobid=")]
    if words[0] == "update":
        job["requeue"] = words[2] == "requeue=1"
        return ""
    if not job.get("requeue"):
        raise Refusal(f"Requested operation is presently disabled for job {job['number']}")
    last = current(job, now_in(state))
    last.update(ended=now_in(state), word="REQUEUED")
    job["attempts"].append({**last, "wait_s": None, "ended": None, "waits_for": "BeginTime"})
    return ""


PROGRAMS = {
    "sbatch": sbatch,
    "squeue": squeue,
    "sacct": sacct,
    "scancel": scancel,
    "sinfo": sinfo,
    "scontrol": scontrol,
}
