"""A lock of the kernel on a file: it names its holder, and ends with the holder's process, however that ends."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from planner.errors import StorageError

_POLL_S: Final = 0.5


@contextmanager
def kernel_lock(path: Path, until: float, busy: str, advice: str) -> Iterator[None]:
    """Hold the lock of the file at ``path``, which is made where there is none.

    Waits for another holder until the monotonic time ``until``, and then raises ``StorageError``: ``busy``, the
    holder's name and ``advice`` make the sentence. Raises ``StorageError``, too, where the file cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be opened ({error.strerror}): check the permissions, then run again"
        ) from error
    try:
        while not _is_locked(handle):
            if time.monotonic() >= until:
                holder = os.pread(handle, 1000, 0).decode("utf-8", "replace") or "another process"
                raise StorageError(f"{busy} {holder}: {advice}")
            time.sleep(_POLL_S)
        os.ftruncate(handle, 0)
        os.pwrite(handle, holder_name().encode(), 0)
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


def holder_name() -> str:
    """Return how this process names itself as a holder to those that wait: host, process id and time (UTC)."""
    return f"{socket.gethostname()} process {os.getpid()} since {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"
