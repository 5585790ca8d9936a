"""Only one run at a time changes a history: two would take each other's staged files, and samples would be lost."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from planner.errors import StorageError
from planner.storage.lock import holder_name, kernel_lock
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
        folder = Path(history.uri.removeprefix(_LOCAL))
        busy = f"the history {folder} is changed by"
        with kernel_lock(folder / LOCK_FILE, until, busy, "wait for its end, then run again"):
            yield
    else:
        with _lock_file(history.under(LOCK_FILE), until):
            yield


@contextmanager
def _lock_file(file: Folder, until: float) -> Iterator[None]:
    while not file.create(holder_name().encode()):
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
