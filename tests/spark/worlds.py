"""Samples in which much happens, and how to lay them out as a data folder."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path

from planner import pipeline
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.model.membership import GroupMember, Member
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.runs.landed import ReadingsLander
from tests.sample_builders import POLICY, watch

SAMPLE_EVERY_S = 5.0
TOPICS = {"orders": 2, "payments": 1}
STUCK = MessageQueue("orders", "broker-a", 1)
RECREATED = MessageQueue("orders", "broker-b", 0)
SET_BACK = MessageQueue("orders", "broker-b", 1)
OFTEN_MISSING = MessageQueue("payments", "broker-a", 0)
LATE_COMMIT = MessageQueue("payments", "broker-b", 0)
OWNED_BY_OTHERS = ("10.0.0.9@1",)


def eventful(count: int = 48, start_s: float = -120.0, every_s: float = SAMPLE_EVERY_S) -> tuple[GroupSample, ...]:
    """Return samples around 10 o'clock with a stuck queue, both kinds of reset, a late first commit, missing queues,
    missing samples and, after a while in which nobody tells, new owners."""

    def offsets(queue: MessageQueue, number: int) -> tuple[int, int | None]:
        broker, consumer = 1000 + 7 * number, 990 + 7 * number
        if queue == LATE_COMMIT and number < count // 4:
            return broker, None
        if queue == STUCK and number > 2:
            consumer = 990 + 7 * 2
        if queue == RECREATED and number >= count // 2:
            broker, consumer = 3 * number, 2 * number
        if queue == SET_BACK and number >= count // 3:
            consumer -= 200
        return broker, consumer

    seen = watch(count, offsets, every_s=every_s, topics=TOPICS)
    return tuple(
        replace(
            sample,
            at=sample.at + timedelta(seconds=start_s, microseconds=1237 * number % 9001),
            members=_members(sample.members, number),
            offsets=tuple(told for told in sample.offsets if told.queue != OFTEN_MISSING or not 10 <= number % 20 < 15),
        )
        for number, sample in enumerate(seen)
        if number not in (30, 31, 32)
    )


def _members(members: Sequence[GroupMember], number: int) -> tuple[GroupMember, ...]:
    """Return the first member under another name up to the fourth sample, silent in the fifth, and then itself."""
    first, *others = members
    assert isinstance(first, Member)
    if number < 4:
        return (replace(first, client_id=OWNED_BY_OTHERS[0]), *others)
    return (replace(first, owned=None) if number == 4 else first, *others)


def land(data: Path, samples: Iterable[GroupSample]) -> None:
    """Put the samples where the observe stage puts them."""
    pipeline.land_samples(data, samples)


def land_readings(data: Path, *groups: Iterable[GroupSample]) -> None:
    """Put the samples where a watch puts them: those of one time in one file."""
    lander = ReadingsLander(data)
    for sample in sorted(chain.from_iterable(groups), key=lambda sample: sample.at):
        lander.add(sample)
    lander.finish()


def policies(folder: Path, groups: Sequence[str] = ("shop",)) -> Sequence[ConsumerScalingPolicy]:
    """Write a policy for each group and return them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for group in groups:
        (folder / f"{group}.yaml").write_text(POLICY.replace("shop", group), encoding="utf-8")
    return read_policies(folder)


def as_group(samples: Iterable[GroupSample], group: str) -> tuple[GroupSample, ...]:
    """Return the same samples as another group's."""
    return tuple(replace(sample, group=group) for sample in samples)
