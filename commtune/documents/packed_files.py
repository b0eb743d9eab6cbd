"""Names record files, compresses those no longer written, and reads them in either form."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import zlib
from contextlib import suppress
from pathlib import Path

from commtune.documents.files import replaced_file
from commtune.paths import exists


def record_file(folder: Path, run_id: str) -> Path:
    """Returns the path of a run's record file."""
    return folder / f"{run_id}.jsonl"


def kept_file(file: Path) -> Path:
    """Returns the file, or its compressed form if only that exists."""
    packed = _packed(file)
    return packed if not exists(file) and exists(packed) else file


def read_kept(file: Path, most: int) -> bytes:
    """Returns at most ``most`` bytes of a file, compressed or not.

    Raises:
        OSError: it can't be read, or is damaged; with a message.
    """
    # The plain file first: it goes once the other is there.
    with suppress(FileNotFoundError), file.open("rb") as plain:
        return plain.read(most)
    with _packed(file).open("rb") as packed:
        try:
            return gzip.GzipFile(fileobj=packed).read(most)
        except (EOFError, OSError, zlib.error) as error:
            raise OSError(None, f"{_packed(file).name} is damaged: {error}") from error


def pack_file(file: Path) -> None:
    """Compresses a regular file of this user, with its mode and times; ignores all others.

    Raises:
        UserError, EnvironmentFault: the compressed file can't be written.
    """
    with suppress(FileNotFoundError):  # another process has just packed it
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        with file.open("rb") as plain, replaced_file(_packed(file)) as part:
            with gzip.open(part, "wb") as packed:
                shutil.copyfileobj(plain, packed)
            part.chmod(stat.S_IMODE(status.st_mode))
            os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
        file.unlink()


def _packed(file: Path) -> Path:
    return file.with_name(f"{file.name}.gz")
