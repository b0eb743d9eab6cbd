"""The common style of figures, as SVG in the page's colours or as files such as PNG."""

from __future__ import annotations

import io
import math
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from commtune import formatting
from commtune.documents.files import replaced_file
from commtune.errors import EnvironmentFault
from commtune.private_files import make_private_folder, require_own

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which is suitable for colour-blind readers. In the page they become
# CSS variables, for light and dark themes. Each colour has one role only, so that its code in an
# SVG identifies the role.
INK, FAINT, PAPER = "#1a1b1e", "#c3c6cc", "#fdfdfe"
BLUE, VERMILION, GREEN = "#0072b2", "#d55e00", "#009e73"
SKY, PURPLE, ORANGE = "#56b4e9", "#cc79a7", "#e69f00"
SPEED_COLOURS = {"all": BLUE, "fast": BLUE, "middle": GREEN, "slow": VERMILION}
_VARIABLES = {
    INK: "ink", FAINT: "faint", PAPER: "paper", BLUE: "blue", VERMILION: "vermilion",
    GREEN: "green", SKY: "sky", PURPLE: "purple", ORANGE: "orange",
}  # fmt: skip

_LOOK: dict[Any, Any] = {
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "axes.titlecolor": INK,
    "xtick.color": INK, "ytick.color": INK, "grid.color": FAINT, "grid.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8,
    "font.size": 10, "axes.titlesize": 10.5, "axes.labelsize": 10, "legend.fontsize": 9,
    "legend.frameon": False, "figure.titlesize": 11,
    "font.family": ["DejaVu Sans"], "svg.fonttype": "path", "svg.hashsalt": "commtune",
    "text.parse_math": False,  # names may have dollar signs
    "path.simplify": False,  # it would remove dots, which are drawn as very short lines
    "axes.axisbelow": True,
}  # fmt: skip
_DPI = 150
_FOLDER_VARIABLE = "MPLCONFIGDIR"
#: The ratio of longest to shortest time from which an axis is logarithmic.
_WIDE = 5.0
_FEWEST_FENCED = 4
#: The most characters in a line of a title.
_WIDEST = 88
#: Attributes with coordinates. Others have scales of glyphs, which need all their digits.
_COORDINATES = re.compile(r"(?<=[\s\"])(d|x|y|points)=\"[^\"]*\"|translate\([^)]*\)", re.DOTALL)
_DIGITS = re.compile(r"(\.\d\d)\d+")
_NOISE = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>|<\?xml.*?\?>"
                    r"|<!DOCTYPE.*?>", re.DOTALL)  # fmt: skip
_OPENING = re.compile(r"<svg\b[^>]*?(viewBox=\"[^\"]*\")[^>]*>", re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """A figure that can be drawn.

    Attributes:
        name: name of the file and the anchor.
        title: its title, drawn in files; in the page it is a heading.
        alt: alternative text that describes the content.
        width, height: inches.
    """

    name: str
    title: str
    alt: str
    draw: Callable[[Figure], None]
    width: float = 8.6
    height: float = 4.0

    def svg(self, banner: str) -> str:
        """Returns an SVG element for the page, with colours from the page's style sheet."""
        with _drawn(self, heading="", banner=banner) as figure:
            file = io.StringIO()
            _print(figure, "svg", file, metadata={"Date": None})
        return _inline(file.getvalue(), self)

    def write(self, path: Path, *, heading: str, banner: str) -> None:
        """Writes the figure with its title on white, in the format of the path's suffix.

        Raises:
            UserError, EnvironmentFault: the file can't be written.
        """
        whole = f"{heading} \N{EN DASH} {self.title}"
        heading = whole if len(whole) < _WIDEST else f"{heading}\n{self.title}"
        # Into memory: on a full disk, matplotlib's PDF ends in an error of its own.
        content = io.BytesIO()
        with _drawn(self, heading=heading, banner=banner) as figure:
            figure.set(dpi=_DPI, facecolor="white")
            _print(figure, path.suffix.removeprefix("."), content)
        with replaced_file(path) as part:
            part.write_bytes(content.getvalue())


def _print(figure: Figure, kind: str, file: io.StringIO | io.BytesIO, **options: Any) -> None:
    """Writes svg, png or pdf; ``savefig`` would draw everything twice."""
    from matplotlib.backend_bases import get_registered_canvas_class

    canvas: Any = get_registered_canvas_class(kind)(figure)
    getattr(canvas, f"print_{kind}")(file, **options)


@contextmanager
def _drawn(picture: Picture, *, heading: str, banner: str) -> Iterator[Figure]:
    with _own_folder():
        import matplotlib
        from matplotlib.figure import Figure

    with matplotlib.rc_context(_LOOK), warnings.catch_warnings():
        # Names from the database may have characters that the font lacks, shown as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        extra = 0.25 * (bool(banner) + heading.count("\n") + bool(heading))
        figure = Figure(figsize=(picture.width, picture.height + extra), layout="constrained")
        picture.draw(figure)
        above = "\n".join(part for part in (banner, _wrapped(heading)) if part)
        if above:
            figure.suptitle(above, color=VERMILION if banner else INK, fontweight="bold")
        yield figure


@contextmanager
def _own_folder() -> Iterator[None]:
    """Lets matplotlib, where it is imported inside, keep its list of fonts in a private folder.

    It would make folders in the user's home that are open to all who the umask lets in, and write
    to standard error where it can't.
    """
    if "matplotlib" in sys.modules or _FOLDER_VARIABLE in os.environ:
        yield
        return
    folder = platformdirs.user_cache_path("commtune") / "matplotlib"
    with ExitStack() as stack:
        try:
            make_private_folder(folder)
            require_own("the list of fonts is not kept", folder)
        except (OSError, EnvironmentFault):  # also a matplotlibrc of others would be read there
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ[_FOLDER_VARIABLE] = str(folder)
        # Not for programs that are started later.
        stack.callback(os.environ.pop, _FOLDER_VARIABLE)
        yield


def _wrapped(heading: str) -> str:
    # Long names must not make the figure wider.
    lines = heading.splitlines()
    return "\n".join(line if len(line) < _WIDEST else f"{line[: _WIDEST - 2]}…" for line in lines)


def _inline(whole: str, picture: Picture) -> str:
    """Turns an SVG document into a small element, with unique ids and the page's colours."""
    bare = _NOISE.sub("", whole)
    bare = _OPENING.sub(r'<svg \1 aria-hidden="true" focusable="false" '
                        r'xmlns="http://www.w3.org/2000/svg" '
                        r'xmlns:xlink="http://www.w3.org/1999/xlink">', bare, count=1)  # fmt: skip
    bare = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{picture.name}-", bare)
    bare = _COORDINATES.sub(lambda found: _DIGITS.sub(r"\1", found[0]), bare)
    for colour, variable in _VARIABLES.items():
        bare = bare.replace(colour, f"var(--{variable})")
    return re.sub(r"\s*\n\s*", "\n", bare).strip()


def outlier_limits(groups: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Returns limits without far outliers, three interquartile ranges out in log scale."""
    lows, highs = [], []
    every = list(groups)
    # Quartiles of only a few values are not meaningful.
    for group in [g for g in every if len(g) >= _FEWEST_FENCED] or every:
        logs = sorted(math.log(value) for value in group)
        first, third = logs[len(logs) // 4], logs[(3 * len(logs) - 1) // 4]
        reach = 3 * max(third - first, 0.01)
        inside = [value for value in logs if first - reach <= value <= third + reach]
        lows.append(math.exp(inside[0]))
        highs.append(math.exp(inside[-1]))
    return min(lows), max(highs)


def draw_dots(axes: Axes, x: Sequence[float], y: Sequence[float], **look: Any) -> None:
    """Draws dots whose diameter is the line width ``lw``; those that overlap look like one."""
    # A single path has a tenth of the size of separate markers. Each dot needs some length.
    xs = [part for value in x for part in (value, value, math.nan)]
    ys = [part for value in y for part in (value, value * (1 + 1e-6), math.nan)]
    axes.plot(xs, ys, solid_capstyle="round", zorder=2, snap=False, **look)


def pin_outliers(axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """Marks points outside the vertical axis by triangles at its ends."""
    low, high = axes.get_ylim()
    below = [place for place, value in zip(x, y, strict=True) if value < low]
    above = [place for place, value in zip(x, y, strict=True) if value > high]
    for marker, places, end in (("v", below, low), ("^", above, high)):
        if places:
            (marks,) = axes.plot(places, [end] * len(places), marker, ms=4, color=INK, mew=0,
                                 clip_on=False, zorder=4)  # fmt: skip
            marks.set_in_layout(False)


def size_axis(axes: Axes, sizes: Sequence[int], *, label: str = "message size") -> None:
    """Makes the horizontal axis logarithmic, with some or all sizes as ticks."""
    every = 1 + (len(sizes) - 1) // 12
    shown = list(sizes)[::-1][::every][::-1]
    axes.set_xscale("log", base=2)
    labels = [formatting.format_size(size) for size in shown]
    axes.set_xticks(shown, labels, rotation=40, ha="right", rotation_mode="anchor")
    axes.minorticks_off()
    axes.set_xlim(min(sizes) / 1.6, max(sizes) * 1.6)
    if label:
        axes.set_xlabel(label)
    axes.grid(alpha=0.5)


def duration_axis(axes: Axes, limits: tuple[float, float] | None = None) -> None:
    """Formats the vertical axis for seconds; logarithmic if the range is wide.

    Args:
        limits: the range to show; ``None`` for all data.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    low, high = limits or axes.dataLim.intervaly
    if high > _WIDE * low:
        axes.set_yscale("log")
        steps = (1.0,) if high > 200 * low else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(subs=steps))
        axes.minorticks_off()
    else:
        axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    if limits is not None:
        margin = max(high / low, 1.01) ** 0.08
        axes.set_ylim(low / margin, high * margin)


def _short(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= factor * 0.999:
            return f"{seconds / factor:.4g} {unit}"
    return f"{seconds:.0e} s" if seconds else "0"
