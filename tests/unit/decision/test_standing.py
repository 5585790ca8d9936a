"""A decision to stay that is checked again: it stands as long as a new decision would be the same."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from planner import pipeline
from planner.decision.standing import LONGEST, StandingDecision, standing_decision
from planner.documents.policy import parse_policy
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample, QueueOffsets
from tests.sample_builders import POLICY, deployment, watch

EVERY_S = 30.0
BEFORE = 60
"""Half an hour of samples before the decision."""
WEIGHED = POLICY.replace(
    "  objective: {maxUtilisation: 0.8, backlogGoneSeconds: 600}\n", "  capacity: {messagesPerSecond: 100}\n"
)
SHOP = parse_policy(WEIGHED, "shop.yaml")
Rates = Callable[[int], float]


def world(rates: Rates, count: int, seed: int = 1, waiting: int = 3) -> tuple[GroupSample, ...]:
    """Return samples of a group of 16 queues to which ``rates`` messages/s come in all, with chance in them."""
    random = np.random.default_rng(seed)
    arrived = np.cumsum([random.poisson(rates(place) * EVERY_S / 16, 16) for place in range(count)], axis=0)

    def offsets(queue: MessageQueue, place: int) -> tuple[int, int]:
        number = queue.queue_id + (8 if queue.broker == "broker-b" else 0)
        broker_offset = 1000 + int(arrived[place, number])
        return broker_offset, broker_offset - waiting

    return watch(count, offsets, EVERY_S, {"orders": 8})


def decided(samples: Sequence[GroupSample], text: str = WEIGHED) -> StandingDecision | None:
    policy = parse_policy(text, "shop.yaml")
    snapshot = pipeline.take_snapshot(samples, EVERY_S, policy, samples[-1].at)
    outcomes = pipeline.simulate(snapshot, policy)
    decision = pipeline.decide(snapshot, outcomes, policy).decision
    return standing_decision(snapshot, outcomes, policy.objective, decision, samples[-1])


def standing(samples: Sequence[GroupSample]) -> StandingDecision:
    made = decided(samples[:BEFORE])
    assert made is not None
    return made


def test_a_decision_stands_while_the_load_stays_and_for_half_an_hour_at_most() -> None:
    samples = world(lambda _: 210.0, BEFORE + 61)
    made = standing(samples)
    answers = [made.stands(sample) for sample in samples[BEFORE:]]
    assert answers == [True] * 60 + [False]
    assert samples[BEFORE + 59].at - samples[BEFORE - 1].at == LONGEST


@pytest.mark.parametrize("factor", [2.0, 0.4])
def test_another_load_makes_a_decision_due(factor: float) -> None:
    """Red where load that came since the decision is left out of it."""
    samples = world(lambda place: 210.0 * (factor if place >= BEFORE + 2 else 1.0), BEFORE + 30)
    made = standing(samples)
    answers = [made.stands(sample) for sample in samples[BEFORE:]]
    assert answers[:2] == [True, True]
    assert False in answers


def test_a_backlog_makes_a_decision_due_at_once() -> None:
    samples = world(lambda _: 210.0, BEFORE + 3)
    made = standing(samples)
    assert made.stands(samples[BEFORE])
    late = samples[BEFORE + 1]
    behind = tuple(replace(offsets, consumer_offset=(offsets.consumer_offset or 0) - 5000) for offsets in late.offsets)
    assert not made.stands(replace(late, at=late.at - timedelta(seconds=20), offsets=behind))


def change_offsets(sample: GroupSample, changed: Callable[[QueueOffsets], QueueOffsets | None]) -> GroupSample:
    first, *others = sample.offsets
    of_first = changed(first)
    return replace(sample, offsets=(*([] if of_first is None else [of_first]), *others))


@pytest.mark.parametrize(
    "changed",
    [
        lambda sample: replace(sample, members=sample.members[:-1]),
        lambda sample: replace(sample, members=(replace(sample.members[0], owned=None), *sample.members[1:])),
        lambda sample: replace(sample, deployment=deployment(["10.0.0.1"])),
        lambda sample: replace(sample, problems=("broker-b was not read",)),
        lambda sample: change_offsets(sample, lambda _: None),
        lambda sample: change_offsets(sample, lambda offsets: replace(offsets, broker_offset=1)),
        lambda sample: change_offsets(sample, lambda offsets: replace(offsets, consumer_offset=None)),
        lambda sample: replace(sample, at=sample.at - timedelta(hours=1)),
    ],
)
def test_what_is_not_as_it_was_makes_a_decision_due(changed: Callable[[GroupSample], GroupSample]) -> None:
    samples = world(lambda _: 210.0, BEFORE + 1)
    assert standing(samples).stands(samples[BEFORE])
    assert not standing(samples).stands(changed(samples[BEFORE]))


def test_a_target_that_was_only_read_again_changes_nothing() -> None:
    """Red where the time of its reading, or the version that each written status gives it, makes a decision due."""
    target = deployment(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    samples = [replace(sample, deployment=target) for sample in world(lambda _: 210.0, BEFORE + 1)]
    later = replace(target, at=target.at + timedelta(seconds=30), resource_version="another")
    assert standing(samples).stands(replace(samples[BEFORE], deployment=later))
    assert not standing(samples).stands(replace(samples[BEFORE], deployment=replace(later, ready=2)))


def test_load_that_moves_to_one_consumer_makes_a_decision_due() -> None:
    """The total stays, and all of it comes to two queues from now on: red where only the total counts."""
    samples = world(lambda _: 210.0, BEFORE + 20)
    made = standing(samples)
    last = {offsets.queue: offsets.broker_offset for offsets in samples[BEFORE - 1].offsets}
    hot = sorted(last)[:2]
    answers = []
    for place, sample in enumerate(samples[BEFORE:], 1):
        moved = tuple(
            replace(offsets, broker_offset=end, consumer_offset=end - 3)
            for offsets in sample.offsets
            for end in [last[offsets.queue] + (int(105 * EVERY_S) * place if offsets.queue in hot else 0)]
        )
        answers.append(made.stands(replace(sample, offsets=moved)))
    assert not answers[-1]


@pytest.mark.parametrize(
    "text",
    [
        POLICY,
        WEIGHED + "  events: [{name: sale, from: '11:00', to: '12:00', factor: 2}]\n",
        WEIGHED.replace("capacity: {messagesPerSecond: 100}", "capacity: {messagesPerSecond: 1000}"),
    ],
    ids=["bounds", "events", "a change"],
)
def test_only_what_rests_on_costs_alone_can_stand(text: str) -> None:
    assert decided(world(lambda _: 210.0, BEFORE), text) is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_stands_is_what_a_new_decision_would_be(seed: int) -> None:
    """A load that wanders: red where a decision stands although another count would now save more than 5%."""
    random = np.random.default_rng(seed)
    walk = 210.0 * np.exp(np.cumsum(random.normal(0.0, 0.04, BEFORE + 24)))
    walk[:BEFORE] = 210.0
    samples = world(lambda place: float(walk[place]), BEFORE + 24, seed)
    made = standing(samples)
    compared = 0
    for end in range(BEFORE, len(samples)):
        if not made.stands(samples[end]):
            break
        if end % 2 == 0:
            snapshot = pipeline.take_snapshot(samples[: end + 1], EVERY_S, SHOP, samples[end].at)
            decision = pipeline.decide(snapshot, pipeline.simulate(snapshot, SHOP), SHOP).decision
            assert decision.bill is not None
            staying, best = decision.bill.line(decision.current), decision.bill.line(decision.target)
            assert staying is not None
            assert best is not None
            assert staying.total_hours < 1.05 * best.total_hours, end
            compared += 1
    assert compared
