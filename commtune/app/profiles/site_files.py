"""Installs files in a folder of a site, and removes them, but never touches any others.

A manifest in the folder lists each file with its digest. Files that are not in it, or were changed
since, are neither replaced nor removed. Each file is replaced atomically. The manifest is written
before the files, so that it is complete even after an interruption.
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

from commtune.documents.files import writing_file
from commtune.errors import CampaignLocked, UserError
from commtune.paths import exists, is_file, is_folder
from commtune.private_files import replacing_file

_MANIFEST = "commtune-manifest.json"
_SCHEMA = "commtune-install/1"
_FILE, _FOLDER = 0o644, 0o755


@dataclass(frozen=True)
class _Installed:
    """An installed file: its campaign, and SHA-256 digests of its possible contents."""

    campaign: str
    digests: list[str]


@dataclass
class _Manifest:
    """The installed files by path below the folder, and the folders created for them."""

    files: dict[str, _Installed] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)


def install_files(folder: Path, campaign: str, files: Mapping[str, bytes]) -> list[Path]:
    """Installs a campaign's files, and replaces those of its earlier installation.

    Args:
        files: contents by path below the folder.

    Returns:
        The files that were removed, because the campaign no longer has them.

    Raises:
        UserError: a file was changed or is not commtune's, and nothing was done; or one can't be
            written.
        CampaignLocked: another process installs in the folder.
    """
    _make_folder(folder)
    with _alone_in(folder):
        manifest = _read(folder)
        own = {path: one for path, one in manifest.files.items() if one.campaign == campaign}
        _refuse_foreign(folder, own, {*own, *files})
        missing = [path for path in _folders_of(files) if not exists(folder / path)]
        manifest.folders += [path for path in missing if path not in manifest.folders]
        new = {path: _Installed(campaign, [_digest(content)]) for path, content in files.items()}
        # Until all files are replaced, both the old and the new content are valid.
        for path, one in new.items():
            before = own.get(path, _Installed(campaign, [])).digests
            manifest.files[path] = _Installed(campaign, [*one.digests, *before])
        _write(folder, manifest)
        for path in missing:
            _make_folder(folder / path)
        for path in sorted(files, reverse=True):
            _replace(folder / path, files[path])
        gone = [path for path in own if path not in files]
        manifest.files.update(new)
        _remove(folder, manifest, gone)
        return [folder / path for path in gone]


def is_installed(folder: Path, campaign: str) -> bool:
    """Whether files of a campaign are installed in a folder.

    Raises:
        UserError: the list of installed files is damaged.
    """
    return any(one.campaign == campaign for one in _read(folder).files.values())


def remove_files(folder: Path, campaign: str | None = None) -> list[Path]:
    """Removes the installed files of all campaigns or one; returns these files.

    Raises:
        UserError: nothing was installed, or a file was changed since, and nothing was done.
        CampaignLocked: another process installs in the folder.
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
    # A manipulated manifest must not make an administrator remove other files.
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(path)
    return path


def _write(folder: Path, manifest: _Manifest) -> None:
    files = {path: vars(laid) for path, laid in sorted(manifest.files.items())}
    data = {"schema": _SCHEMA, "files": files, "folders": sorted(manifest.folders)}
    _replace(folder / _MANIFEST, (json.dumps(data, indent=1) + "\n").encode())


def _refuse_foreign(folder: Path, own: Mapping[str, _Installed], paths: Iterable[str]) -> None:
    """Refuses existing files that were not installed, were changed since, or must be folders."""
    parents = [folder / path for path in _folders_of(paths)]
    wrong = [f"{p} is no folder" for p in parents if os.path.lexists(p) and not is_folder(p)]
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


def _folders_of(files: Iterable[str]) -> list[str]:
    """Returns the folders of files by path below the installation's, parents first."""
    return sorted({str(one) for path in files for one in PurePosixPath(path).parents[:-1]})


def _make_folder(folder: Path) -> None:
    """Creates a folder that all can read, if it is missing."""
    if is_folder(folder):
        return
    with writing_file(folder):
        folder.mkdir()
        folder.chmod(_FOLDER)  # whatever the umask


def _replace(file: Path, content: bytes) -> None:
    with writing_file(file), replacing_file(file) as part, part.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fchmod(opened.fileno(), _FILE)
        os.fsync(opened.fileno())


def _remove(folder: Path, manifest: _Manifest, paths: Iterable[str]) -> None:
    """Removes files, created folders that are then empty, and at last the manifest."""
    for path in sorted(paths):
        (folder / path).unlink(missing_ok=True)
        del manifest.files[path]
    for path in sorted(manifest.folders, reverse=True):
        with suppress(OSError):  # it has other files
            (folder / path).rmdir()
        if not exists(folder / path):
            manifest.folders.remove(path)
    if manifest.files:
        _write(folder, manifest)
    else:
        (folder / _MANIFEST).unlink()
