"""``observe_group``: what a sample holds, and which sentence each disagreement becomes."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from planner.errors import OutOfReachError, UnknownNameError
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.sources.rocketmq import RocketMQAdmin, TimeLimits, observe_group
from tests.unit.sources.rocketmq.fake_cluster import (
    SILENT,
    FakeBroker,
    FakeCluster,
    running,
    running_info,
    two_by_two,
)

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
QUICK = TimeLimits(connect_s=1.0, request_s=1.0, running_info_s=1.2, members_s=1.5)
"""Long enough for a busy machine, short enough to wait for."""
RETRY = "%RETRY%g"


@pytest.fixture
def world() -> Iterator[FakeCluster]:
    with running(two_by_two()) as cluster:
        yield cluster


def look(
    cluster: FakeCluster, group: str = "g", topics: list[str] | None = None, within: str | None = None
) -> GroupSample:
    with RocketMQAdmin(cluster.server.address, limits=QUICK) as admin:
        return observe_group(admin, cluster=within, group=group, topics=topics, at=AT)


def requests_of(cluster: FakeCluster) -> list[int]:
    return [request.code for server in (cluster, *cluster.brokers) for request in server.server.requests]


def test_healthy_group_is_told_whole_and_without_problems(world: FakeCluster) -> None:
    sample = look(world)
    assert sample.problems == ()
    assert (sample.system, sample.cluster, sample.group, sample.at) == ("rocketmq", "C", "g", AT)
    assert 0 < sample.took_s < 5
    assert [str(queue) for queue in sample.routes.read_queues] == [f"{RETRY}/a/0", f"{RETRY}/b/0", *DATA]
    assert [(one.broker, one.address, one.is_master) for one in sample.routes.brokers] == [
        (broker.name, broker.server.address, True) for broker in world.brokers
    ]
    assert [(str(one.queue), one.broker_offset, one.consumer_offset) for one in sample.offsets] == [
        (f"{RETRY}/a/0", 0, 0),
        (f"{RETRY}/b/0", 0, 0),
        *zip(DATA, (10, 20, 10, 20), (4, 20, 4, 20), strict=True),
    ]
    assert [(one.client_id, one.address, one.version) for one in sample.members] == [
        ("m1", "10.0.0.1:1", 513),
        ("m2", "10.0.0.2:1", 513),
    ]
    assert {str(queue): owners for queue, owners in sample.owners.items()} == {
        **dict.fromkeys(["T/a/0", "T/a/1", f"{RETRY}/a/0"], ("m1",)),
        **dict.fromkeys(["T/b/0", "T/b/1", f"{RETRY}/b/0"], ("m2",)),
    }


DATA = ["T/a/0", "T/a/1", "T/b/0", "T/b/1"]


def test_it_costs_as_many_requests_as_the_recipe_says(world: FakeCluster) -> None:
    look(world)
    assert sorted(requests_of(world)) == sorted([106, 105, 105, 38, 38, 203, 203, 208, 208, 307, 307])


def test_members_are_asked_by_way_of_different_brokers(world: FakeCluster) -> None:
    look(world)
    asked = {one.name: [r.fields["clientId"] for r in one.server.requests if r.code == 307] for one in world.brokers}
    assert asked == {"a": ["m1"], "b": ["m2"]}


def test_named_topics_limit_routes_and_offsets_but_keep_the_retry_topic(world: FakeCluster) -> None:
    world.routes["U"] = {"a": (1, 1, 6)}
    world.broker("a").subscribed.append("U")
    world.broker("a").offsets["U", 0] = (1, 1)
    assert [route.topic for route in look(world).routes.topics] == [RETRY, "T", "U"]
    sample = look(world, topics=["U"])
    assert [route.topic for route in sample.routes.topics] == [RETRY, "U"]
    assert {one.queue.topic for one in sample.offsets} == {RETRY, "U"}
    assert sample.problems == ()


def test_topics_come_from_subscriptions_and_from_commits(world: FakeCluster) -> None:
    world.routes |= {"S": {"a": (1, 1, 6)}, "O": {"b": (1, 1, 6)}}
    world.broker("b").subscribed.append("S")
    world.broker("b").offsets["O", 0] = (3, 2)
    assert [route.topic for route in look(world).routes.topics] == [RETRY, "O", "S", "T"]


def test_queues_that_never_saw_a_commit_are_left_out_and_named(world: FakeCluster) -> None:
    for broker in world.brokers:
        del broker.offsets[RETRY, 0]
    sample = look(world)
    assert [str(one.queue) for one in sample.offsets] == DATA
    assert sample.problems == (
        f"topic {RETRY} has no offsets for 2 queues, as their brokers know of no commit of the group on the topic: "
        "a/0, b/0",
    )


def test_messages_in_queues_that_never_saw_a_commit_are_counted(world: FakeCluster) -> None:
    for broker in world.brokers:
        del broker.offsets["T", 0], broker.offsets["T", 1]
        broker.held = {("T", 0): (3, 10), ("T", 1): (0, 5), ("U", 0): (0, 99)}
    sample = look(world)
    # The group's offset there is not known, so that nothing is told of it.
    assert {one.queue.topic for one in sample.offsets} == {RETRY}
    assert sample.problems == (
        "topic T has no offsets for 4 queues, as their brokers know of no commit of the group on the topic; "
        "they hold 24 messages: a/0, a/1, b/0, b/1",
    )
    assert requests_of(world).count(202) == 2
    world.broker("b").fails = {202: 1}
    assert "they hold 12 messages and 2 of them did not tell: a/0" in look(world).problems[0]
    world.broker("a").fails = {202: 17}
    assert "on the topic: a/0, a/1" in look(world).problems[0]


def test_many_queues_are_counted_and_the_first_ones_named(world: FakeCluster) -> None:
    world.routes["T"]["a"] = (10, 10, 6)
    (problem,) = look(world).problems
    assert "topic T has no offsets for 8 queues" in problem
    assert problem.endswith(": a/2, a/3, a/4, a/5, a/6 and 3 more")


def test_offsets_of_queues_that_nobody_reads_are_named(world: FakeCluster) -> None:
    world.routes["T"]["a"] = (1, 2, 6)
    assert look(world).problems == ("offsets are told for 1 queues that no consumer reads by the route: T/a/1",)


def test_broker_that_does_not_answer_is_named_once_and_its_queues_are_unknown(world: FakeCluster) -> None:
    world.broker("b").fails = dict.fromkeys((38, 203, 208), SILENT)
    sample = look(world)
    address = world.broker("b").server.address
    silent, retry, data = sample.problems
    assert silent.startswith(f"broker b answered none of 3 requests: {address} did not answer")
    assert retry == (
        f"topic {RETRY} has no offsets for 1 queues, as their brokers were not asked or did not answer: b/0"
    )
    assert data.startswith("topic T has no offsets for 2 queues, as their brokers were not asked")
    assert {one.queue.broker for one in sample.offsets} == {"a"}
    assert [one.owned is not None for one in sample.members] == [True, True]


def test_broker_that_refuses_one_request_is_named_with_it(world: FakeCluster) -> None:
    world.broker("b").fails = {203: 16}
    sample = look(world)
    (problem,) = sample.problems
    assert problem.startswith("broker b: ")
    assert "GET_CONSUMER_CONNECTION_LIST (203) for consumerGroup g with code 16 (NO_PERMISSION)" in problem
    assert len(sample.members) == 2


def test_group_that_no_broker_knows() -> None:
    empty = two_by_two()
    for broker in empty.brokers:
        broker.members, broker.offsets = {}, {}
    with running(empty), pytest.raises(UnknownNameError) as caught:
        look(empty, group="typo")
    assert "no broker knows group typo: a (127.0.0.1:" in str(caught.value)
    assert caught.value.exit_code == 2


def test_group_that_cannot_be_told_from_an_unreachable_one() -> None:
    empty = two_by_two()
    for broker in empty.brokers:
        broker.members, broker.offsets = {}, {}
    empty.brokers[1].fails = {208: SILENT}
    with running(empty), pytest.raises(OutOfReachError, match="cannot tell whether group g exists"):
        look(empty)


def test_offline_group_keeps_its_offsets(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {}
    sample = look(world)
    assert sample.members == ()
    assert len(sample.offsets) == 6
    assert sample.problems == ("group g is offline: it has offsets, but no broker that answered lists a member",)


def test_topic_without_route_that_the_caller_named(world: FakeCluster) -> None:
    with pytest.raises(UnknownNameError, match="topic typo has no route"):
        look(world, topics=["T", "typo"])


def test_topic_without_route_that_the_group_subscribes_to(world: FakeCluster) -> None:
    world.broker("a").subscribed.append("gone")
    sample = look(world)
    assert sample.problems == ("topic gone has no route at the name server, so its queues are not known",)
    assert [route.topic for route in sample.routes.topics] == [RETRY, "T"]


def test_group_without_retry_topic(world: FakeCluster) -> None:
    del world.routes[RETRY]
    assert look(world, topics=["T"]).problems == (
        f"topic {RETRY} has no route at the name server, so its queues are not known",
    )


def test_static_topic_is_named(world: FakeCluster) -> None:
    world.static.add("T")
    assert look(world).problems == ("topic T is a static topic: its mapped queues are not shown by this route",)


def test_member_that_misses_on_one_broker(world: FakeCluster) -> None:
    del world.broker("b").members["m1"]
    sample = look(world)
    assert sample.problems == ("broker b does not list m1, which other brokers do",)
    assert [one.client_id for one in sample.members] == ["m1", "m2"]


def test_broker_that_holds_none_of_the_topics_misses_nobody(world: FakeCluster) -> None:
    world.routes["T"] = {"a": (2, 2, 6)}
    world.broker("b").members = {}
    world.broker("b").offsets = {(RETRY, 0): (0, 0)}
    for broker in world.brokers:
        broker.running["m2"] = running_info((RETRY, "b", 0))
    assert look(world).problems == ()


def test_client_id_that_is_connected_twice(world: FakeCluster) -> None:
    world.broker("a").members["m1"].append("10.0.0.9:7")
    sample = look(world)
    assert sample.problems == ("client id m1 is connected to broker a 2 times (10.0.0.1:1, 10.0.0.9:7)",)
    assert [one.client_id for one in sample.members] == ["m1", "m2"]


def test_other_ports_at_other_brokers_are_no_second_connection(world: FakeCluster) -> None:
    assert world.broker("a").members["m1"] != world.broker("b").members["m1"]
    assert look(world).problems == ()


def test_listed_member_without_connection(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.fails = {203: 1}
    sample = look(world)
    assert [(one.client_id, one.address, one.version) for one in sample.members] == [("m1", "", 0), ("m2", "", 0)]
    assert "client id m1 is in the list of members, but no broker has its connection" in sample.problems
    assert all(one.owned for one in sample.members)


def test_connected_member_that_is_not_listed(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.unlisted.add("m2")
    assert [one.client_id for one in look(world).members] == ["m1", "m2"]


def test_member_without_running_info_owns_nobody_knows_what(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.running["m2"] = 207
    sample = look(world)
    m1, m2 = sample.members
    assert (m2.owned, m2.tuning, m2.address) == (None, None, "10.0.0.2:1")
    assert m1.owned
    (problem,) = sample.problems
    assert problem.startswith("client m2 did not tell what it runs: 127.0.0.1:")
    assert "code 207 (CONSUME_MSG_TIMEOUT)" in problem
    assert requests_of(world).count(307) == 2


def test_member_that_a_broker_has_just_lost_is_asked_by_way_of_the_next(world: FakeCluster) -> None:
    del world.broker("a").running["m1"]
    sample = look(world)
    assert sample.problems == ()
    assert sample.members[0].owned
    assert requests_of(world).count(307) == 3


def test_member_that_owns_nothing_is_known_to(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.running["m2"] = running_info()
    assert look(world).members[1].owned == ()


def test_silent_members_cost_no_more_than_their_common_limit() -> None:
    crowd = two_by_two()
    ids = [f"m{number:03}" for number in range(60)]
    for broker in crowd.brokers:
        broker.members = {one: ["h:1"] for one in ids}
        broker.running = dict.fromkeys(ids, SILENT)
    with running(crowd):
        sample = look(crowd)
    assert QUICK.members_s <= sample.took_s < QUICK.members_s + QUICK.running_info_s + 3
    assert [one.owned for one in sample.members] == [None] * 60
    silent = [problem for problem in sample.problems if "did not answer GET_CONSUMER_RUNNING_INFO" in problem]
    given_up = [problem for problem in sample.problems if "was not waited for any longer: 1.5 s" in problem]
    assert len(silent) >= 16
    assert given_up
    assert len(silent) + len(given_up) == len(sample.problems) == 60


def test_queue_that_two_members_own_has_two_owners(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.running["m2"] = running_info(("T", "a", 0))
    assert look(world).owners[MessageQueue("T", "a", 0)] == ("m1", "m2")


def test_broadcasting_group_is_named(world: FakeCluster) -> None:
    world.broker("b").model = "BROADCASTING"
    assert look(world).problems == (
        "group g is broadcasting: each member reads every queue and keeps its offsets to itself",
    )


def test_slave_without_master_is_asked_and_marked(world: FakeCluster) -> None:
    world.broker("b").broker_id = 1
    sample = look(world)
    assert [one.is_master for one in sample.routes.brokers] == [True, False]
    address = world.broker("b").server.address
    assert sample.problems == (f"broker b has no master: its slave {address} was asked, which may be behind",)
    assert len(sample.offsets) == 6


def test_slave_beside_its_master_is_left_alone(world: FakeCluster) -> None:
    world.extra_addresses = {"a": {1: "127.0.0.1:1"}}
    assert look(world).problems == ()


def test_broker_without_address_is_named(world: FakeCluster) -> None:
    world.extra_addresses = {"z": {}}
    assert look(world).problems == ("broker z is listed by the name server without any address",)


def test_broker_with_an_address_that_is_none_is_named(world: FakeCluster) -> None:
    world.broker("b").broker_id = 3
    world.extra_addresses = {"b": {0: "nonsense"}}
    problems = look(world).problems
    assert any("broker b answered none of 3 requests: address 'nonsense' is not host:port" in one for one in problems)


def test_cluster_that_is_not_there(world: FakeCluster) -> None:
    with pytest.raises(UnknownNameError, match="the name server knows no cluster X, but C"):
        look(world, within="X")


def test_name_server_without_brokers() -> None:
    with running(FakeCluster([])) as cluster, pytest.raises(OutOfReachError, match="no broker at all"):
        look(cluster)


def test_cluster_limits_the_brokers_and_none_finds_the_one_with_the_group() -> None:
    both = two_by_two()
    both.brokers.append(FakeBroker("x", cluster="D"))
    with running(both):
        assert look(both, within="C").problems == ()
        assert [one.broker for one in look(both, within="C").routes.brokers] == ["a", "b"]
        assert not both.broker("x").server.requests
        assert look(both).cluster == "C"
        assert both.broker("x").server.requests
        with pytest.raises(UnknownNameError, match="no broker knows group g: x"):
            look(both, within="D")


def test_group_in_two_clusters_is_named() -> None:
    both = two_by_two()
    both.brokers[1].cluster = "D"
    with running(both):
        sample = look(both)
        assert sample.cluster == "C,D"
        assert sample.problems == ("the group lives in 2 clusters (C, D): name one of them",)
        assert look(both, within="D").cluster == "D"


def test_only_reads_are_sent(world: FakeCluster) -> None:
    look(world)
    assert set(requests_of(world)) <= {38, 105, 106, 202, 203, 208, 307}


def test_a_time_without_zone_is_refused(world: FakeCluster) -> None:
    with RocketMQAdmin(world.server.address) as admin, pytest.raises(ValueError, match="time without zone"):
        observe_group(admin, cluster=None, group="g", topics=None, at=datetime(2026, 1, 1))  # noqa: DTZ001
