"""The watch of ``planner advise --all``: it ends when all answers are clear at one time."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from planner.cli import watching
from planner.cli.address import Address
from planner.cli.default_policy import default_policy
from planner.documents.policy import ConsumerScalingPolicy
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.sources.live import Installation
from tests.sample_builders import tuning, watch

SAMPLES, LATE, CHANGE = 121, 30, 40
"""The late group is read from its number on; the early one's load changes at another, when its answer is clear."""


def changing(_: MessageQueue, number: int) -> tuple[int, int]:
    """Return offsets of a group that falls behind, and twice as fast after ``CHANGE`` samples."""
    return 1_100 + 60 * number + 60 * max(0, number - CHANGE), 1_000 + 50 * number


def behind(_: MessageQueue, number: int) -> tuple[int, int]:
    """Return offsets of a group that falls behind."""
    return 50_000 + 90 * number, 1_000 + 68 * number


def test_a_group_that_changed_after_its_answer_was_clear_is_watched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red where the watch ends with the last group's first clear answer: the early one's is then another, and new."""
    shown = tuning(rt_ms=20.0, threads=2)
    early = watch(SAMPLES, changing, client_tuning=shown)
    late = [replace(each, group="late") for each in watch(SAMPLES, behind, client_tuning=shown)]
    policies = [default_policy(Address(name_server="127.0.0.1:9876"), group[0]) for group in (early, late)]

    def read(*_: object) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample]]:
        for number in range(SAMPLES):
            yield policies[0], early[number]
            if number >= LATE:
                yield policies[1], late[number]

    counts = []

    def show(now: watching.Watch) -> None:
        counts.append(sum(group.is_clear for group in now.groups.values()))

    monkeypatch.setattr(watching, "watch_installation", read)
    watched = watching.watch_until_clear(Installation(tuple(policies)), 600.0, show)
    assert {name: group.is_clear for name, group in watched.groups.items()} == {"shop": True, "late": True}
    assert watched.watched_s < early[-1].at.timestamp() - early[0].at.timestamp()
    assert counts[-1] == 2
    assert 2 not in counts[:-1]
    targets = [each.decision.target for each in watched.groups["shop"].evaluations]
    assert len(set(targets)) > 1, "its load has changed"
