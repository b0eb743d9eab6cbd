"""Shells and module systems that load a file and then print their environment."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from components import require_component
from waiting import PATIENCE_S

from commtune import process

#: A program that prints its environment with NUL after each entry, whatever the locale.
PRINT_ENVIRONMENT = f'{sys.executable} -I -c \'import os; os.write(1, b"<<<" + ' + (
    'b"\\0".join(k + b"=" + v for k, v in os.environb.items()) + b">>>")\''
)


def environment_after(
    arguments: tuple[str, ...], script: str, folder: Path, **more: str
) -> tuple[dict[str, str], str]:
    """The environment of a program that the script starts last, and all that was printed."""
    file = folder / "script"
    file.write_text(script + PRINT_ENVIRONMENT + "\n")
    base = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", **more}
    done = process.run_process(
        [*arguments, file], environment=base, timeout_s=PATIENCE_S, cwd=folder, whole_output=True
    )
    assert "<<<" in done.output, done.output
    body = done.output.partition("<<<")[2].rpartition(">>>")[0]
    return dict(entry.split("=", 1) for entry in body.split("\0")), done.output


def lmod_command() -> str:
    """Lmod's program: installed, or unpacked under /opt (Debian can't have both systems)."""
    places = (os.environ.get("LMOD_CMD", ""), "/usr/share/lmod/lmod/libexec/lmod",
              "/opt/lmod/usr/share/lmod/lmod/libexec/lmod")  # fmt: skip
    return next((place for place in places if place and Path(place).is_file()), "")


MODULE_SHELLS = {
    "bash": ("bash", "--norc"),
    "sh": ("dash",),
    "tcsh": ("tcsh", "-f"),
    "fish": ("fish", "--no-config"),
}
_INIT = Path("/usr/share/modules/init")


def lmod_line(shell: str, words: str) -> str:
    command = f"{lmod_command()} {shell} {words}"
    if shell == "fish":
        return f"{command} | source\n"
    return f"eval `{command}`\n" if shell == "tcsh" else f'eval "$({command})"\n'


def modules_line(shell: str, words: str) -> str:
    dot = "source" if shell in ("tcsh", "fish") else "."
    return f"{dot} {_INIT / shell}\nmodule {words}\n"


def require_system(system: str, shell: str) -> None:
    found = bool(lmod_command()) if system.startswith("lmod") else _INIT.is_dir()
    require_component("lmod" if system.startswith("lmod") else "environment-modules", found)
    require_component(shell, shutil.which(MODULE_SHELLS[shell][0]) is not None)
