"""Only one run at a time changes a history: two would take each other's staged files, and samples would be lost."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from planner.errors import StorageError
from spark_apps.common.folder import Folder

LOCK_FILE: Final = "_lock"
WAIT_S: Final = 600.0
"""For how long a run waits for another to end before it fails: longer than a run of the scheduled DAG takes."""
_POLL_S: Final = 0.5
_LOCAL: Final = "file://"


@contextmanager
def only_run(history: Folder, wait_s: float | None = None) -> Iterator[None]:
    """Let no other run change the history meanwhile; raise ``StorageError`` when one still does after ``wait_s``.

    On a local file system the kernel keeps the lock, and frees it when its process ends, however it ends. Elsewhere it
    is a file that this run creates and removes: it outlives a run that was killed, and a person has to remove it.
    """
    until = time.monotonic() + (WAIT_S if wait_s is None else wait_s)
    if history.uri.startswith(_LOCAL):
        with _kernel_lock(Path(history.uri.removeprefix(_LOCAL)), until):
            yield
    else:
        with _lock_file(history.under(LOCK_FILE), until):
            yield


@contextmanager
def _kernel_lock(folder: Path, until: float) -> Iterator[None]:
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be opened ({error.strerror}): check the permissions, then run again"
        ) from error
    try:
        while not _is_locked(handle):
            if time.monotonic() >= until:
                holder = os.pread(handle, 1000, 0).decode("utf-8", "replace") or "another run"
                raise StorageError(f"the history {folder} is changed by {holder}: wait for its end, then run again")
            time.sleep(_POLL_S)
        os.ftruncate(handle, 0)
        os.pwrite(handle, _ourselves().encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ourselves() -> str:
    """Return how a holder names itself to those that wait."""
    return f"{socket.gethostname()} process {os.getpid()} since {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"


@contextmanager
def _lock_file(file: Folder, until: float) -> Iterator[None]:
    while not file.create(_ourselves().encode()):
        if time.monotonic() >= until:
            holder = file.read().decode("utf-8", "replace") if file.exists() else "somebody"
            raise StorageError(
                f"the history is changed by {holder}: wait for its end; if that run is dead, remove its lock: "
                f"hadoop fs -rm {file.uri}"
            )
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        file.delete()
