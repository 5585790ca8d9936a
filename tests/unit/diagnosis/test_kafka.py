"""What a Kafka group shows: state, protocol, assignors, static members."""

from dataclasses import replace

import pytest

from planner.diagnosis.finding import Severity
from planner.diagnosis.picture import Picture
from planner.model.membership import KafkaMember
from planner.model.samples import GroupSample, KafkaGroup
from tests.unit.diagnosis.patients import codes, each, finding, gaps, kafka
from tests.unit.diagnosis.test_clients import deployment


def group(picture: Picture, **fields: object) -> Picture:
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
    assert "session.timeout.ms" in gaps(kafka())["kafka-session-timeout"]
