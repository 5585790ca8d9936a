from dataclasses import replace

from planner.execution.group_look import look_at_group
from planner.execution.look import GroupLook
from planner.model.samples import GroupSample, KafkaGroup
from planner.snapshot.build import SnapshotSettings, build_snapshot
from tests.sample_builders import watch


def looked(sample: GroupSample) -> GroupLook:
    return look_at_group(sample, build_snapshot(sample, (), sample.at, SnapshotSettings()))


SAMPLE = watch(1)[0]


def test_a_settled_group_is_seen_with_members_queues_and_owners() -> None:
    look = looked(SAMPLE)
    assert look.members == tuple(sorted(member.identity for member in SAMPLE.members))
    assert look.misplaced == 0
    assert look.is_rebalancing is False
    assert look.strategy == "AVG"
    assert look.owners is not None
    assert all(len(owners) == 1 for _, owners in look.owners)
    assert look.queues == tuple(queue for queue, _ in look.owners)


def test_a_queue_with_two_owners_is_misplaced_and_names_both() -> None:
    first, second, *others = SAMPLE.members
    assert first.owned is not None
    both = replace(second, owned=(*(second.owned or ()), first.owned[0]))  # type: ignore[arg-type]
    look = looked(replace(SAMPLE, members=(first, both, *others)))
    assert look.misplaced == 1
    assert dict(look.owners or ())[first.owned[0]] == (first.identity, second.identity)


def test_a_member_that_does_not_answer_leaves_owners_and_settling_unknown() -> None:
    silent = replace(SAMPLE.members[0], owned=None)
    look = looked(replace(SAMPLE, members=(silent, *SAMPLE.members[1:])))
    assert (look.owners, look.misplaced) == (None, None)


def test_no_member_is_none_only_in_a_complete_sample() -> None:
    assert looked(replace(SAMPLE, members=())).members == ()
    assert looked(replace(SAMPLE, members=(), problems=("broker-a does not answer",))).members is None


def test_a_kafka_group_that_prepares_a_rebalance_is_rebalancing() -> None:
    for state, rebalancing in (
        ("Stable", False),
        ("PreparingRebalance", True),
        ("Reconciling", True),
        ("Empty", False),
    ):
        group = KafkaGroup(state, "classic", "range", epoch=4)
        look = looked(replace(SAMPLE, members=(), kafka=group))
        assert (look.is_rebalancing, look.epoch) == (rebalancing, 4)
