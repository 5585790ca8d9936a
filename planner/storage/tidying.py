"""Remove what old runs and migrations left below the data folder; samples, history and calibration are not theirs."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from planner.errors import StorageError
from planner.storage.layout import is_time_name, migrations_folder, runs_folder, time_name


def tidy_runs(data: Path, before: datetime) -> int:
    """Remove the folders of runs and migrations that speak of a time before ``before``; return how many.

    One that was written later than that stays: a recording of last year that was replayed today. Raises
    ``StorageError`` for a folder that cannot be removed.
    """
    old = list(_old_folders(data, before))
    for folder in old:
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue  # another run tidies, too
        except OSError as error:
            raise StorageError(
                f"{folder} is older than the days to keep and cannot be removed ({error.strerror}): check its "
                "permissions, or remove it yourself"
            ) from error
    return len(old)


def _old_folders(data: Path, before: datetime) -> Iterator[Path]:
    for parent in (runs_folder(data), migrations_folder(data)):
        for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
            if is_time_name(folder.name) and folder.name < time_name(before) and _written_at(folder) < before:
                yield folder


def _written_at(folder: Path) -> datetime:
    return datetime.fromtimestamp(folder.stat().st_mtime, UTC)
