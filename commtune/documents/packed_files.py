"""Compresses files that are no longer written, and reads them whether compressed or not."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import zlib
from pathlib import Path

from commtune.documents.files import replaced_file
from commtune.paths import exists


def kept_file(file: Path) -> Path:
    """Returns the file, or its compressed form if only that exists."""
    packed = _packed(file)
    return packed if not exists(file) and exists(packed) else file


def read_kept(file: Path, most: int) -> bytes:
    """Returns at most ``most`` bytes of a file, compressed or not.

    Raises:
        OSError: it can't be read, or is damaged; with a message.
    """
    kept = kept_file(file)
    with kept.open("rb") as opened:
        if kept == file:
            return opened.read(most)
        try:
            return gzip.GzipFile(fileobj=opened).read(most)
        except (EOFError, OSError, zlib.error) as error:
            raise OSError(None, f"{kept.name} is damaged: {error}") from error


def pack_file(file: Path) -> None:
    """Compresses a regular file of this user, with its mode and times; ignores all others.

    Raises:
        UserError: the compressed file can't be written.
    """
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return
    with replaced_file(_packed(file)) as part:
        with file.open("rb") as plain, gzip.open(part, "wb") as packed:
            shutil.copyfileobj(plain, packed)
        shutil.copystat(file, part)
    file.unlink()


def _packed(file: Path) -> Path:
    return file.with_name(f"{file.name}.gz")
