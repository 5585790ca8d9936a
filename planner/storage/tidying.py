"""Remove what old runs, migrations, backtests and forecasts of loads left below the data folder, and nothing else."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from planner.errors import StorageError
from planner.storage.layout import (
    backtests_folder,
    demand_folder,
    is_time_name,
    migrations_folder,
    runs_folder,
    time_name,
)

_REMOVED: Final = ".removed-"
"""What the name of a folder begins with that is being removed: by the next run where this one is killed."""


def tidy_runs(data: Path, before: datetime) -> int:
    """Remove the folders of runs, migrations, backtests and loads of a time before ``before``; return how many.

    One that was written later than that stays: a recording of last year that was replayed today. Raises
    ``StorageError`` for a folder that cannot be removed.
    """
    remove_leftovers(data)
    old = list(_old_folders(data, before))
    for folder in old:
        remove_run(folder)
    return len(old)


def remove_run(folder: Path) -> None:
    """Remove the folder of a run or migration: nobody finds it half removed, whatever ends this process.

    Raises ``StorageError`` where it cannot be removed.
    """
    _remove(folder, folder.with_name(f"{_REMOVED}{folder.name}"))


def remove_leftovers(data: Path) -> None:
    """Remove what ``remove_run`` left where its process was killed. Raises ``StorageError`` as it does."""
    for parent in _parents(data):
        for folder in parent.glob(f"{_REMOVED}*"):
            _remove(folder, folder)


def _remove(folder: Path, aside: Path) -> None:
    try:
        folder.rename(aside)
        shutil.rmtree(aside)
    except FileNotFoundError:
        return  # another run tidies, too
    except OSError as error:
        raise StorageError(
            f"{folder} is older than the days to keep and cannot be removed ({error.strerror}): check its "
            "permissions, or remove it yourself"
        ) from error


def _parents(data: Path) -> Iterator[Path]:
    parents = (runs_folder, migrations_folder, backtests_folder, demand_folder)
    return (parent(data) for parent in parents if parent(data).is_dir())


def _old_folders(data: Path, before: datetime) -> Iterator[Path]:
    for parent in _parents(data):
        for folder in sorted(parent.iterdir()):
            if is_time_name(folder.name) and folder.name < time_name(before) and _written_at(folder) < before:
                yield folder


def _written_at(folder: Path) -> datetime:
    return datetime.fromtimestamp(folder.stat().st_mtime, UTC)
