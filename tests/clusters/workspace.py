"""Directories of running clusters: deleted when done, and by the next run when their owner was killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_NEW = ".new-"


@contextlib.contextmanager
def workspace(kind: str) -> Iterator[Path]:
    """Yield a fresh directory named after ``kind``; delete it on leaving.

    A killed run can delete nothing. What it left behind is deleted here first: an owner holds a lock on
    its directory, the kernel drops that lock with the owner, and a directory without one has no owner.
    """
    shelf = shelf_of_clusters()
    _sweep(shelf)
    fresh = Path(tempfile.mkdtemp(prefix=_NEW, dir=shelf))
    lock = os.open(fresh, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Only now may others look at it: before, a sweep would have taken it for abandoned.
        path = fresh.rename(shelf / f"{kind}-{fresh.name.removeprefix(_NEW)}")
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def shelf_of_clusters() -> Path:
    """Return the directory of this user below which all workspaces live."""
    shelf = Path(tempfile.gettempdir()) / f"consumer-planner-clusters-{os.getuid()}"
    shelf.mkdir(mode=0o700, exist_ok=True)
    return shelf


def _sweep(shelf: Path) -> None:
    for path in shelf.iterdir():
        if not path.name.startswith(_NEW) and _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # its owner, or another sweep, was quicker
        return False
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(directory)
    return True
