"""What a run without a lag history knows from former runs."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.runs import past_runs
from planner.runs.past_runs import (
    forget,
    former_samples,
    former_snapshot,
    gap_period_s,
    run_period_s,
    without_former_snapshot,
)
from planner.runs.policy_stages import snapshot_of_samples, write_snapshot
from planner.storage.files import write_atomically
from planner.storage.layout import RunFolder, history_folder, runs_folder, sample_path
from tests.sample_builders import POLICY, START, steady, watch

SHOP = parse_policy(POLICY.replace("seconds: 120", "seconds: 600"), "shop.yaml")


def runs(data: Path, *minutes: float) -> datetime:
    """Let runs have ended so many minutes after ``START``; return when the last one did."""
    for after in minutes:
        RunFolder.of(data, START + timedelta(minutes=after)).policies.mkdir(parents=True)
    return START + timedelta(minutes=minutes[-1])


def short_watches(every_s: int, count: int) -> Sequence[GroupSample]:
    """Return samples of ``count`` watches of a minute each, one every ``every_s`` seconds."""
    looks = watch((every_s * (count - 1) + 60) // 5 + 1, steady(50, 50))
    return [sample for number, sample in enumerate(looks) if number * 5 % every_s <= 60]


def rates_part(policy: ConsumerScalingPolicy, data: Path, samples: Sequence[GroupSample]) -> float:
    """Return how complete the rates are of a run that ends with the last sample."""
    pipeline.land_samples(data, samples)
    at = samples[-1].at
    known = former_samples(data, policy, at)
    snapshot = snapshot_of_samples(policy, known, gap_period_s(data, policy, at, 5.0), at)
    return next(part.completeness for part in snapshot.parts if part.name == "rates")


def test_runs_every_few_minutes_cover_the_window_though_each_watch_is_short(tmp_path: Path) -> None:
    """Red when the time between two runs is a hole, or when a run looks at its own watch alone."""
    samples = short_watches(every_s=240, count=4)
    runs(tmp_path, 1, 5, 9, 13)
    assert rates_part(SHOP, tmp_path, samples) == pytest.approx(1.0)


def test_a_run_that_is_missing_is_a_hole_that_a_window_reaches_back_over(tmp_path: Path) -> None:
    """Red when the hole counts as watched: nothing before it is known then, and half a window is all that is."""
    samples = [sample for sample in short_watches(240, 6) if not 9 <= (sample.at - START).total_seconds() / 60 < 16]
    for part, known, expected in (("all", samples, 1.0), ("late", samples[-30:], 0.5)):
        runs(tmp_path / part, 1, 5, 9, 17, 21)
        assert rates_part(SHOP, tmp_path / part, known) == pytest.approx(expected, abs=0.1), part


def test_runs_that_come_less_than_twice_a_window_leave_holes(tmp_path: Path) -> None:
    """Three minutes of three windows: red when a single mean of nine minutes counts as a window that was watched."""
    samples = short_watches(every_s=600, count=3)
    runs(tmp_path, 1, 11, 21)
    assert rates_part(SHOP, tmp_path, samples) == pytest.approx(0.3, abs=0.02)


def test_how_often_runs_come_is_told_by_the_last_ones(tmp_path: Path) -> None:
    assert run_period_s(tmp_path, START) is None
    assert run_period_s(tmp_path, runs(tmp_path, 0)) is None
    last = runs(tmp_path, 500, 505, 510, 520, 525)
    assert run_period_s(tmp_path, last) == 300.0
    assert gap_period_s(tmp_path, SHOP, last, 400.0) == 400.0


def test_a_large_group_looks_back_less_far_but_over_its_policys_own_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when memory grows with the number of queues, or when the window is cut."""
    samples = watch(241)
    pipeline.land_samples(tmp_path, samples)
    at = samples[-1].at
    assert former_samples(tmp_path, SHOP, at) == samples
    assert former_samples(tmp_path, SHOP, samples[9].at) == samples[:10]
    monkeypatch.setattr(past_runs, "MOST_OFFSETS", 0)
    assert former_samples(tmp_path, SHOP, at) == samples[120:]


def land_snapshot(data: Path, at: datetime, policy: ConsumerScalingPolicy = SHOP) -> GroupSnapshot:
    """Let a run have left the group's snapshot of ``at``, out of the samples of a quarter of an hour."""
    begin = at - timedelta(minutes=15)
    samples = [replace(sample, at=begin + (sample.at - START)) for sample in watch(181)]
    taken = snapshot_of_samples(policy, samples, 5.0, at, former_snapshot(data, policy, at))
    write_snapshot(RunFolder.of(data, at), policy.metadata.name, taken)
    return taken


def test_a_run_continues_the_load_of_the_run_before(tmp_path: Path) -> None:
    """Red where what a snapshot no longer shows is lost, or where a run continues one of its own time or later."""
    first, last = START + timedelta(hours=1), START + timedelta(hours=3)
    land_snapshot(tmp_path, first)
    for minutes in (10, 20, 30):
        taken = land_snapshot(tmp_path, first + timedelta(minutes=minutes))
    assert taken.past_load is not None
    assert len(taken.past_load.rates) == 30
    again = land_snapshot(tmp_path, taken.at)
    assert again == taken
    assert former_snapshot(tmp_path, SHOP, last) == taken
    assert former_snapshot(tmp_path, SHOP, first) is None
    assert former_snapshot(tmp_path, SHOP, taken.at + timedelta(hours=6, minutes=1)) is None


def test_a_former_snapshot_that_is_broken_or_anothers_is_passed_over(tmp_path: Path) -> None:
    good = land_snapshot(tmp_path, START + timedelta(hours=1))
    broken = RunFolder.of(tmp_path, START + timedelta(hours=2)).snapshot("shop")
    write_atomically(broken, SNAPSHOT.dump(good).replace(b'"group":"shop"', b'"group":"shoq"'))
    other = RunFolder.of(tmp_path, START + timedelta(hours=3)).snapshot("shop")
    write_atomically(other, SNAPSHOT.dump(replace(good, group="other")))
    assert former_snapshot(tmp_path, SHOP, START + timedelta(hours=4)) == good


def test_policies_without_a_snapshot_of_late_are_found(tmp_path: Path) -> None:
    """Red where a run of the same time counts, one of six hours ago, or another policy's snapshot."""
    other = SHOP.model_copy(update={"metadata": SHOP.metadata.model_copy(update={"name": "other"})})
    at = START + timedelta(hours=8)
    land_snapshot(tmp_path, at)
    land_snapshot(tmp_path, at - timedelta(hours=6, minutes=1), other)
    RunFolder.of(tmp_path, at - timedelta(minutes=1)).path.mkdir(parents=True)
    assert without_former_snapshot(tmp_path, [SHOP, other], at) == [SHOP, other]
    land_snapshot(tmp_path, at - timedelta(minutes=10), other)
    assert without_former_snapshot(tmp_path, [SHOP, other], at) == [SHOP]
    assert without_former_snapshot(tmp_path, [SHOP, other], at + timedelta(minutes=1)) == []


def test_old_runs_and_samples_go_and_a_lag_history_keeps_what_it_has_not_packed(tmp_path: Path) -> None:
    (sample,) = watch(1)
    pipeline.land_samples(tmp_path, [sample])
    runs(tmp_path, 0, 5)
    foreign = tmp_path / "runs" / "notes"
    foreign.mkdir()
    path = sample_path(tmp_path, sample)
    forget(tmp_path, (SHOP,), START + timedelta(hours=6, minutes=59), 1)
    assert path.exists()
    history_folder(tmp_path).mkdir()
    forget(tmp_path, (SHOP,), START + timedelta(days=1, minutes=3), 1)
    assert path.exists()
    assert sorted(entry.name for entry in (tmp_path / "runs").iterdir()) == ["20261121T100500.000Z", "notes"]
    history_folder(tmp_path).rmdir()
    forget(tmp_path, (SHOP,), START + timedelta(hours=7, minutes=1), 1)
    assert not path.exists()


def test_a_folder_of_runs_is_listed_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red when each policy lists a month of runs, or when a run that came since is not seen."""
    listed: list[Path] = []
    listdir = os.listdir
    monkeypatch.setattr("os.listdir", lambda folder: [listed.append(folder), listdir(folder)][1])
    last = runs(tmp_path, 0, 5)
    assert [run_period_s(tmp_path, last) for _ in range(2)] == [300.0, 300.0]
    assert len(listed) == 2  # it has just changed, and may do so again within a tick of its clock
    os.utime(runs_folder(tmp_path), (1.0, 1.0))
    assert [run_period_s(tmp_path, last) for _ in range(3)] == [300.0] * 3
    assert len(listed) == 3
    last = runs(tmp_path, 15)
    os.utime(runs_folder(tmp_path), (2.0, 2.0))
    assert run_period_s(tmp_path, last) == 450.0
