"""The words that start all ranks of a step, inside a job."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from commtune.model import JobScheduler
from commtune.slurm_templates.job_request import InvalidRequest, JobRequest, applies_to
from commtune.slurm_templates.quoting import quote_word, variable_name
from commtune.systems.schema import PerRank, System

_LOCAL_RANK = "{local_rank}"
#: The shell's word for the number of a rank within its node, by launcher: srun's own variable
#: is 0 in all ranks that another launcher starts below it.
_OF_SRUN = '"$SLURM_LOCALID"'
_OF_MPI = '"${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID?no local rank}}"'
#: Libraries, as search spaces call them, whose mpiexec is hydra.
_HYDRA = frozenset({"mpich", "cray-mpich", "intel-mpi", "mvapich"})


def launch_words(
    system: System | None,
    request: JobRequest,
    command: Sequence[str],
    libraries: Collection[str] = (),
    mpi_launcher: str = "",
    first_node: int | None = None,
) -> tuple[str, ...]:
    """The words that start a program's ranks in a job, one word each.

    Cores are bound as the description says only where it says so for this number of ranks a node;
    its options hold only for its own launcher.

    Args:
        libraries: the libraries that are measured, as search spaces call them.
        mpi_launcher: path of the mpirun or mpiexec, where one of them is used.
        first_node: number of the job's node, from 0, on which the ranks begin; ``None`` leaves
            it to Slurm.

    Raises:
        InvalidRequest: something is asked for that only srun can do, but the launcher is another.
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
        # TACC's ibrun takes nodes and ranks from the job, and finds the MPI by its module.
        start = [name] if name == "ibrun" else _mpi(request, mpi_launcher or name, libraries)
        words = [*start, *options]
    binding = system.binding if system else None
    own = [b for b in (binding.per_rank if binding else []) if applies_to(b.library, libraries)]
    local_rank = _OF_SRUN if name == "srun" else _OF_MPI
    container = (*request.container_command, request.container) if request.container else ()
    return (*words, *_rank_wrapper(own, local_rank), *container, *request.prefix, *command)


def words_in_uenv(request: JobRequest, command: Sequence[str]) -> tuple[str, ...]:
    """A command of the job's script, in the software environment that is asked for."""
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
        # A step doesn't inherit it from its job any more, since Slurm 22.05.
        "cpus-per-task": request.cpus_per_rank or None,
        "mpi": mpi or None,
        "cpu-bind": cpu_bind or None,
        "gpu-bind": request.gpu_bind or None,
        # Here, not in the job: the job's own script starts from a clean environment.
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
        # It starts its own helpers by srun, which must not take them for ranks of an MPI.
        words = ["env", "SLURM_MPI_TYPE=none", *words]
    if "openmpi" in libraries:
        return [*words, "--map-by", f"ppr:{request.ranks_per_node}:node"]
    if _HYDRA & set(libraries):
        return [*words, "-ppn", str(request.ranks_per_node)]
    return words  # what the job asks for a node is what every launcher goes by


def _rank_wrapper(bindings: Sequence[PerRank], local_rank: str) -> tuple[str, ...]:
    """A small shell around each rank that sets what differs between the ranks of a node."""
    if not bindings:
        return ()
    lines = [
        f"export {variable_name(b.variable)}={_with_local_rank(b.value, local_rank)}"
        for b in bindings
    ]
    return ("bash", "-c", "; ".join([*lines, 'exec -- "$@"']), "rank")


def _with_local_rank(value: str, local_rank: str) -> str:
    pieces = re.split(f"({re.escape(_LOCAL_RANK)})", value)
    return "".join(local_rank if p == _LOCAL_RANK else quote_word(p) for p in pieces if p)
