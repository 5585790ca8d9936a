"""Records of how forecasts did: each verdict once, whoever carried the plan out, a full disk or a restart besides."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.controller.records import SOURCE, Records, check_data
from planner.deployments.plans import stored_plan
from planner.errors import BadInputError
from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from planner.storage.track_records import read_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from tests.builders import AT
from tests.pod_groups import GROUP, plan_for
from tests.step_builders import STEPS
from tests.unit.controller.test_plan_cache import found

VERDICT = judge(plan_for("app", ["a"], STEPS[:1]).forecast, ObservedChange(moved_queues=Between.exactly(1)), AT)
JUDGED = replace(RolloutStatus(), phase=Phase.SUCCEEDED, ended="new", verdict=VERDICT)


def files(data: Path) -> list[Path]:
    return sorted(data.rglob("*.json"))


def test_each_verdict_is_kept_once(tmp_path: Path) -> None:
    records = Records(tmp_path, pytest.fail)
    for one in (found(1), found(2, replace(JUDGED, verdict=None)), found(3, None), found(4, JUDGED)):
        records.note(one)
    (kept,) = files(tmp_path)
    written = kept.stat().st_ino
    records.note(found(5, JUDGED))
    records.keep(stored_plan(found(5, JUDGED)))
    assert (files(tmp_path), kept.stat().st_ino) == ([kept], written), "it is not even written again"
    (record,) = read_records(tmp_path, GROUP)
    assert record.judged_at == AT


def test_another_replica_and_the_next_process_leave_the_same_file(tmp_path: Path) -> None:
    Records(tmp_path, pytest.fail).note(found(1, JUDGED))
    (kept,) = files(tmp_path)
    before = kept.read_bytes()
    Records(tmp_path, pytest.fail).note(found(1, JUDGED))
    assert files(tmp_path) == [kept]
    assert kept.read_bytes() == before


def test_what_could_not_be_written_is_tried_again_when_the_plan_is_heard_of_again(tmp_path: Path) -> None:
    failures: list[str] = []
    data, one = tmp_path / "data", found(1, JUDGED)
    records = Records(data, failures.append)
    data.write_text("in the way of the folder")
    records.note(one)
    assert failures == [SOURCE]
    data.unlink()
    records.note(one)
    assert len(files(data)) == 1
    assert failures == [SOURCE]


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Records(None, pytest.fail).note(found(1, JUDGED))
    assert not files(tmp_path)


@pytest.mark.parametrize("change", [{"spec": {}}, {"status": {"verdict": 3}}])
def test_a_plan_that_cannot_be_read_is_left_to_others(tmp_path: Path, change: dict[str, Any]) -> None:
    Records(tmp_path, pytest.fail).note({**found(1, JUDGED), **change})
    assert not files(tmp_path)


def test_a_folder_that_cannot_be_written_is_named_before_anything_begins(tmp_path: Path) -> None:
    check_data(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match=r"--data .*file/data cannot be written \(Not a directory\)"):
        check_data(tmp_path / "file" / "data")
