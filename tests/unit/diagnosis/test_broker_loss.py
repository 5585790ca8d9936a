"""Whether the members carry the load without one broker, as the doctor tells it."""

from dataclasses import replace

from planner.diagnosis.broker_loss import _carried_rates, broker_loss
from planner.diagnosis.finding import Gap, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from tests.builders import queues
from tests.sample_builders import routes, steady, tuning, watch

QUEUES = queues(each=2)
TWO = ("10.0.0.1@1", "10.0.0.2@1")


def judged(arriving: int, rt_ms: float = 40.0, consuming: int | None = None) -> list[Symptom | Gap]:
    """Two members of two threads each; so many messages come into each of eight queues between two looks, 5 s apart."""
    samples = watch(
        8, steady(arriving, consuming or arriving), topics={"orders": 4}, clients=TWO, client_tuning=tuning(rt_ms=rt_ms)
    )
    return list(broker_loss(GroupEvidence(samples)))


def test_even_queues_stay_even_and_every_broker_can_be_spared() -> None:
    assert judged(arriving=50) == []


def test_an_odd_number_of_queues_a_broker_leaves_one_member_with_too_much() -> None:
    """3 queues a broker and 2 members: 3 and 3 queues now, 2 and 1 of twice the inflow without a broker."""
    samples = watch(8, steady(70, 70), topics={"orders": 3}, clients=TWO, client_tuning=tuning(rt_ms=40.0))
    (symptom,) = broker_loss(GroupEvidence(samples))
    assert isinstance(symptom, Symptom)
    # 6 queues of 14 a second; one member does 50, and gets 42 now, 56 without a broker.
    assert symptom.title == "Without one broker (broker-a, broker-b) 1 of 2 members gets more than it can do"
    assert "84 messages/s come in at most" in symptom.evidence[0]
    assert (
        "backlog grows by 6 messages/s: in half an hour 10,800 messages, gone 11 min 15 s after" in symptom.consequence
    )
    assert symptom.about == ("10.0.0.1@1",)


def test_unknown_capacity_is_a_gap() -> None:
    (gap,) = judged(arriving=50, rt_ms=0.0)
    assert isinstance(gap, Gap) and "what one member can do is unknown" in gap.reason


def test_an_overload_of_today_is_for_other_checks() -> None:
    assert judged(arriving=80, consuming=60) == []


def test_a_group_of_one_broker_has_none_to_spare() -> None:
    one_broker = routes({"orders": 8}, brokers=("broker-a",))
    samples = tuple(replace(sample, routes=one_broker) for sample in watch(8, steady(70, 70), clients=TWO))
    assert list(broker_loss(GroupEvidence(samples))) == []


def test_queues_that_got_nothing_share_what_a_broker_leaves_to_them() -> None:
    """Red where nothing comes in any more because nothing came into the queues that are left."""
    carried = _carried_rates(QUEUES, QUEUES[2:], dict(zip(QUEUES, (30.0, 10.0, 0.0, 0.0), strict=True)))
    assert carried == {QUEUES[2]: 20.0, QUEUES[3]: 20.0}
