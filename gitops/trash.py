"""Folders that are out of the way at once and deleted later."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def let_us_in(folder: Path) -> None:
    """Give its owner all rights to `folder` where a run took some away: `chmod -w .` keeps it from being renamed, too,
    since that writes into it (its `..`). What is no folder is left alone."""
    with suppress(OSError):
        mode = folder.lstat().st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
            folder.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


def discard(path: Path, trash: Path) -> None:
    """Put what is at `path` (a link itself, never what it names) into `trash` by a rename. Absent is well.

    Where `trash` is on another disk it is deleted here and now.
    """
    trash.mkdir(parents=True, exist_ok=True)
    let_us_in(path)
    with suppress(FileNotFoundError):
        try:
            path.rename(trash / uuid4().hex)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            beside = path.with_name(f".{uuid4().hex}.trash")
            discard(path, beside)
            empty(beside)
            beside.rmdir()


def empty(trash: Path) -> list[str]:
    """Delete all that is in `trash`; what could not be deleted, and why.

    What lies there was a stranger's: links are unlinked, never followed; folders without permissions get them; a
    folder in a folder is moved up before it is emptied, so that no depth exhausts a stack.
    """
    pending = [trash] if trash.is_dir() else []
    stuck = []
    while pending:
        folder = pending.pop()
        try:
            pending += _flatten(folder, trash)
            if folder != trash:
                folder.rmdir()
        except FileNotFoundError:
            continue  # somebody else empties it, too
        except OSError as error:
            stuck.append(f"{folder}: {error.strerror}")
    return stuck


def _flatten(folder: Path, trash: Path) -> list[Path]:
    """Delete the files of `folder`; its folders, moved to the top of `trash`."""
    folders = []
    with os.scandir(folder) as entries:
        found = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries]
    for path, is_folder in found:
        if not is_folder:
            path.unlink()
            continue
        path.chmod(stat.S_IRWXU)  # moving a folder writes into it (its `..`)
        folders.append(path if folder == trash else path.rename(trash / uuid4().hex))
    return folders
