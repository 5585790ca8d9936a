"""What old runs left goes; whatever else lies in the data folder stays."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.errors import StorageError
from planner.storage.layout import RunFolder, history_folder, samples_folder
from planner.storage.tidying import tidy_runs

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(days=30)


def left(folder: Path, written: datetime) -> Path:
    """Leave a folder with a file that was written then."""
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "plan.yaml").write_text("plan")
    os.utime(folder, (written.timestamp(), written.timestamp()))
    return folder


def test_old_runs_and_migrations_go_and_all_else_stays(tmp_path: Path) -> None:
    old, young = NOW - timedelta(days=31), NOW - timedelta(days=29)
    gone = [left(of(tmp_path, old).path, old) for of in (RunFolder.of, RunFolder.of_migration)]
    kept = [left(of(tmp_path, young).path, young) for of in (RunFolder.of, RunFolder.of_migration)]
    kept.append(left(RunFolder.of(tmp_path, old - timedelta(days=365)).path, NOW))  # an old recording, replayed today
    kept.append(left(tmp_path / "runs" / "mine", old))
    kept += [left(folder / "old", old) for folder in (history_folder(tmp_path), samples_folder(tmp_path))]
    assert tidy_runs(tmp_path, BEFORE) == 2
    assert [folder.exists() for folder in gone] == [False, False]
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
