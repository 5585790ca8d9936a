"""Who owns what: two owners, none, and the views that lead there; what members subscribe to."""

from dataclasses import replace

from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.membership import Subscription
from planner.model.queues import MessageQueue
from planner.model.routes import BrokerQueues
from planner.model.samples import QueueOffsets, RocketMQGroup
from tests.unit.diagnosis.patients import CIRCLE, at, codes, each, finding, gaps, healthy, member, offset, queue, tuned


def mixed() -> GroupEvidence:
    """8 queues, c1 AVG, c2 AVG_BY_CIRCLE: 1 and 3 twice, 4 and 6 by nobody (rocketmq.md 3.13)."""
    picture = healthy()
    queues = picture.queues
    circle = each(picture, tuned("c2", strategy_class=CIRCLE))
    return each(circle, member("c2", owned=(queues[1], queues[3], queues[5], queues[7])))


def test_mixed_strategies_are_one_finding_with_the_queues_that_they_tear() -> None:
    assert codes(mixed()) == {"mixed-strategies": Severity.ERROR}
    found = finding(mixed(), "mixed-strategies")
    assert found.evidence[:2] == ("AVG: c1", "AVG_BY_CIRCLE: c2")
    assert found.evidence[2] == "owned more than once: orders/broker-a/1 (c1, c2), orders/broker-a/3 (c1, c2)"
    assert found.evidence[3] == "owned by nobody: orders/broker-b/0, orders/broker-b/2"
    assert found.consequence.startswith("2 queues are consumed more than once (40 messages/s)")


def test_mixed_strategies_that_have_not_torn_anything_yet_are_computed() -> None:
    picture = each(healthy(), tuned("c2", strategy_class=CIRCLE))
    assert "owned by nobody: orders/broker-b/0, orders/broker-b/2" in finding(picture, "mixed-strategies").evidence


def test_a_member_that_does_not_tell_its_strategy_is_named() -> None:
    assert "c2" in gaps(each(healthy(), tuned("c2", strategy_class=None)))["mixed-strategies"]


def overlapping(looks: int = 7, **fields: float) -> GroupEvidence:
    """Configured lists: both have the first queue, and nobody the last."""
    picture = healthy(looks, strategy_class=CIRCLE.replace("AveragelyByCircle", "ByConfig"), **fields)
    queues = picture.queues
    first = each(picture, member("c1", owned=queues[:4]))
    return each(first, member("c2", owned=(queues[0], *queues[4:7])))


def test_two_owners_and_none_are_errors_in_a_settled_group() -> None:
    assert codes(overlapping()) == {"owned-twice": Severity.ERROR, "no-owner": Severity.ERROR}
    assert finding(overlapping(), "no-owner").about == ("orders/broker-b/3",)


def test_what_waits_without_any_commit_is_told_as_what_the_queue_holds() -> None:
    bare = each(overlapping(), offset(queue(3, "broker-b"), broker_offset=1000, consumer_offset=None, first_offset=900))
    told = finding(bare, "no-owner").consequence
    assert told.endswith("1 queue without any commit holds up to 100 messages")


def test_an_old_group_is_settled_after_a_short_look() -> None:
    assert codes(overlapping(looks=2)) == {"owned-twice": Severity.ERROR, "no-owner": Severity.ERROR}


def test_in_a_young_group_it_is_a_warning() -> None:
    assert set(codes(overlapping(looks=2, started_s_ago=60.0)).values()) == {Severity.WARNING}


def test_a_group_that_has_just_started_is_not_judged() -> None:
    fresh = overlapping(looks=2, started_s_ago=10.0)
    assert codes(fresh) == {}
    assert "a rebalance may be under way" in gaps(fresh)["no-owner"]


def test_a_group_whose_members_change_is_not_judged() -> None:
    picture = overlapping(looks=3)
    moving = at(picture, 0, lambda sample: replace(sample, members=sample.members[:1]))
    assert codes(moving) == {}


def test_members_that_changed_minutes_ago_do_not_keep_a_group_from_being_judged() -> None:
    picture = overlapping(looks=40)
    moved = at(picture, 0, lambda sample: replace(sample, members=sample.members[:1]))
    assert codes(moved)["owned-twice"] is Severity.ERROR


def test_a_pull_consumer_that_shows_no_queue_may_own_some() -> None:
    """As a lite pull consumer of 4.9 does (seen on a 4.9.7 cluster)."""
    quiet = each(healthy(clients=("c1",)), member("c1", owned=()))
    pulling = each(quiet, lambda s: replace(s, rocketmq=RocketMQGroup(("CONSUME_ACTIVELY",), ("CLUSTERING",))))
    assert codes(pulling) == {}
    assert "no-owner" in gaps(pulling)
    assert codes(quiet) == {"other-view": Severity.ERROR}


def test_what_only_the_last_look_shows_is_a_warning() -> None:
    picture = at(healthy(), -1, member("c2", owned=healthy().queues[5:]))
    assert codes(picture)["other-view"] is Severity.WARNING


def expanded() -> GroupEvidence:
    """From 8 to 16 queues: c1 has seen it and takes the first half, c2 still has its part of the old ones."""
    picture = healthy()
    wide = tuple(MessageQueue("orders", "broker-a", number) for number in range(16))
    route = (BrokerQueues("broker-a", 16, 16, 6),)
    changed = each(
        picture,
        lambda sample: replace(
            sample,
            routes=replace(sample.routes, topics=(replace(sample.routes.topics[0], brokers=route),)),
            offsets=tuple(QueueOffsets(one, 1000, 1000) for one in wide),
        ),
    )
    return each(each(changed, member("c1", owned=wide[:8])), member("c2", owned=wide[4:8]))


def test_a_member_with_an_old_route_is_recognised() -> None:
    """c0 {0-7}, c1 {4-7}: 4 to 7 twice, 8 to 15 by nobody (rocketmq.md 3.13)."""
    found = finding(expanded(), "other-view")
    assert found.severity is Severity.ERROR
    assert found.evidence[0] == "c2: acts as if each broker had 8 queues of a topic at most"
    assert found.consequence.startswith("4 queues are consumed more than once")
    assert "; 8 queues are consumed by nobody" in found.consequence
    assert codes(expanded()) == {"other-view": Severity.ERROR}


def test_a_member_that_sees_itself_alone_is_recognised() -> None:
    picture = each(healthy(), member("c1", owned=healthy().queues))
    found = finding(picture, "other-view")
    assert found.evidence[0] == "c1: acts as if c2 were not there"
    assert found.consequence.startswith("4 queues are consumed more than once")


def test_owners_that_no_parameters_explain_are_a_finding_of_their_own() -> None:
    hashing = CIRCLE.replace("AveragelyByCircle", "ConsistentHash")
    picture = each(each(healthy(), tuned("c1", strategy_class=hashing)), tuned("c2", strategy_class=hashing))
    swapped = each(each(picture, member("c1", owned=())), member("c2", owned=healthy().queues[:1]))
    found = finding(swapped, "other-view")
    assert found.title == "No parameters of CONSISTENT_HASH explain who owns what"


def test_a_policy_that_states_another_strategy() -> None:
    assert codes(replace(healthy(), stated_strategy="AVG_BY_CIRCLE")) == {"against-policy": Severity.ERROR}
    assert codes(replace(healthy(), stated_strategy="AVG")) == {}


RETRY = MessageQueue("%RETRY%shop", "broker-a", 0)


def with_retry(picture: GroupEvidence, owner: str | None, behind: int = 0) -> GroupEvidence:
    topics = (*healthy().newest.routes.topics,)
    retry = replace(topics[0], topic="%RETRY%shop", brokers=(BrokerQueues("broker-a", 1, 1, 6),))
    routed = each(
        picture,
        lambda sample: replace(
            sample,
            routes=replace(sample.routes, topics=(retry, *sample.routes.topics)),
            offsets=(QueueOffsets(RETRY, behind, 0), *sample.offsets),
        ),
    )
    return routed if owner is None else each(routed, member(owner, owned=(*picture.queues[:4], RETRY)))


def test_a_retry_queue_that_nobody_reads() -> None:
    assert codes(with_retry(healthy(), None)) == {"retry-no-owner": Severity.WARNING}
    assert codes(with_retry(healthy(), None, behind=3))["retry-no-owner"] is Severity.ERROR
    assert codes(with_retry(healthy(), "c1")) == {}


def test_a_young_group_may_not_know_its_retry_topic_yet() -> None:
    assert codes(with_retry(healthy(started_s_ago=60.0), None)) == {}


def different_topics() -> GroupEvidence:
    """T1 and T2 with 8 queues, c1 subscribes T1, c2 T2: the second half of T1 and the first of T2 (rocketmq.md 4.4)."""
    picture = healthy(topics={"t1": 4, "t2": 4})
    t1, t2 = picture.queues[:8], picture.queues[8:]
    first = each(picture, member("c1", subscriptions=(Subscription("t1", "*"),), owned=t1[:4]))
    return each(first, member("c2", subscriptions=(Subscription("t2", "*"),), owned=t2[4:]))


def test_different_topics_orphan_the_shares_of_those_who_do_not_subscribe() -> None:
    assert codes(different_topics()) == {"different-topics": Severity.ERROR}
    found = finding(different_topics(), "different-topics")
    assert found.evidence[:2] == ("c1: t1", "c2: t2")
    assert found.consequence.startswith("50% of the queues belong to nobody: 8 queues are consumed by nobody")
    assert {name for name in found.about if "/" in name} == {
        *(f"t1/broker-b/{n}" for n in range(4)),
        *(f"t2/broker-a/{n}" for n in range(4)),
    }


def test_who_does_not_tell_its_topics_is_named() -> None:
    assert "c2" in gaps(each(healthy(), member("c2", subscriptions=None)))["different-topics"]


def test_different_tags_lose_messages() -> None:
    picture = each(healthy(), member("c2", subscriptions=(Subscription("orders", "TagB"),)))
    assert codes(picture) == {"different-tags": Severity.ERROR}
    assert finding(picture, "different-tags").evidence == ("TAG *: c1", "TAG TagB: c2")


def test_the_retry_topic_does_not_count_as_a_subscription() -> None:
    mine = (Subscription("orders", "*"), Subscription("%RETRY%shop", "*"))
    assert codes(each(healthy(), member("c2", subscriptions=mine))) == {}
