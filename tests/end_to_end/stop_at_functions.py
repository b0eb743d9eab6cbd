"""For gdb: writes the functions that a process enters at each size, a line each.

Functions are those whose names contain one of COMMTUNE_WORDS and match COMMTUNE_FUNCTIONS. After
a name stand its arguments in the registers that COMMTUNE_REGISTERS names.
"""

# mypy: ignore-errors
import os
import re
from pathlib import Path

import gdb

PATTERN = re.compile(os.environ["COMMTUNE_FUNCTIONS"])
SEEN = Path(os.environ["COMMTUNE_SEEN"])
REGISTERS = os.environ["COMMTUNE_REGISTERS"].split()
#: Of the many libraries, those are read that have the functions.
BEGIN = """\
set pagination off
set confirm off
set debuginfod enabled off
set auto-solib-add off
break main
run
sharedlibrary /libmpi
sharedlibrary /libucp
"""


def read(register):
    return int(gdb.parse_and_eval(f"${register}"))


class Stop(gdb.Breakpoint):
    def stop(self):
        is_size = self.location == "at_size"
        words = ["size", read("rdi")] if is_size else [self.location, *map(read, REGISTERS)]
        with SEEN.open("a") as file:
            print(*words, file=file)
        return False


for command in BEGIN.splitlines():
    gdb.execute(command)
words = os.environ["COMMTUNE_WORDS"].split()
listed = " ".join(gdb.execute(f"info functions {word}", to_string=True) for word in words)
for name in {"at_size", *filter(PATTERN.fullmatch, listed.split())}:
    Stop(name)
# The other ranks begin now: before, they would wait busily.
SEEN.touch()
gdb.execute("continue")
