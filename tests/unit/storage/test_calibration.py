"""How forecasts did, below the data folder."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.documents.data import CALIBRATION
from planner.documents.plan import PLAN
from planner.errors import BadInputError, DocumentError
from planner.rollout.plan import GroupRef
from planner.rollout.steps import AwaitReady
from planner.storage.layout import calibration_folder
from planner.storage.track_records import land_records, read_records, read_track
from planner.verification.calibration import calibration_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.track import LAST
from tests.pod_groups import plan_for

AT = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)


def test_records_of_a_group_come_back_in_the_order_of_time_and_each_is_there_once(tmp_path: Path) -> None:
    plan = plan_for("app", ["a"], [AwaitReady(1, 60)])
    verdicts = [
        judge(plan.forecast, ObservedChange(moved_queues=Between.exactly(moved)), AT + timedelta(hours=moved))
        for moved in (9, 3)
    ]
    assert read_records(tmp_path, plan.group) == ()
    paths = [land_records(tmp_path, plan, verdict)[0] for verdict in (*verdicts, verdicts[0])]
    assert paths[0] == paths[2]
    place = "calibration/rocketmq/DefaultCluster/billing"
    digits = PLAN.digest(plan).removeprefix("sha256:")[:12]
    assert str(paths[1].relative_to(tmp_path)) == f"{place}/20261121T131500.000Z-{digits}.json"
    assert read_records(tmp_path, plan.group) == tuple(calibration_records(plan, one)[0] for one in reversed(verdicts))
    assert read_records(tmp_path, GroupRef("rocketmq", "DefaultCluster", "other")) == ()


PLAN_OF = plan_for("app", ["a"], [AwaitReady(1, 60)])


def landed(data: Path, hour: int, moved: int = 0) -> Path:
    seen = ObservedChange(moved_queues=Between.exactly(moved))
    return land_records(data, PLAN_OF, judge(PLAN_OF.forecast, seen, AT + timedelta(hours=hour)))[0]


def test_the_last_ones_until_a_time_are_looked_back_on(tmp_path: Path) -> None:
    for hour in range(LAST + 5):
        landed(tmp_path, hour)
    until = AT + timedelta(hours=LAST + 2)
    records = read_records(tmp_path, PLAN_OF.group, until, 2)
    assert [record.judged_at for record in records] == [until - timedelta(hours=1), until]
    assert read_track(tmp_path, PLAN_OF.group, until).forecasts == LAST
    assert read_track(tmp_path, PLAN_OF.group, AT).forecasts == 1
    assert read_track(tmp_path, GroupRef("rocketmq", "DefaultCluster", "other"), until).forecasts == 0


def test_two_plans_judged_in_one_millisecond_are_both_kept(tmp_path: Path) -> None:
    plans = [PLAN_OF, replace(PLAN_OF, policy="other")]
    verdict = judge(PLAN_OF.forecast, ObservedChange(moved_queues=Between.exactly(3)), AT)
    paths = {land_records(tmp_path, plan, verdict)[0] for plan in (*plans, *plans)}
    assert len(paths) == 2
    assert {record.policy for record in read_records(tmp_path, PLAN_OF.group, AT)} == {"billing", "other"}
    assert read_track(tmp_path, PLAN_OF.group, AT).forecasts == 2
    assert read_records(tmp_path, PLAN_OF.group, AT - timedelta(milliseconds=1)) == ()


def test_a_record_that_an_earlier_version_has_kept_is_not_kept_once_more(tmp_path: Path) -> None:
    now = landed(tmp_path, 0)
    older = now.rename(now.with_name("20261121T101500.000Z.json"))
    assert landed(tmp_path, 0) == older
    assert landed(tmp_path, 0, moved=9) != older
    assert [CALIBRATION.read(older)] != list(read_records(tmp_path, PLAN_OF.group))
    assert len(read_records(tmp_path, PLAN_OF.group)) == 2


def test_a_record_that_is_being_written_is_not_seen(tmp_path: Path) -> None:
    path = landed(tmp_path, 0)
    (path.parent / f".{path.name}.x1y2.part").write_bytes(path.read_bytes()[:40])
    assert len(read_records(tmp_path, PLAN_OF.group)) == 1


@pytest.mark.parametrize("name", ["notes.json", "20261121T101500.json"])
def test_a_file_that_is_no_record_is_named(tmp_path: Path, name: str) -> None:
    (landed(tmp_path, 0).parent / name).write_text("{}")
    with pytest.raises(DocumentError, match=f"{name}: found among records of forecasts"):
        read_records(tmp_path, PLAN_OF.group)


def test_a_damaged_record_and_one_of_another_group_are_refused(tmp_path: Path) -> None:
    path = landed(tmp_path, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DocumentError, match="it is cut off or was edited"):
        read_records(tmp_path, PLAN_OF.group)
    path.write_bytes(whole)
    other = GroupRef("rocketmq", "DefaultCluster", "other")
    stray = calibration_folder(tmp_path, other.system, other.cluster, other.group) / path.name
    stray.parent.mkdir()
    stray.write_bytes(whole)
    with pytest.raises(DocumentError, match=r"found a record of group billing .* expected group other"):
        read_records(tmp_path, other)


def test_a_data_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"data folder .*gone is not there"):
        read_track(tmp_path / "gone", PLAN_OF.group, AT)
