"""Lines of YAML with comments, and values as descriptions spell them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Page:
    """Lines of the file, and what is not known so far.

    Attributes:
        unknown: questions, in words.
        placeholders: keys whose value nobody found.
    """

    lines: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)

    def add(self, line: str = "", comment: str = "") -> None:
        """A line, with what its author should know beside it."""
        self.lines.append(f"{line}  # {_printable(comment)}" if comment else line)

    def comment(self, text: str, indent: str = "  ") -> None:
        """A line of its own."""
        self.lines.append(f"{indent}# {_printable(text)}")

    def placeholder(self, line: str, what: str, comment: str) -> None:
        """A value that nobody found."""
        self.add(line, f"PLACEHOLDER: {comment}")
        self.placeholders.append(what)


def yaml_text(value: str) -> str:
    """As YAML: quoted wherever a reader could take it for something else than a text."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*", value)
    reserved = value.lower() in ("y", "n", "yes", "no", "true", "false", "on", "off", "null")
    if plain and not reserved:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_printable(escaped)}"'


def _printable(value: str) -> str:
    """Without what YAML refuses and terminals obey."""
    return "".join(letter if letter.isprintable() else " " for letter in value)


def yaml_size(amount: int) -> str:
    """Bytes, whole."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if amount % factor == 0:
            return f"{amount // factor}{unit}"
    return str(amount)


def yaml_duration(seconds: float) -> str:
    """Seconds, in the largest unit that divides them."""
    for unit, factor in (("h", 3600), ("min", 60)):
        if seconds % factor == 0:
            return f"{seconds / factor:.0f}{unit}"
    return f"{seconds:g}s"


def yaml_bandwidth(bytes_per_s: float) -> str:
    """Bytes per second, as networks are sold."""
    return f"{bytes_per_s * 8 / 1e9:.10g} Gb/s"
