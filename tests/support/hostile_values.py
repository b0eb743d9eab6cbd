"""Values that a shell, sbatch or a locale could read as something else."""

from __future__ import annotations

import os

NASTY = [
    "", " ", "  two  blanks  ", "'", '"', "''", "'\"'", "\\", "\\\\", "trailing\\", "\\n", "\n",
    "\n\n", "a\nb", "\r", "a\r\nb", "\t", "$HOME", "${HOME}", "$(touch RAN)", "`touch RAN`",
    "$((1+1))", "; touch RAN", "a; touch RAN; b", "&& touch RAN", "| touch RAN", "& touch RAN",
    "> RAN", "< /etc/passwd", "'; touch RAN; '", "\"; touch RAN; \"", "'$(touch RAN)'",
    "\"$(touch RAN)\"", "\\'; touch RAN #", "\n#SBATCH --account=other\n", "#", "# no comment",
    "a # b", "!", "!!", "!touch", "*", "?", "[a-z]", "{a,b}", "~", "~root", "-n", "--help", "=",
    "a=b", "%j", "%%", "a,b", "a,b=c,ALL", "\x01", "\x7f", "\x1b[31m", "\u00fc\u6f22\U0001f680",
    "\u2028", "\u00a0", "\udcff\udcfe", "$'a'", "$'\\x41'", "EOF\n", "<<EOF\n$(touch RAN)\nEOF",
    ")", "(", "}", "{{ x }}", "{% x %}", "\\$(touch RAN)", "\\`touch RAN\\`", "\n`touch RAN`\n",
    "a" * 5000, "'" * 500, "\\" * 501,
]  # fmt: skip


def expected(environment: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
