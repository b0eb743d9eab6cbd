"""Files installed in a folder of a site, and removed again: those that we wrote, and no others.

A manifest in the folder names each file with its digest. What was changed since is neither
replaced nor removed, and what is not in the manifest is not ours. Each file takes its place at
once. The manifest is written before the files, so that after an interruption it lacks none.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from commtune.documents.files import replaced_file
from commtune.errors import CampaignLocked, UserError
from commtune.paths import exists, is_file, is_folder

_MANIFEST = "commtune-manifest.json"
_SCHEMA = "commtune-install/1"
_FILE, _FOLDER = 0o644, 0o755


@dataclass(frozen=True)
class _Installed:
    """A file: whose it is, and the digests of what we wrote there (SHA-256)."""

    campaign: str
    digests: list[str]


@dataclass
class _Manifest:
    """What was installed, by path below the folder; and the folders that we made for it."""

    files: dict[str, _Installed] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)


def install_files(folder: Path, campaign: str, files: Mapping[str, bytes]) -> list[Path]:
    """Installs a campaign's files, in the place of those that were installed for it before.

    Args:
        files: contents by path below the folder.

    Returns: the files that were removed, since the campaign has them no more.

    Raises:
        UserError: one can't be written, was changed, or is not ours; then nothing is changed.
        CampaignLocked: another process does the same.
    """
    _make_folder(folder)
    with _alone_in(folder):
        manifest = _read(folder)
        own = {path: one for path, one in manifest.files.items() if one.campaign == campaign}
        _refuse_foreign(folder, own, {*own, *files})
        _make_folders(folder, files, manifest)
        new = {path: _Installed(campaign, [_digest(content)]) for path, content in files.items()}
        # For the time between, both contents are ours.
        for path, one in new.items():
            before = own.get(path, _Installed(campaign, [])).digests
            manifest.files[path] = _Installed(campaign, [*one.digests, *before])
        _write(folder, manifest)
        for path in sorted(files, reverse=True):
            _replace(folder / path, files[path])
        gone = [path for path in own if path not in files]
        manifest.files.update(new)
        _remove(folder, manifest, gone)
        return [folder / path for path in gone]


def remove_files(folder: Path, campaign: str | None = None) -> list[Path]:
    """Removes what was installed, for all campaigns or one; the files that were removed.

    Raises:
        UserError: nothing was installed, or a file was changed since; then nothing is changed.
        CampaignLocked: another process does the same.
    """
    if not is_file(folder / _MANIFEST):
        raise UserError(f"nothing was installed in {folder}: it has no {_MANIFEST}")
    with _alone_in(folder):
        manifest = _read(folder)
        own = {p: one for p, one in manifest.files.items() if campaign in (None, one.campaign)}
        if not own and campaign is not None:
            names = sorted({one.campaign for one in manifest.files.values()})
            raise UserError(
                f"nothing of campaign {campaign} was installed in {folder}",
                hint="installed: " + ", ".join(names),
            )
        _refuse_foreign(folder, own, own)
        _remove(folder, manifest, own)
        return [folder / path for path in own]


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise CampaignLocked(f"another process installs in {folder}") from error
    finally:
        os.close(handle)


def _read(folder: Path) -> _Manifest:
    file = folder / _MANIFEST
    try:
        data = json.loads(file.read_text())
        if data["schema"] != _SCHEMA:
            raise UserError(f"{file} is of another version of commtune: {data['schema']}")
        files = {_inside(path): _Installed(**one) for path, one in data["files"].items()}
        return _Manifest(files, [_inside(path) for path in data["folders"]])
    except FileNotFoundError:
        return _Manifest()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} is damaged: what was installed there is not known any more",
            hint="remove the files by hand, then this one",
        ) from error


def _inside(path: str) -> str:
    # It is read by people who may remove anything.
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(path)
    return path


def _write(folder: Path, manifest: _Manifest) -> None:
    files = {path: vars(laid) for path, laid in sorted(manifest.files.items())}
    data = {"schema": _SCHEMA, "files": files, "folders": sorted(manifest.folders)}
    _replace(folder / _MANIFEST, (json.dumps(data, indent=1) + "\n").encode())


def _refuse_foreign(folder: Path, own: Mapping[str, _Installed], paths: Iterable[str]) -> None:
    """Refuses files that are there and are not as we wrote them."""
    wrong = []
    for path in sorted(paths):
        file = folder / path
        if not os.path.lexists(file):
            continue
        if path not in own:
            wrong.append(f"{file} is there, and commtune did not install it")
        elif file.is_symlink() or not is_file(file):
            wrong.append(f"{file} is no regular file any more")
        elif _digest(file.read_bytes()) not in own[path].digests:
            wrong.append(f"{file} was changed since it was installed")
    if wrong:
        raise UserError("\n".join(wrong), hint="move it away; nothing was changed")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _make_folders(folder: Path, files: Iterable[str], manifest: _Manifest) -> None:
    for path in files:
        for parent in reversed(PurePosixPath(path).parents[:-1]):
            if _make_folder(folder / parent):
                manifest.folders.append(str(parent))


def _make_folder(folder: Path) -> bool:
    """Makes a folder that all can read; whether it was missing."""
    if is_folder(folder):
        return False
    try:
        folder.mkdir()
        folder.chmod(_FOLDER)  # whatever the umask
    except OSError as error:
        raise UserError(f"can't make {folder}: {error.strerror}") from error
    return True


def _replace(file: Path, content: bytes) -> None:
    with replaced_file(file) as part, part.open("xb") as opened:
        opened.write(content)
        opened.flush()
        os.fchmod(opened.fileno(), _FILE)
        os.fsync(opened.fileno())


def _remove(folder: Path, manifest: _Manifest, paths: Iterable[str]) -> None:
    """Removes files, folders of ours that are empty then, and at last the manifest."""
    for path in sorted(paths):
        (folder / path).unlink(missing_ok=True)
        del manifest.files[path]
    for path in sorted(manifest.folders, reverse=True):
        with suppress(OSError):  # another's files are in it
            (folder / path).rmdir()
        if not exists(folder / path):
            manifest.folders.remove(path)
    if manifest.files:
        _write(folder, manifest)
    else:
        (folder / _MANIFEST).unlink()
