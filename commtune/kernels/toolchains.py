"""Finds the toolchain for the benchmark's GPU code: CUDA or HIP, and NCCL or RCCL.

The search uses the given environment, including loaded environment modules.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commtune import process
from commtune.documents.yaml_document import load_shipped
from commtune.errors import MissingComponent, UserError
from commtune.model import GpuKind
from commtune.paths import is_file

_PROBE_LIMIT_S = 30.0
#: Library folders below a prefix.
_LIBRARY_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")

#: The version of a library whose header doesn't have it.
UNKNOWN = "unknown"
_ASK_XCCL = """
import ctypes, sys
version = ctypes.c_int()
if ctypes.CDLL(sys.argv[1]).ncclGetVersion(ctypes.byref(version)) == 0:
    print(version.value)
"""

#: The tested Python packages of a CUDA toolkit that runs with drivers of CUDA 13.0 or newer.
_CUDA_PACKAGES = (
    "nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88",
    "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cccl==13.0.85",
)  # fmt: skip
_NCCL_PACKAGE = "nvidia-nccl-cu13==2.28.9"
_CUDA_OF_PACKAGES = "13"


@dataclass(frozen=True)
class Xccl:
    """An installation of NCCL or RCCL to compile and link with."""

    name: str
    version: str  # version in the header, such as ``2.28.9``
    root: Path  # the folder above ``include`` and ``lib``
    header: Path
    library: Path


@dataclass(frozen=True)
class Toolchain:
    """A toolchain for GPU code."""

    kind: GpuKind
    root: Path  # the folder above ``bin`` of CUDA or ROCm
    compiler: Path
    version: str  # version of the toolkit, such as ``13.0``
    architectures: tuple[str, ...]  # GPU architectures to build for, such as ``90`` or ``gfx90a``
    xccl: Xccl | None = None  # NCCL or RCCL; ``None`` if there is none

    def plain(self) -> dict[str, object]:
        """Returns plain data that identifies the toolchain."""
        x = self.xccl
        return {
            "kind": str(self.kind),
            "compiler": str(self.compiler),
            "version": self.version,
            "architectures": list(self.architectures),
            "xccl": [x.name, x.version, str(x.header), str(x.library)] if x else None,
        }


@dataclass(frozen=True)
class _Family:
    """A vendor's names and paths, from toolchains.yaml."""

    words: str
    compiler: str
    roots: list[str]
    places: list[str]
    packaged: list[str]
    xccl: str
    xccl_roots: list[str]
    xccl_packaged: list[str]
    header: list[str]
    example: str
    load: str


@cache
def _family(kind: GpuKind) -> _Family:
    return _Family(**load_shipped("kernels", "toolchains").data[kind])


def find_toolchain(
    kind: GpuKind, environment: Mapping[str, str], architectures: Sequence[str] = ()
) -> Toolchain:
    """Finds the toolchain for a kind of GPU.

    Args:
        architectures: GPU architectures to build for; by default those of this machine.

    Raises:
        MissingComponent: there is no compiler; or there is no GPU and no architecture was given.
        UserError: an architecture is not one of this kind.
    """
    family = _family(kind)
    named = tuple(_architecture(kind, written) for written in architectures)
    packages = _package_folders(environment)
    root, compiler = _compiler(family, environment, packages)
    return Toolchain(
        kind=kind,
        root=root,
        compiler=compiler,
        version=_parse_version(kind, _ask([str(compiler), "--version"], environment)),
        architectures=named or _architectures(kind, root, environment),
        xccl=_xccl(family, root, environment, packages),
    )


def why_no_xccl(toolchain: Toolchain) -> str:
    """Returns a message on a missing NCCL or RCCL, with ways to get a suitable one."""
    family = _family(toolchain.kind)
    name, (variable, *_) = family.xccl, family.xccl_roots
    ways = [f"module load {name}", f"set {variable}"]
    if toolchain.kind is GpuKind.CUDA and toolchain.version.startswith(f"{_CUDA_OF_PACKAGES}."):
        ways.append(f"python -m pip install {_NCCL_PACKAGE}")
    return f"{family.header[0]} and lib{name}.so were not found together; {', or '.join(ways)}"


def _architecture(kind: GpuKind, written: str) -> str:
    """Normalizes an architecture: ``90`` for sm_90, 9.0 and 90; AMD's names unchanged."""
    word = written.strip().lower().removeprefix("sm_").replace(".", "")
    pattern = r"\d{2,3}[af]?" if kind is GpuKind.CUDA else r"gfx[0-9a-f]+(:[a-z+:-]+)?"
    if not re.fullmatch(pattern, word):
        raise UserError(
            f"{written} is not an architecture of {str(kind).upper()}'s GPUs",
            hint=f"write {_family(kind).example}",
        )
    return word


def _compiler(
    family: _Family, environment: Mapping[str, str], packages: Sequence[Path]
) -> tuple[Path, Path]:
    for name in family.roots:
        if name in environment:
            compiler = Path(environment[name]) / "bin" / family.compiler
            if _is_program(compiler):
                return compiler.parent.parent, compiler
    if found := shutil.which(family.compiler, path=environment.get("PATH", os.defpath)):
        # A symbolic link in /usr/bin leads to the toolkit.
        compiler = Path(found).resolve()
        return compiler.parent.parent, compiler
    # Wheels are last, since what a site installed fits its driver.
    places = [Path(place) for place in family.places]
    for root in (*places, *(folder / name for folder in packages for name in family.packaged)):
        compiler = root / "bin" / family.compiler
        if _is_program(compiler):
            return root, compiler
    wheels = " ".join((*_CUDA_PACKAGES, _NCCL_PACKAGE))
    hint = family.load.format(packages=wheels)
    raise MissingComponent(f"there is no {family.words}", hint=hint)


def _xccl(
    family: _Family, toolkit: Path, environment: Mapping[str, str], packages: Sequence[Path]
) -> Xccl | None:
    """Returns the first installation with both header and library."""
    named = [Path(environment[name]) for name in family.xccl_roots if environment.get(name)]
    # Environment modules of many sites set no other variable with the prefix of a library.
    loaded = [Path(part) for part in environment.get("CMAKE_PREFIX_PATH", "").split(":") if part]
    wheels = [folder / name for folder in packages for name in family.xccl_packaged]
    # NVIDIA's HPC SDK has NCCL in a folder next to CUDA's.
    bundled = toolkit.parent.parent / "comm_libs" / family.xccl
    for root in (*named, *loaded, toolkit, bundled, Path("/usr"), Path("/usr/local"), *wheels):
        headers = (root / "include" / header for header in family.header)
        header = next((path for path in headers if _may(path, os.R_OK)), None)
        library = _library(root, family.xccl) if header else None
        if header and library:
            version = _parse_xccl_version(header.read_text(errors="replace"))
            return Xccl(family.xccl.upper(), version, root, header, library)
    return None


def _library(root: Path, name: str) -> Path | None:
    """Finds a library, also as lib*.so.N only, as in the wheels of NCCL."""
    places = (sorted((root / folder).glob(f"lib{name}.so*")) for folder in _LIBRARY_FOLDERS)
    return next((found[0] for found in places if found), None)


def _parse_xccl_version(header: str) -> str:
    """Parses the version in nccl.h or rccl.h; ``unknown`` if it isn't there."""
    macros = dict(re.findall(r"^#define NCCL_(MAJOR|MINOR|PATCH) (\d+)", header, re.MULTILINE))
    parts = [macros.get(part) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(part for part in parts if part) if all(parts) else UNKNOWN


def ask_xccl_version(library: Path, environment: Mapping[str, str]) -> str:
    """Returns the version that a library of NCCL or RCCL reports; ``unknown`` if it can't load."""
    # A separate process, since a loaded library stays, and a broken one may crash.
    said = _ask([sys.executable, "-c", _ASK_XCCL, str(library)], environment).strip()
    if not said.isdecimal():
        return UNKNOWN
    # 2.8.4 is 2804, but 2.28.9 is 22809, with one more digit since 2.9.
    major, rest = divmod(int(said), 10_000 if int(said) >= 10_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _parse_version(kind: GpuKind, text: str) -> str:
    """Parses the toolkit's version in the output of ``nvcc --version`` or ``hipcc --version``."""
    pattern = r"release [\d.]+, V([\d.]+)" if kind is GpuKind.CUDA else r"HIP version: (\S+)"
    found = re.search(pattern, text)
    return found[1] if found else UNKNOWN


def _parse_compute_capabilities(text: str) -> list[str]:
    """Parses ``nvidia-smi --query-gpu=compute_cap --format=csv,noheader``: ``9.0`` is 90."""
    found = re.findall(r"^\s*(\d+)\.(\d+)\s*$", text, re.MULTILINE)
    return sorted({major + minor for major, minor in found}, key=int)


def _parse_agents(text: str) -> list[str]:
    """Parses ``rocm_agent_enumerator`` or ``rocminfo``, without gfx000, which is the CPU."""
    return sorted(set(re.findall(r"\bgfx[0-9a-f]+\b", text)) - {"gfx000"})


def _architectures(kind: GpuKind, root: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the architectures of this machine's GPUs."""
    if kind is GpuKind.CUDA:
        query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
        found = _parse_compute_capabilities(_ask(query, environment))
    else:
        own = [root / "bin" / name for name in ("rocm_agent_enumerator", "rocminfo")]
        programs = (str(path) if _is_program(path) else path.name for path in own)
        said = (_parse_agents(_ask([program], environment)) for program in programs)
        found = next(filter(None, said), [])
    if not found:
        raise MissingComponent(
            "no GPU was found on this machine, so nothing tells which architecture to build for",
            hint=f"name it: --arch for 'commtune build', COMMTUNE_GPU_ARCHITECTURES for all "
            f"commands; {_family(kind).example}",
        )
    return tuple(found)


def _ask(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Returns the output of a program; empty if it is missing or fails."""
    return process.ask_program(words, environment=environment, timeout_s=_PROBE_LIMIT_S)


def _package_folders(environment: Mapping[str, str]) -> list[Path]:
    """Returns the package folders of this Python, its base Python, and the Python on PATH."""
    code = "import sys; print('\\n'.join(p for p in sys.path if p.endswith('-packages')))"
    folders = [folder for folder in sys.path if folder.endswith("-packages")]
    for program in (str(Path(sys.base_prefix) / "bin" / "python3"), "python3"):
        folders += _ask([program, "-c", code], environment).splitlines()
    return [Path(folder) for folder in dict.fromkeys(folders)]


def _is_program(path: Path) -> bool:
    return _may(path, os.X_OK)


def _may(path: Path, mode: int) -> bool:
    """Whether a file exists that we may access in a mode; false in folders without access."""
    try:
        return is_file(path) and os.access(path, mode)
    except OSError:
        return False
