"""Kafka share groups: what the busiest member can get under assignor ``simple``, and the decision that follows."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from planner.decision.choose import decide
from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.errors import BadInputError, RefusedError
from planner.execution.group_observation import observe_group
from planner.history.intervals import queue_intervals
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample, KafkaGroup, QueueOffsets
from planner.model.snapshot import SHARE, Capacity, GroupSnapshot
from planner.rollout.build import build_plan
from planner.rollout.migrations.migration import read_context
from planner.rollout.settings import RolloutSettings
from planner.simulation.candidates import candidate_counts, leaving, simulate_candidate, unsettled_queues
from planner.simulation.group_model import group_model
from planner.simulation.kafka.share import most_for_member, most_partitions
from planner.simulation.transition import with_transition
from planner.snapshot.build import build_snapshot
from planner.snapshot.settings import SnapshotSettings
from tests.builders import AT, OBJECTIVE, kafka_snapshot
from tests.sample_builders import START, deployment

A_B = ("a", "b")


def share(rates: Sequence[float] = (12.0,) * 4, **changes: Any) -> GroupSnapshot:
    """Return two members, each with every second partition; so many records/s (upper rate) come into each."""
    made = kafka_snapshot(SHARE, shared_queues=len(rates))
    states = tuple(
        replace(
            made.queues[0],
            queue=TopicPartition("t", number),
            upper_arrival_rate=rate,
            arrival_rate=rate,
            owner=A_B[number % 2],
        )
        for number, rate in enumerate(rates)
    )
    members = tuple(
        replace(
            member,
            protocol="share",
            owned=tuple(state.queue for state in states if state.owner == member.member_id),
        )
        for member in made.members
    )
    return replace(made, queues=states, members=members, **changes)


def counts(taken: GroupSnapshot, highest: int = 12) -> list[Any]:
    return [simulate_candidate(taken, count, SHARE) for count in candidate_counts(taken, 1, highest)]


def test_the_most_for_one_member_is_worked_by_hand() -> None:
    equal = [1.0] * 6
    assert [most_for_member(equal, members) for members in (1, 2, 3, 4, 5, 6)] == [6, 3, 2, 2, 2, 1]
    assert [most_for_member(equal, members) for members in (7, 10, 12, 18)] == [1, 1, 0.5, pytest.approx(1 / 3)]
    assert most_for_member(equal, 11) == pytest.approx(2 / 3), "two partitions with three members between them"
    assert most_for_member([4.0, 1.0, 1.0, 1.0], 2) == 5.0, "hash order may give the two heaviest to one"
    assert most_for_member([4.0, 1.0, 1.0, 1.0], 8) == 2.0
    assert [most_partitions(6, members) for members in (1, 4, 6, 7, 12)] == [6, 2, 1, 2, 1]


def test_no_assignment_that_the_assignor_may_make_gives_one_member_more() -> None:
    """Red where the bound leaves out two partitions that have the same members, or the heaviest ones of one member."""
    dice = random.Random(7)
    for _ in range(300):
        partitions, members = dice.randint(1, 5), dice.randint(1, 9)
        rates = [dice.choice((1.0, 2.0, 7.0)) for _ in range(partitions)]
        readers = assignment(dice, partitions, members)
        least = max(
            sum(rates[each] for each in chosen) / len(set().union(*(readers[each] for each in chosen)))
            for chosen in subsets(partitions)
        )
        if members <= partitions:
            least = max(sum(rates[p] for p in range(partitions) if member in readers[p]) for member in range(members))
        assert least <= most_for_member(rates, members) + 1e-9, (rates, readers)


def assignment(dice: random.Random, partitions: int, members: int) -> list[set[int]]:
    """Return the members of each partition: as many for each, and as many for each member, as ``simple`` wants."""
    sharing = -(-members // partitions)
    wanted = [
        -(-sharing * partitions * (member + 1) // members) - -(-sharing * partitions * member // members)
        for member in range(members)
    ]
    while True:
        slots = [member for member, count in enumerate(wanted) for _ in range(count)]
        dice.shuffle(slots)
        readers = [set(slots[at * sharing : (at + 1) * sharing]) for at in range(partitions)]
        if all(len(each) == sharing for each in readers):
            return readers


def subsets(partitions: int) -> list[list[int]]:
    return [[each for each in range(partitions) if bits >> each & 1] for bits in range(1, 2**partitions)]


def test_members_beyond_one_for_each_partition_are_chosen_where_they_are_needed() -> None:
    """Red where partitions bound the count, or every member is taken to do the same at any count."""
    taken = share(capacity=Capacity(10.0, "stated by the policy"))
    taken = replace(
        taken, queues=tuple(replace(state, lag=7) for state in taken.queues)
    )  # 48/s: five members would do, were all alike
    decision = decide(taken, counts(taken), OBJECTIVE, AT)
    assert (decision.target, decision.hold_cause) == (7, None), "of seven, two partitions may have three: 24/s on 30"
    three = simulate_candidate(taken, 3, SHARE)
    assert sum(load.lag or 0 for load in three.loads) == sum(state.lag or 0 for state in taken.queues)
    assert (three.loads[0].arrival_rate, three.is_useful) == (24.0, False), "one of three reads two, as one of two does"


def test_the_present_members_load_is_what_they_read() -> None:
    taken = share((30.0, 1.0, 1.0, 1.0))
    now = simulate_candidate(taken, 2, SHARE)
    assert [(load.client, load.arrival_rate) for load in now.loads] == [("a", 31.0), ("b", 2.0)]
    assert (now.moved_fewest, now.moved_most, now.hot_queue) == (0, 0, None)
    assert group_model(taken).busiest_fraction(2) == pytest.approx(31 / 33)


def test_a_group_that_no_broker_takes_is_no_candidate() -> None:
    taken = share(capacity=Capacity(0.1, "stated by the policy"))
    assert max(candidate_counts(taken, 1, 1_000)) == 200
    beyond = simulate_candidate(taken, 201, SHARE)
    assert any("group.share.max.size is 200" in unknown for unknown in beyond.unknowns)


@pytest.mark.parametrize(
    ("capacity", "is_told"),
    [
        (Capacity(10.0, "stated by the policy"), True),
        (Capacity(20.0, "stated by the policy"), False),
        (Capacity(10.0, "seen", is_lower_bound=True), False),
        (None, False),
    ],
)
def test_a_batch_that_takes_longer_than_its_lock_is_told_of(capacity: Capacity | None, is_told: bool) -> None:
    """Red where a full batch of a slow member is not named, or one is made up of a rate that is only a least one."""
    taken = share(capacity=capacity)
    told = [one for one in simulate_candidate(taken, 3, SHARE).unknowns if "takes a member 50 s" in one]
    assert bool(told) is is_told


def test_a_stop_has_bounds_and_no_invented_figure() -> None:
    taken = share()
    one = with_transition(simulate_candidate(taken, 1, SHARE), taken, "sha256:0")
    assert one.transition is None
    told = " ".join(one.unknowns)
    for bound in ("up to 4,000 records", "30 s later at most", "up to 51 s", "one of 5 deliveries"):
        assert bound in told
    more = with_transition(simulate_candidate(taken, 4, SHARE), taken, "sha256:0")
    assert more.transition is None
    assert "0 to 6 s" in " ".join(more.unknowns)
    assert leaving(taken).range_of(("a",)).most == 0


@pytest.mark.parametrize(
    ("changed", "cause", "words"),
    [
        ({"strategy": "own"}, HoldCause.UNSUPPORTED_STRATEGY, "assignor own of the share group"),
        ({"topics": ("u",)}, HoldCause.UNSUPPORTED_STRATEGY, "subscribe to different topics"),
        ({"owned": ()}, HoldCause.UNSETTLED, "no member reads 2 partitions yet"),
    ],
    ids=["an assignor of its own", "different topics", "partitions that nobody reads yet"],
)
def test_what_cannot_be_decided_is_held(changed: dict[str, Any], cause: HoldCause, words: str) -> None:
    taken = share()
    of_group = {name: value for name, value in changed.items() if name == "strategy"}
    of_member = {name: value for name, value in changed.items() if name != "strategy"}
    first, second = taken.members
    taken = replace(taken, members=(first, replace(second, **of_member)), **of_group)
    reason = first_reason_to_hold(taken, OBJECTIVE, AT)
    assert reason is not None
    assert (reason[0], words in reason[1]) == (cause, True), reason


def test_another_assignor_and_migrations_are_refused_by_name() -> None:
    taken = share()
    with pytest.raises(BadInputError, match="is a share group"):
        simulate_candidate(taken, 3, "range")
    served = replace(taken, deployment=deployment(("10.0.0.1", "10.0.0.2")))
    with pytest.raises(RefusedError, match="share messages: only their number"):
        read_context(served, "sha256:0", RolloutSettings(policy="shop", deployment="shop-consumer"))


def samples() -> list[GroupSample]:
    """Return three members on two partitions: 20 records/s come in, 14.8 are done, and the lag grows from 200."""
    parts = (TopicPartition("t", 0), TopicPartition("t", 1))
    members = tuple(
        KafkaMember(name, name, f"10.0.0.{number}", topics=("t",), owned=owned, protocol="share")
        for number, (name, owned) in enumerate((("a", parts[:1]), ("b", parts[1:]), ("c", parts)))
    )
    return [
        GroupSample(
            "kafka",
            "test",
            "g",
            START + timedelta(seconds=5 * number),
            0.1,
            RouteTable(partitions=tuple(PartitionRoute(part, 1) for part in parts)),
            members,
            tuple(QueueOffsets(part, 1_000 + 50 * number, 900 + 37 * number, first_offset=0) for part in parts),
            kafka=KafkaGroup("Stable", "share", "simple", 3),
        )
        for number in range(25)
    ]


def test_a_share_group_is_seen_whole_and_settled_and_its_members_capacity_is_learned() -> None:
    """Red where a partition with two members counts as owned twice, or capacity is that of single owners only."""
    seen = samples()
    taken = build_snapshot(seen[-1], queue_intervals(seen, 5.0), seen[-1].at, SnapshotSettings(window_s=120.0))
    assert (taken.strategy, taken.problems, taken.rewound_queues) == (SHARE, (), ())
    assert taken.capacity is not None
    assert taken.capacity.messages_per_s == pytest.approx(3.7, rel=0.05), "7.4/s of each partition over two members"
    assert unsettled_queues(taken) == 0
    look = observe_group(seen[-1], taken)
    assert (look.owners, look.misplaced, look.is_calm, look.shares_messages) == ((), 0, True, True)
    assert look.busiest_fraction == pytest.approx(1 / 3), "both partitions have two of the three"
    assert first_reason_to_hold(taken, OBJECTIVE, seen[-1].at) is None
    other = SnapshotSettings(window_s=120.0, strategy="range")
    stated = build_snapshot(seen[-1], queue_intervals(seen, 5.0), seen[-1].at, other)
    assert stated.strategy is None
    assert "the policy says range" in stated.strategy_source


def test_a_plan_names_no_partition_and_says_what_is_waited_for() -> None:
    taken = replace(share(), deployment=deployment(("10.0.0.1", "10.0.0.2")), capacity=Capacity(16.0, "stated"))
    decision = decide(taken, counts(taken), OBJECTIVE, AT)
    assert decision.target == 4
    outcome = with_transition(simulate_candidate(taken, 4, SHARE), taken, "sha256:0")
    plan = build_plan(taken, "sha256:0", decision, outcome, RolloutSettings(policy="shop", deployment="shop-consumer"))
    assert not any(owned.queues for owned in plan.forecast.owners_after)
    assert any("all 4 members share the records of all partitions" in step.done_when for step in plan.steps)
