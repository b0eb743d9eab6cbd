"""Makes the pictures of the documentation from a real campaign on this machine.

    .venv/bin/python docs/make_pictures.py [NAME=VALUE ...]     # from the repository's root

Runs ``make tune`` (with the given make variables) over an empty data folder, and writes what it
printed to docs/images/tune.svg, and the plot of what it measured to
docs/images/default-vs-tuned.svg. Nothing in the text is changed, but that the temporary data
folder is shown as ~/.local/share.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from commtune import process

_IMAGES = Path(__file__).parent / "images"
_COMMTUNE = Path(sys.executable).with_name("commtune")
_WIDTH = 100
_LIMIT_S = 1800.0
#: Rich's pictures fetch their font from another host; a reader's own monospace font will do.
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main(make_variables: list[str]) -> None:
    """Runs the campaign and writes both pictures."""
    _IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        environment = {**os.environ, "XDG_DATA_HOME": data, "SOURCE_DATE_EPOCH": "0"}
        command = ["make", "--no-print-directory", "tune", *make_variables]
        output = _run(command, environment)
        said = output.replace(data, str(Path("~/.local/share")))
        shown = " ".join(["$ make tune", *make_variables])
        (_IMAGES / "tune.svg").write_text(picture(shown, said), encoding="utf-8")
        name = output.partition(":")[0]
        plot = _IMAGES / "default-vs-tuned.svg"
        print(_run([str(_COMMTUNE), "plot", name, "--output", str(plot)], environment))
    print(said)


def picture(command: str, output: str) -> str:
    """A terminal with a command and what it printed, as SVG."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), highlight=False)
    console.print(Text(command, style="bold"))
    console.print(Text(output.rstrip()))
    svg = _FONTS.sub("", console.export_svg(title="commtune"))
    return "\n".join(line.rstrip() for line in svg.replace("Fira Code", "monospace").splitlines())


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = process.run_process(
        command, environment=environment, timeout_s=_LIMIT_S, whole_output=True
    )
    if not done.ok:
        sys.exit(f"{' '.join(command)} failed:\n{done.output}")
    return done.output


if __name__ == "__main__":
    main(sys.argv[1:])
