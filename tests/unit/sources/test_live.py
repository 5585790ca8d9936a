"""Which policies share connections, what a failing look does to a watch, and a slow one."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.errors import OutOfReachError
from planner.history.intervals import queue_intervals
from planner.sources import live
from planner.sources.live import SAMPLE_EVERY_S, Installation, Pace, installations, watch, watch_installation
from tests.sample_builders import POLICY, kafka_policy
from tests.sample_builders import watch as samples


def policy(group: str, *changes: tuple[str, str]) -> ConsumerScalingPolicy:
    text = POLICY.replace("shop", group)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_policy(text, "p.yaml")


def test_policies_of_the_same_servers_and_account_share_an_installation() -> None:
    account = ("cluster: DefaultCluster", "cluster: DefaultCluster, credentialsFile: /etc/account")
    found = installations(
        [
            policy("one"),
            policy("two", ("group: two", "group: two, topics: [orders]")),
            policy("three", account),
            policy("four", ("127.0.0.1:9876", "127.0.0.1:9877")),
            parse_policy(kafka_policy("127.0.0.1:9092", "five"), "p.yaml"),
        ]
    )
    names = sorted([one.metadata.name for one in place.policies] for place in found)
    assert names == [["five"], ["four"], ["one", "two"], ["three"]]


class Script:
    """Stands for an installation whose groups answer as told, look by look."""

    def __init__(self, *looks: dict[str, object]) -> None:
        self.looks = list(looks)

    def __call__(self, *_: object) -> object:
        said = self.looks.pop(0)
        if "everybody" in said:
            raise OutOfReachError(str(said["everybody"]))
        return said.items()


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> object:
    def script(*looks: dict[str, object]) -> None:
        answers = Script(*looks)

        class Opened:
            def __enter__(self) -> object:
                return answers

            def __exit__(self, *_: object) -> None: ...

        monkeypatch.setattr(live, "_open", lambda _: Opened())
        monkeypatch.setattr(live, "_ticks", lambda _: iter(range(len(looks))))

    return script


GONE = OutOfReachError("gone")
(SAMPLE,) = samples(1)


def test_a_later_failure_is_left_out_and_the_watch_goes_on(scripted: object, caplog: pytest.LogCaptureFixture) -> None:
    scripted({"shop": SAMPLE}, {"shop": GONE}, {"everybody": "away"}, {"shop": SAMPLE})  # type: ignore[operator]
    assert list(watch(policy("shop"), 0)) == [SAMPLE, SAMPLE]
    assert caplog.messages == ["group shop was not read: gone", "group shop was not read: away"]


def test_a_first_failure_is_raised(scripted: object) -> None:
    scripted({"shop": GONE}, {"shop": SAMPLE})  # type: ignore[operator]
    with pytest.raises(OutOfReachError, match="gone"):
        list(watch(policy("shop"), 0))


def test_one_groups_failure_is_not_the_others(scripted: object) -> None:
    scripted({"one": SAMPLE, "two": GONE}, {"everybody": "away"})  # type: ignore[operator]
    place = Installation((policy("one"), policy("two")))
    said = [(one.metadata.name, type(answer).__name__) for one, answer in watch_installation(place, 0)]
    failed = "OutOfReachError"
    assert said == [("one", "GroupSample"), ("two", failed), ("one", failed), ("two", failed)]


class Clock:
    """A time that passes by sleeping and looking alone; stands for ``time`` and ``datetime``."""

    def __init__(self) -> None:
        self.s = 1_800_000_000.0

    def monotonic(self) -> float:
        return self.s

    def sleep(self, seconds: float) -> None:
        self.s += seconds

    def now(self, zone: object) -> datetime:
        assert zone is UTC
        return datetime.fromtimestamp(self.s, UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(live, "time", made)
    monkeypatch.setattr(live, "datetime", made)
    return made


SLOW_S = 10.05
"""A look with a member that does not answer: its broker waits 10 s for it."""


def watched(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, looks_s: list[float], seconds: float, failing: int | None = None
) -> tuple[list[datetime], list[bool], float]:
    """Return when a watch looked, which of its intervals are gaps, and its period; the last look's time repeats."""
    took_s = iter((*looks_s, *[looks_s[-1]] * 1_000))
    numbers = iter(range(1_000))

    def look(at: datetime) -> Iterator[tuple[str, object]]:
        said = replace(SAMPLE, at=at)
        clock.sleep(next(took_s))
        yield "shop", (GONE if next(numbers) == failing else said)

    monkeypatch.setattr(live, "_open", lambda _: nullcontext(look))
    pace = Pace()
    found = list(watch(policy("shop"), seconds, pace))
    intervals = queue_intervals(found, pace.sample_every_s)
    gaps = [interval.is_gap for interval in intervals if interval.queue == intervals[0].queue]
    return [one.at for one in found], gaps, pace.sample_every_s


def test_looks_of_a_usual_time_are_five_seconds_apart(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    at, gaps, period = watched(monkeypatch, clock, [0.2], 600.0)
    assert [(one - at[0]).total_seconds() for one in at] == [SAMPLE_EVERY_S * number for number in range(121)]
    assert (any(gaps), period) == (False, SAMPLE_EVERY_S)


def test_slow_looks_neither_lengthen_the_watch_nor_are_gaps(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """A silent member of one group is no reason to hold for all others that are looked at with it."""
    at, gaps, _ = watched(monkeypatch, clock, [SLOW_S], 600.0)
    assert 590.0 <= (at[-1] - at[0]).total_seconds() <= 600.0
    assert len(at) == 60
    assert not any(gaps)


def test_a_look_that_fails_among_slow_ones_is_a_gap(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    _, gaps, _ = watched(monkeypatch, clock, [SLOW_S], 600.0, failing=20)
    assert [number for number, is_gap in enumerate(gaps) if is_gap] == [19]


def test_one_look_that_hangs_is_a_gap_and_the_next_ones_are_not_hurried(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    at, gaps, period = watched(monkeypatch, clock, [0.2, 0.2, 60.0, 0.2], 120.0)
    assert [number for number, is_gap in enumerate(gaps) if is_gap] == [2]
    assert [(one - at[0]).total_seconds() for one in at[:6]] == [0.0, 5.0, 10.0, 70.0, 75.0, 80.0]
    assert period == SAMPLE_EVERY_S


@pytest.mark.parametrize(("seconds", "looks"), [(0.0, 1), (4.0, 1), (5.0, 2), (15.0, 2)])
def test_a_watch_that_has_time_for_two_looks_has_two_however_slow(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: float, looks: int
) -> None:
    at, gaps, _ = watched(monkeypatch, clock, [SLOW_S], seconds)
    assert (len(at), any(gaps)) == (looks, False)
