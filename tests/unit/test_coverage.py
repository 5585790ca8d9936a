"""When a run only looks back: what a sampler has read of a group, how fresh, how much of the window."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from planner.documents.policy import parse_policy
from planner.runs import observe
from planner.runs.coverage import KEPT, MOST_SPANS, Coverage, Span, needs_single_read, read_coverage, write_coverage
from planner.runs.observe import observe_each, observe_live
from planner.sources.live import Installation, Pace
from planner.storage.layout import sampling_record
from tests.sample_builders import POLICY, START, watch

SHOP = parse_policy(POLICY.replace("seconds: 120", "seconds: 600"), "shop.yaml")
BANK = parse_policy(POLICY.replace("shop", "bank"), "bank.yaml")
KEY = ("rocketmq", "DefaultCluster", "shop")


def after(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def read_at(*minutes: float, every_s: float = 60.0) -> Coverage:
    """Return what a sampler has read that read the group so many minutes after ``START``."""
    coverage = Coverage(every_s)
    for at in minutes:
        coverage = coverage.add({KEY: after(at)})
    return coverage


@pytest.mark.parametrize(
    ("coverage", "at", "is_enough"),
    [
        (read_at(*range(10)), 10, True),
        (read_at(*range(9)), 9, True),  # 90 % of the window is what the policy asks for
        (read_at(*range(8)), 8, False),
        (read_at(*range(10)), 10.7, True),
        (read_at(*range(10)), 10.8, False),  # a look now would leave a gap behind it
        (read_at(*range(6), *range(8, 13)), 13, True),  # a gap of three minutes: the window begins earlier
        (read_at(*range(6), *range(27, 31)), 31, False),  # but no earlier than three times its length
        (read_at(*range(0, 20, 5), every_s=300), 20, True),
        (read_at(*range(0, 24, 6), every_s=360), 24, False),  # one figure is no mean of a window
        (read_at(*range(10)), 5, False),  # a clock that runs behind the sampler's
        (Coverage(60.0), 10, False),
    ],
)
def test_a_run_only_looks_back_when_fresh_reads_cover_the_window(
    coverage: Coverage, at: float, is_enough: bool
) -> None:
    assert coverage.is_enough(SHOP, after(at)) is is_enough
    assert needs_single_read(coverage, [SHOP], after(at)) is is_enough


def test_a_group_that_nobody_can_read_keeps_no_other_waiting_and_one_that_lacks_time_does() -> None:
    """Red when a misspelt group makes every run watch for ever, or when a group that was just added is not watched."""
    coverage = read_at(*range(10))
    assert needs_single_read(coverage, [SHOP, BANK], after(10))
    added = coverage.add({("rocketmq", "DefaultCluster", "bank"): after(9.5)})
    assert not needs_single_read(added, [SHOP, BANK], after(10))
    assert not needs_single_read(coverage, [BANK], after(10))
    assert not needs_single_read(None, [SHOP], after(10))


def test_what_is_kept_of_a_group_stays_small_and_goes_with_the_group() -> None:
    gaps = read_at(*range(0, 2_000, 10))
    (group,) = gaps.groups
    assert len(group.spans) == MOST_SPANS
    assert group.spans[-1] == Span(after(1_990), after(1_990))
    later = gaps.add({("kafka", "test", "other"): after(1_990) + KEPT + timedelta(seconds=1)})
    assert [entry.group for entry in later.groups] == ["other"]
    assert gaps.add({KEY: after(5)}) == gaps, "a clock that was set back"


def test_a_file_that_cannot_be_read_makes_runs_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_coverage(tmp_path) is None
    write_coverage(tmp_path, read_at(1, 2))
    assert read_coverage(tmp_path) == read_at(1, 2)
    sampling_record(tmp_path).write_text("{")
    assert read_coverage(tmp_path) is None
    assert "runs watch the groups themselves" in caplog.text


def test_runs_of_both_kinds_look_once_where_a_sampler_covers_and_watch_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And gaps are judged by the sampler's period then: its reads are a minute apart, and nothing is missing."""
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "shop.yaml").write_text(POLICY, encoding="utf-8")
    (policies / "far.yaml").write_text(POLICY.replace("shop", "far").replace("9876", "9877"), encoding="utf-8")
    watched: dict[str, float] = {}

    def looks(place: Installation, seconds: float, pace: Pace) -> object:
        watched[place.policies[0].metadata.name] = seconds
        pace.note(0.2)
        yield place.policies[0], watch(1)[0]

    monkeypatch.setattr(observe, "watch_installation", looks)
    now = datetime.now(START.tzinfo)
    coverage = Coverage(60.0)
    for minutes in (3, 2, 1, 0):
        coverage = coverage.add({KEY: now - timedelta(minutes=minutes)})
    for run in (
        lambda: observe_live(policies, tmp_path, 40.0),
        lambda: observe_each(policies, tmp_path, 40.0)[0],
    ):
        sampling_record(tmp_path).unlink(missing_ok=True)
        assert (run().sample_every_s, watched) == (5.0, {"shop": 40.0, "far": 40.0})
        write_coverage(tmp_path, coverage)
        assert (run().sample_every_s, watched) == (60.0, {"shop": 0.0, "far": 40.0})
