"""Builds the command line that starts all ranks of a run inside a job."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from commtune.model import JobScheduler
from commtune.slurm_templates.job_request import InvalidRequest, JobRequest, applies_to
from commtune.slurm_templates.quoting import check_variable, quote_word
from commtune.systems.schema import PerRank, System

_LOCAL_RANK = "{local_rank}"
#: Shell expressions for a rank's number within its node, by launcher: under mpiexec, SLURM_LOCALID
#: is that of the launcher's own step, and 0 in all ranks.
_OF_SRUN = '"$SLURM_LOCALID"'
_OF_MPI = '"${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID?no local rank}}"'
#: Libraries whose mpiexec is hydra, by their names in search spaces.
_HYDRA = frozenset({"mpich", "cray-mpich", "intel-mpi", "mvapich"})


def launch_words(
    system: System | None,
    request: JobRequest,
    command: Sequence[str],
    libraries: Collection[str] = (),
    mpi_launcher: str = "",
    first_node: int | None = None,
) -> tuple[str, ...]:
    """Returns the command line that starts a program's ranks in a job, one word each.

    The description's binding is used only for its own number of ranks per node, and its options
    only for its own launcher.

    Args:
        libraries: the libraries that are measured, by their names in search spaces.
        mpi_launcher: path of mpirun or mpiexec, if one of them is used.
        first_node: index of the job's first node for these ranks, from 0; ``None`` leaves it to
            Slurm.

    Raises:
        InvalidRequest: the request has options of srun, but another launcher.
    """
    known = system.launcher if system else None
    is_pbs = request.scheduler is JobScheduler.PBS
    name = request.launcher or (known.command if known else "mpiexec" if is_pbs else "srun")
    options = request.launcher_options
    if known and known.command == name and not options:
        options = tuple(known.options)
    if name == "srun":
        words = [*_srun(system, request, first_node), *options]
    else:
        _check_no_srun(name, request, first_node)
        # TACC's ibrun takes nodes and ranks from the job, and the MPI from its module.
        start = [name] if name == "ibrun" else _mpi(request, mpi_launcher or name, libraries)
        words = [*start, *options]
    binding = system.binding if system else None
    own = [b for b in (binding.per_rank if binding else []) if applies_to(b.library, libraries)]
    local_rank = _OF_SRUN if name == "srun" else _OF_MPI
    container = (*request.container_command, request.container) if request.container else ()
    return (*words, *_rank_wrapper(own, local_rank), *container, *request.prefix, *command)


def words_in_uenv(request: JobRequest, command: Sequence[str]) -> tuple[str, ...]:
    """Returns a command of the job's script, wrapped in the requested uenv, if any."""
    if not request.uenv:
        return tuple(command)
    view = [f"--view={request.view}"] if request.view else []
    return ("uenv", "run", *view, request.uenv, "--", *command)


def _srun(system: System | None, request: JobRequest, first_node: int | None) -> list[str]:
    mpi = request.mpi or (system.launcher.mpi if system else "")
    binding = system.binding if system else None
    fits = binding is not None and binding.ranks == request.ranks_per_node
    cpu_bind = request.cpu_bind or (binding.cpu if binding and fits else "")
    given = {
        "nodes": request.nodes,
        "ntasks": request.nodes * request.ranks_per_node,
        "ntasks-per-node": request.ranks_per_node,
        "relative": first_node,
        # Since Slurm 22.05, srun doesn't inherit it from the job.
        "cpus-per-task": request.cpus_per_rank or None,
        "mpi": mpi or None,
        "cpu-bind": cpu_bind or None,
        "gpu-bind": request.gpu_bind or None,
        # For the step only, as the job's own script starts from a clean environment.
        "uenv": request.uenv or None,
        "view": request.view or None,
        "kill-on-bad-exit": 1,
        "export": "ALL",
    }
    return ["srun", *(f"--{name}={value}" for name, value in given.items() if value is not None)]


def _check_no_srun(name: str, request: JobRequest, first_node: int | None) -> None:
    asked = {name: getattr(request, name) for name in ("mpi", "cpu_bind", "gpu_bind", "uenv")}
    for key, value in asked.items():
        if value:
            raise InvalidRequest(
                key,
                f"{key} is an option of srun, but {name} starts the ranks",
                hint=f"leave it out; launcher_options are given to {name} as they are",
            )
    if first_node is not None:
        is_pbs = request.scheduler is JobScheduler.PBS
        raise InvalidRequest(
            "launcher",
            f"{name} can't begin on a node by its number",
            hint="an aggressor needs Slurm's srun" if is_pbs else "use srun",
        )


def _mpi(request: JobRequest, program: str, libraries: Collection[str]) -> list[str]:
    ranks = str(request.nodes * request.ranks_per_node)
    words = [program, "-n", ranks]
    if request.scheduler is JobScheduler.SLURM:
        # mpiexec starts its proxies or daemons by srun, which must not set these up as MPI ranks.
        words = ["env", "SLURM_MPI_TYPE=none", *words]
    if "openmpi" in libraries:
        return [*words, "--map-by", f"ppr:{request.ranks_per_node}:node"]
    if _HYDRA & set(libraries):
        return [*words, "-ppn", str(request.ranks_per_node)]
    return words  # other launchers take the ranks per node from the job


def _rank_wrapper(bindings: Sequence[PerRank], local_rank: str) -> tuple[str, ...]:
    """Returns a shell command around each rank that sets variables by its local rank."""
    if not bindings:
        return ()
    lines = [
        f"export {check_variable(b.variable)}={_with_local_rank(b.value, local_rank)}"
        for b in bindings
    ]
    return ("bash", "-c", "; ".join([*lines, 'exec -- "$@"']), "rank")


def _with_local_rank(value: str, local_rank: str) -> str:
    pieces = re.split(f"({re.escape(_LOCAL_RANK)})", value)
    return "".join(local_rank if p == _LOCAL_RANK else quote_word(p) for p in pieces if p)
