"""Documents to export: a plain one, and values that break careless quoting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from commtune.export.document import ExportDocument
from commtune.export.formats import FORMATS
from commtune.model import Configuration, Interval, PointEvidence, Profile, Strength, Tail, Verdict

#: Formats that carry variables of any name.
FOR_ALL_NAMES = [name for name, chosen in FORMATS.items() if not chosen.prefixes]


def point(
    operation: str,
    size: int,
    interval: tuple[float, float, float],
    *,
    default_s: float = 1e-4,
    speed: str = "fast",
) -> PointEvidence:
    ratio, low, high = interval
    verdict = Verdict.FASTER if low > 1.02 else Verdict.DEFAULT
    gain = Interval(ratio, low, high, pairs=22)
    return PointEvidence(operation, size, speed, default_s, default_s / ratio, gain, verdict)


GOOD_GUARDS = (
    point("broadcast", 2**20, (1.0, 0.98, 1.02)),
    point("alltoall", 2**20, (0.99, 0.96, 1.01)),
)
HURT = point("broadcast", 2**20, (0.79, 0.75, 0.82))
UNCLEAR = point("alltoall", 2**20, (0.97, 0.90, 1.04))

PROFILE = Profile(
    name="allreduce-256k-1m",
    operation="allreduce",
    backend="mpi-host",
    ranks=2,
    nodes=1,
    bytes_low=256 * 2**10,
    bytes_high=2**20,
    configuration=Configuration(
        {
            "MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE": "2097152",
            "MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE": "2097152",
        }
    ),
    verdict=Verdict.FASTER,
    points=(
        point("allreduce", 256 * 2**10, (1.34, 1.31, 1.36), default_s=35.1e-6),
        point("allreduce", 2**20, (1.41, 1.40, 1.42), default_s=142e-6),
        point("allreduce", 2**20, (2.99, 2.8, 3.1), default_s=431e-6, speed="slow"),
    ),
    guards=GOOD_GUARDS,
    tails=(Tail(2**20, 22, 1, 2, 1.4, 1.35, 1.45, 1.2),),
)

DOCUMENT = ExportDocument(
    profile=PROFILE,
    campaign="first",
    system="laptop",
    fingerprint="faa162548b462f89",
    stack="mpich 5.0.2 (wheel)\nLinux 6.1.0, debian 12",
    created="2026-01-02T03:04:05+00:00",
    commtune_version="0.1.0",
    strength=Strength(pairs=22, days=1, sessions=1, nodes=1),
    pinned={"MPIR_CVAR_CH4_SHM_POSIX_TOPO_ENABLE": "0"},
    unset=("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",),
    level=0.95,
)


def with_values(values: Mapping[str, str]) -> ExportDocument:
    profile = replace(PROFILE, configuration=Configuration(values))
    return replace(DOCUMENT, profile=profile, pinned={})


def nasty_values(canary: str) -> dict[str, str]:
    """Values with everything that a shell or a module system treats as special.

    Args:
        canary: a file that every attempt to run something would create.
    """
    touch = f"touch {canary}"
    values = [
        "", " ", "  two  spaces  ", "trailing ", " leading", "\ttab\t", "plain", "0",
        "-n", "-e", "--help", "-", "=", "a=b=c", "~", "~root", "*", "?", "[a-z]*", "{a,b}", "{",
        "}",
        "{{}", "[", "]", "[exit 1]", "]]", "]==]", "--", "-- comment", "# comment", "a#b",
        "%s%n", "%PATH%",
        "%", "$HOME", "${HOME}", "$", "$$", "$?", "$1", "$env(HOME)", "$::env(HOME)",
        f"$({touch})", f"`{touch}`", f"; {touch}", f"| {touch}", f"& {touch} &", f"&& {touch}",
        f"'; {touch}; '", f'"; {touch}; "', f"\\'; {touch}; \\'", f"[exec {touch}]", f"({touch})",
        f"x'; {touch} #", f'") os.execute("{touch}") --', f"\n{touch}\n", f"a\n{touch}",
        f"> {canary}",
        f"<({touch})", f"'\n{touch}\n'", f"\\\n{touch}", f"!{touch}", f"$[{touch}]",
        "'", "''", '"', '""', "it's", 'say "hi"', "'\"'\"'", "\\", "\\\\", "a\\", "\\n", "\\'",
        '\\"',
        "\\$HOME", "\\!", "\\\\!", "!", "!!", "!$", "a!b", "'!'", "end!", "^a^b", "line\nbreak",
        "\n", "\n\n", "trailing newline\n", "\\\n", "a\\\nb", "!\n", "carriage\rreturn",
        "\a\b\x1b[0m\x7f",
        "äöü ß", "日本語", "emoji 🚀", "\u00a0nbsp", "\u2028", "a,b;c:d", "/usr/lib:/lib",
        "<>|&;()", "CMA,sm,^ofi", "x" * 5000,
    ]  # fmt: skip
    return {f"COMMTUNE_T{number:03d}": value for number, value in enumerate(values)}
