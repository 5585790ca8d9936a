"""What a Kafka group shows: state, protocol, assignors, static members."""

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample, KafkaGroup, QueueOffsets
from planner.model.snapshot import KafkaTiming
from tests.sample_builders import START
from tests.unit.diagnosis.patients import codes, each, finding, gaps, kafka
from tests.unit.diagnosis.test_clients import deployment


def group(picture: GroupEvidence, **fields: object) -> GroupEvidence:
    def change(sample: GroupSample) -> GroupSample:
        told = sample.kafka or KafkaGroup("", "", None)
        return replace(sample, kafka=replace(told, **fields))  # type: ignore[arg-type]

    return each(picture, change)


@pytest.mark.parametrize(
    ("members", "assignor", "is_eager"), [(10, "range", True), (9, "range", False), (10, "cooperative-sticky", False)]
)
def test_an_eager_assignor_in_a_large_group(members: int, assignor: str, is_eager: bool) -> None:
    assert ("kafka-eager" in codes(kafka(members, 20, assignor))) == is_eager


def test_an_eager_stop_is_told_in_seconds() -> None:
    """3 s * 9 / 22 = 1.2 s for 10 members (kafka.md 3.5)."""
    found = finding(kafka(10, 20), "kafka-eager")
    assert "stops all 20 partitions for about 1.2 s" in found.consequence
    assert "does that 20 times" in found.consequence


def test_members_that_offer_different_assignors() -> None:
    picture = kafka()
    first = replace(picture.members[0], assignors=("range", "cooperative-sticky"))
    assert isinstance(first, KafkaMember)
    mixed = each(picture, lambda s: replace(s, members=(first, *s.members[1:])))
    assert codes(mixed) == {"kafka-mixed-assignors": Severity.WARNING}
    assert finding(mixed, "kafka-mixed-assignors").consequence.startswith("only range can be chosen")
    assert "kafka-mixed-assignors" in gaps(kafka(assignors=None))


def test_members_without_static_ids() -> None:
    assert codes(kafka(9, 18, "cooperative-sticky", instance_id=None)) == {}
    assert codes(kafka(10, 20, "cooperative-sticky", instance_id=None)) == {"kafka-no-static-ids": Severity.NOTICE}
    rolled = each(kafka(instance_id=None), lambda s: replace(s, deployment=deployment()))
    assert codes(rolled) == {"kafka-no-static-ids": Severity.WARNING}
    assert "rebalances the group 4 times" in finding(rolled, "kafka-no-static-ids").consequence


def test_a_group_that_never_becomes_stable() -> None:
    assert codes(group(kafka(), state="PreparingRebalance")) == {"kafka-rebalancing": Severity.ERROR}
    picture = kafka()
    last = group(picture, state="PreparingRebalance").samples[-1]
    once = replace(picture, samples=(*picture.samples[:-1], last))
    assert codes(once) == {"kafka-rebalancing": Severity.NOTICE}


def test_members_that_still_speak_the_old_protocol() -> None:
    picture = group(kafka(protocol="consumer"), protocol="consumer", assignor="uniform")
    assert codes(picture) == {}
    first = replace(picture.members[0], protocol="classic")
    assert isinstance(first, KafkaMember)
    mixed = each(picture, lambda s: replace(s, members=(first, *s.members[1:])))
    assert finding(mixed, "kafka-mixed-protocols").title == "1 of 2 members still speaks the classic protocol"


def test_a_member_without_partitions() -> None:
    picture = kafka(members=3, partitions=2)
    assert codes(picture) == {"idle-members": Severity.WARNING}


def test_what_no_broker_shows_is_said() -> None:
    told = gaps(kafka())
    assert "spec.timing.settings" in told["kafka-session-timeout"]
    assert {"slow-member", "short-grace"} <= set(told)


def stating(picture: GroupEvidence, ready_s: float | None = None, **settings: int) -> GroupEvidence:
    """Return the picture with settings of its policy, by their last words, and pods that took so long to be ready."""
    names = {"session": "session.timeout.ms", "server_session": "group.consumer.session.timeout.ms"}
    stated = tuple((names[name], value) for name, value in settings.items())
    picture = replace(picture, timing=KafkaTiming("4.1.0", "4.1.0", settings=stated))
    if ready_s is None:
        return picture
    pods = tuple(
        replace(pod, is_ready=True, ready_at=pod.started_at + timedelta(seconds=ready_s), restarts=0)
        for pod in deployment().pods or ()
        if pod.started_at
    )
    restarted = replace(pods[0], restarts=1, ready_at=START)
    return each(picture, lambda s: replace(s, deployment=deployment(pods=(*pods, restarted), replicas=2)))


@pytest.mark.parametrize(
    ("session", "ready_s", "instance", "severity"),
    [
        (45_000, 20.0, None, Severity.WARNING),
        (45_000, 50.0, None, None),
        (45_000, None, None, Severity.NOTICE),
        (30_000, None, None, None),
        (45_000, 20.0, "pod-0", None),
        (45_000, 50.0, "pod-0", Severity.WARNING),
        (10_000, None, "pod-0", Severity.NOTICE),
    ],
)
def test_a_stated_session_timeout_is_held_against_a_restart(
    session: int, ready_s: float | None, instance: str | None, severity: Severity | None
) -> None:
    picture = stating(kafka(instance_id=instance), ready_s, session=session)
    assert codes(picture).get("kafka-session-timeout") == severity
    assert "kafka-session-timeout" not in gaps(picture)


def test_a_session_that_outlasts_a_restart_says_what_it_costs() -> None:
    found = finding(stating(kafka(instance_id=None), 20.0, session=45_000), "kafka-session-timeout")
    assert found.evidence[:2] == (
        "session.timeout.ms 45000, by the policy",
        "a pod takes 20 s until it is ready (the middle one of the Deployment's)",
    )
    assert "about 4 partitions stand still for up to 45 s, 25 s of them with the new pod there" in found.consequence


def test_the_consumer_protocol_has_a_session_timeout_of_the_brokers() -> None:
    picture = group(kafka(protocol="consumer", instance_id=None), protocol="consumer", assignor="uniform")
    assert "group.consumer.session" in gaps(stating(picture, session=45_000))["kafka-session-timeout"]
    assert "kafka-session-timeout" in codes(stating(picture, server_session=45_000))


def test_pods_that_are_ready_and_no_members() -> None:
    crowded = each(kafka(instance_id="i"), lambda s: replace(s, deployment=deployment(replicas=3, ready=3)))
    assert finding(crowded, "pods-without-member").title == "3 pods are ready, 2 members are in the group"
    threads = each(kafka(4, instance_id="i"), lambda s: replace(s, deployment=deployment()))
    assert "pods-without-member" not in codes(threads)


def share_group(rate: float, waiting: int = 100) -> GroupEvidence:
    """Return a share group of three members on two partitions, watched for two minutes: each is done with 7.4/s."""
    parts = (TopicPartition("t", 0), TopicPartition("t", 1))
    members = tuple(
        KafkaMember(name, name, f"10.0.0.{number}", topics=("t",), owned=owned, protocol="share")
        for number, (name, owned) in enumerate((("a", parts[:1]), ("b", parts[1:]), ("c", parts)))
    )
    samples = tuple(
        GroupSample(
            system="kafka",
            cluster="k",
            group="shop",
            at=START + timedelta(seconds=5 * number),
            took_s=0.1,
            routes=RouteTable(partitions=tuple(PartitionRoute(part, 1) for part in parts)),
            members=members,
            offsets=tuple(
                QueueOffsets(part, 900 + waiting + round(5 * rate * number), 900 + 37 * number, first_offset=0)
                for part in parts
            ),
            kafka=KafkaGroup("Stable", "share", "simple", 7, 1),
        )
        for number in range(25)
    )
    return GroupEvidence(samples)


def test_a_share_group_that_gets_too_much_has_too_few_consumers_late_batches_and_nothing_else() -> None:
    """Red where a partition with two members is owned twice, or lags are taken for missing commits or static ids."""
    assert set(codes(share_group(12.0))) == {"too-few-consumers", "share-late-batches"}
    assert "too-few-consumers" not in codes(share_group(7.0))
    assert "kafka-session-timeout" not in gaps(share_group(12.0))


def test_a_batch_that_outlives_its_lock_is_named_where_enough_records_wait_for_a_full_one() -> None:
    """Red where an idle group, a short backlog or a quick member is told to take fewer records."""
    late = finding(share_group(7.4, waiting=600), "share-late-batches")
    assert late.title == "A full batch takes a, b, c longer than the lock on its records"
    assert late.about == ("a", "b", "c")
    assert "2 min" in late.evidence[0]
    assert "share-late-batches" not in codes(share_group(7.4, waiting=100))
    assert "share-late-batches" not in codes(share_group(0.0, waiting=0))
    assert "share-late-batches" not in codes(kafka())
