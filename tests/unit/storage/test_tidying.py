"""What old runs left goes; whatever else lies in the data folder stays."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.errors import StorageError
from planner.storage.layout import RunFolder, backtest_rows, demand_rows, history_folder, samples_folder
from planner.storage.tidying import tidy_runs

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(days=30)


def left(folder: Path, written: datetime) -> Path:
    """Leave a folder with a file that was written then."""
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "plan.yaml").write_text("plan")
    os.utime(folder, (written.timestamp(), written.timestamp()))
    return folder


def made_at(data: Path, at: datetime) -> list[Path]:
    """Return one folder of each kind that is named by a time."""
    rows = (backtest_rows(data, at), demand_rows(data, at))
    return [RunFolder.of(data, at).path, RunFolder.of_migration(data, at).path, *(it.parent for it in rows)]


def test_what_old_runs_made_goes_and_all_else_stays(tmp_path: Path) -> None:
    old, young = NOW - timedelta(days=31), NOW - timedelta(days=29)
    gone = [left(folder, old) for folder in made_at(tmp_path, old)]
    kept = [left(folder, young) for folder in made_at(tmp_path, young)]
    kept.append(left(RunFolder.of(tmp_path, old - timedelta(days=365)).path, NOW))  # an old recording, replayed today
    kept.append(left(tmp_path / "runs" / "mine", old))
    kept += [left(folder / "old", old) for folder in (history_folder(tmp_path), samples_folder(tmp_path))]
    assert tidy_runs(tmp_path, BEFORE) == 4
    assert [folder.exists() for folder in gone] == [False] * 4
    assert all((folder / "shop" / "plan.yaml").exists() for folder in kept)
    assert tidy_runs(tmp_path, BEFORE) == 0


def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = left(RunFolder.of(tmp_path, NOW - timedelta(days=31)).path, NOW - timedelta(days=31))

    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(StorageError, match=f"{old} is older than the days to keep and cannot be removed"):
        tidy_runs(tmp_path, BEFORE)


def test_no_runs_yet_is_nothing_to_remove(tmp_path: Path) -> None:
    assert tidy_runs(tmp_path, BEFORE) == 0
