"""The data folder: a file is really written, read back and removed, where samples go and where plans go."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from planner.errors import PlannerError, StorageError
from planner.orchestration.checks.result import CheckSettings
from planner.storage.files import write_atomically
from planner.storage.layout import history_folder, local_folder, runs_folder
from planner.text.printable import without_passwords

LEAST_FREE: Final = 1 << 30
"""Bytes. A day of one group's samples takes some megabytes; a full disk ends every run."""


def check_storage(settings: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Try the data folder and the folder of plans in it; a folder that was not there is not there afterwards."""
    data = local_folder(settings.data, "data")
    for what, folder in (("data folder", data), ("plans folder", runs_folder(data))):
        try:
            with _present(folder):
                _write_and_read(folder)
                free = shutil.disk_usage(folder).free
        except PlannerError as error:
            yield False, f"{what} {folder} cannot be used: {error}"
        else:
            yield _free_space(what, folder, free)
    yield _history(data)


def _history(data: Path) -> tuple[bool, str]:
    """Say where Spark keeps the lag history, and try the folder where it is one of this machine."""
    location = os.environ.get("CONSUMER_PLANNER_HISTORY", "")
    if not location:
        return True, f"the lag history lies in {history_folder(data)}"
    scheme, _, rest = location.partition("://")
    if rest and scheme != "file":
        return True, (
            f"the lag history is at {without_passwords(location)}: Spark reads and writes it by Hadoop's file system "
            f"for {scheme}://, which needs its package and account on driver and executors; not tried here"
        )
    folder = Path(rest if rest else location)
    if not folder.is_absolute():
        return False, f"CONSUMER_PLANNER_HISTORY is {location!r}, expected an absolute path or a URI: name one"
    try:
        with _present(folder):
            _write_and_read(folder)
    except PlannerError as error:
        return False, f"lag history {folder} cannot be used: {error}"
    return True, f"lag history {folder}: a file was written and read back; executors elsewhere need the same mount"


def _write_and_read(folder: Path) -> None:
    path, content = folder / f".check-{uuid4().hex}", uuid4().hex
    try:
        write_atomically(path, content)
        read_back = path.read_text(encoding="utf-8")
        path.unlink()
    except OSError as error:
        raise StorageError(f"{path} cannot be read back ({error.strerror}): check the mount and its rights") from error
    if read_back != content:
        raise StorageError(f"{path} holds something else than was written: check the mount")


def _free_space(what: str, folder: Path, free: int) -> tuple[bool, str]:
    amount, least = f"{free / LEAST_FREE:,.1f} GiB", f"{LEAST_FREE >> 30} GiB"
    if free < LEAST_FREE:
        return False, f"{what} {folder} has {amount} free, expected {least}: make room"
    return True, f"{what} {folder}: a file was written and read back, {amount} are free"


@contextmanager
def _present(folder: Path) -> Iterator[None]:
    """Leave no folder behind that was not there before, unless somebody else has put something into it."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()
