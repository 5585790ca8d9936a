"""``observe_group``: what a sample holds, and which sentence each disagreement becomes."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from planner.documents.data import SAMPLE
from planner.errors import OutOfReachError, UnknownNameError
from planner.model.brokers import BrokerDisk, BrokerState, GroupSettings
from planner.model.membership import Member, OtherGroup, Subscription, UnlistedActivity
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.sources.rocketmq import RocketMQAdmin, TimeLimits, group_names, list_groups, observe_group, observe_groups
from planner.sources.rocketmq.broker_answers import BrokerRuntime
from planner.sources.rocketmq.broker_states import disk_of
from planner.sources.rocketmq.codec import Command
from tests.unit.sources.rocketmq.fake_cluster import (
    SILENT,
    FakeBroker,
    FakeCluster,
    running,
    running_info,
    two_by_two,
)
from tests.unit.sources.rocketmq.fake_server import FakeServer, Wire

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
PATIENT = TimeLimits(connect_s=60.0, request_s=60.0, running_info_s=60.0, members_s=60.0)
"""For what comes: a busy machine may stand still for some seconds."""
IMPATIENT = replace(PATIENT, request_s=2.0)
QUICK = TimeLimits(connect_s=1.0, request_s=1.0, running_info_s=1.2, members_s=1.5)
"""For what never comes: long enough for a busy machine, short enough to wait for."""
RETRY = "%RETRY%g"


@pytest.fixture
def world() -> Iterator[FakeCluster]:
    with running(two_by_two()) as cluster:
        yield cluster


def look(
    cluster: FakeCluster,
    group: str = "g",
    topics: list[str] | None = None,
    within: str | None = None,
    limits: TimeLimits = PATIENT,
    proxies: tuple[str, ...] = (),
) -> GroupSample:
    with RocketMQAdmin(cluster.server.address, limits=limits, proxies=proxies) as admin:
        return observe_group(admin, cluster=within, group=group, topics=topics, at=AT)


def requests_of(cluster: FakeCluster) -> list[int]:
    return [request.code for server in (cluster, *cluster.brokers) for request in server.server.requests]


def test_healthy_group_is_told_whole_and_without_problems(world: FakeCluster) -> None:
    before = time.monotonic()
    sample = look(world)
    took_s = time.monotonic() - before
    assert sample.problems == ()
    assert (sample.system, sample.cluster, sample.group, sample.at) == ("rocketmq", "C", "g", AT)
    assert 0 < sample.took_s <= took_s
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
    routes, group, members, brokers = [105] * 3, [203, 203, 203, 203, 208, 208], [307, 307], [26, 26, 28, 28, 201, 201]
    assert sorted(requests_of(world)) == sorted([106, *routes, *group, *members, *brokers])


def test_what_hardly_changes_is_asked_once_a_minute(world: FakeCluster) -> None:
    with RocketMQAdmin(world.server.address, limits=PATIENT) as admin:
        for _ in range(3):
            observe_group(admin, cluster=None, group="g", topics=None, at=AT)
    asked = requests_of(world)
    assert [asked.count(code) for code in (26, 28, 201, 203)] == [2, 2, 2, 6 + 2]  # 203 also for the proxies


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


def test_empty_queues_that_never_saw_a_commit_have_no_offset_and_no_lag(world: FakeCluster) -> None:
    for broker in world.brokers:
        del broker.offsets[RETRY, 0]
        broker.held = {(RETRY, 0): (0, 0)}
    sample = look(world)
    assert [(str(one.queue), one.consumer_offset, one.lag) for one in sample.offsets][:2] == [
        (f"{RETRY}/a/0", None, 0),
        (f"{RETRY}/b/0", None, 0),
    ]
    assert sample.problems == ()


def test_topic_that_never_saw_a_commit_has_its_messages_counted(world: FakeCluster) -> None:
    for broker in world.brokers:
        del broker.offsets["T", 0], broker.offsets["T", 1]
        broker.held = {("T", 0): (3, 10), ("T", 1): (0, 5), ("U", 0): (0, 99)}
    sample = look(world)
    told = [(one.broker_offset, one.consumer_offset, one.first_offset, one.lag) for one in sample.offsets[2:]]
    assert told == [(10, None, 3, None), (5, None, 0, None)] * 2
    assert sample.problems == (
        "topic T: the brokers know of no commit of the group on 4 queues, which hold 24 messages: a/0, a/1, b/0, b/1",
    )
    assert requests_of(world).count(202) == 2
    world.broker("b").fails = {202: 1}
    untold = look(world).problems
    assert untold[0].startswith("broker b: what topic T holds there is not known: 127.0.0.1:")
    assert "on 2 queues, which hold 12 messages: a/0, a/1" in untold[1]
    assert untold[2].startswith("topic T has no offsets for 2 queues, as their brokers were not asked")


@pytest.mark.parametrize(("version", "code"), [(407, 43), (441, 14), (513, 14)])
def test_offset_0_without_a_commit_is_told_from_one_with(world: FakeCluster, version: int, code: int) -> None:
    for broker in world.brokers:
        broker.version = version
        broker.offsets |= {("T", 0): (10, 0), ("T", 1): (20, 0)}
        broker.held = {("T", 0): (2, 10), ("T", 1): (0, 20)}
        broker.uncommitted = {("T", 0)}
    sample = look(world)
    assert [(one.consumer_offset, one.lag) for one in sample.offsets[2:]] == [(None, None), (0, 20)] * 2
    assert sample.problems == (
        "topic T: the brokers know of no commit of the group on 2 queues, which hold 16 messages: a/0, b/0",
    )
    assert requests_of(world).count(code) == (4 if code == 14 else 2)
    assert not {14, 43} - {code} & set(requests_of(world))


def test_offset_0_that_may_be_without_a_commit_is_unknown(world: FakeCluster) -> None:
    broker = world.broker("a")
    broker.offsets["T", 0] = (10, 0)
    broker.fails = {14: 16}
    sample = look(world)
    assert [one.consumer_offset for one in sample.offsets if one.queue == MessageQueue("T", "a", 0)] == [None]
    assert sample.problems[0].startswith("broker a: whether the group ever committed on 1 queues is not known")
    assert "code 16" in sample.problems[0]


def test_many_queues_are_counted_and_the_first_ones_named(world: FakeCluster) -> None:
    world.routes["T"]["a"] = (10, 10, 6)
    (problem,) = look(world).problems
    assert "topic T has no offsets for 8 queues" in problem
    assert problem.endswith(": a/2, a/3, a/4, a/5, a/6 and 3 more")


def test_offsets_of_queues_that_nobody_reads_are_named(world: FakeCluster) -> None:
    world.routes["T"]["a"] = (1, 2, 6)
    assert look(world).problems == ("offsets are reported for 1 queues that no consumer reads by the route: T/a/1",)


@pytest.mark.slow
def test_broker_that_does_not_answer_is_named_once_and_its_queues_are_unknown(world: FakeCluster) -> None:
    world.broker("b").fails = dict.fromkeys((38, 203, 208), SILENT)
    sample = look(world, limits=IMPATIENT)
    address = world.broker("b").server.address
    silent, retry, data = sample.problems
    assert silent.startswith(f"broker b answered none of 3 requests: {address} did not answer")
    assert retry == (
        f"topic {RETRY} has no offsets for 1 queues, as their brokers were not asked, did not answer or reported none: "
        "b/0"
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


@pytest.mark.slow
def test_group_that_cannot_be_told_from_an_unreachable_one() -> None:
    empty = two_by_two()
    for broker in empty.brokers:
        broker.members, broker.offsets = {}, {}
    empty.brokers[1].fails = {208: SILENT}
    with running(empty), pytest.raises(OutOfReachError, match="cannot say whether group g exists"):
        look(empty, limits=IMPATIENT)


def test_offline_group_keeps_its_offsets(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {}
    sample = look(world)
    assert sample.members == ()
    assert len(sample.offsets) == 6
    assert sample.problems == ("group g is offline: it has offsets, but no broker that answered lists a member",)


def test_group_without_members_is_known_to_be_unused_only_where_no_proxy_is_connected(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {}
    sample = look(world)
    assert sample.rocketmq is not None
    assert sample.rocketmq.unlisted == UnlistedActivity(proxies=())


def test_what_brokers_know_of_clients_behind_a_proxy(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {}
        broker.proxies = ["10.0.0.9:4711"]
        broker.acknowledged_per_s = 15.0
    world.broker("a").popped_ms = round((time.time() - 7) * 1000)
    sample = look(world)
    assert sample.rocketmq is not None
    activity = sample.rocketmq.unlisted
    assert activity is not None
    assert (activity.proxies, activity.acknowledged_per_s, activity.is_complete) == (("10.0.0.9",), 30.0, True)
    assert activity.last_pop_s is not None
    assert 7 <= activity.last_pop_s < 60
    assert any("the lag leaves out what clients of a proxy hold" in problem for problem in sample.problems)


def test_broker_that_does_not_tell_leaves_the_members_unknown(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {}
    world.broker("b").fails = {345: 1}
    sample = look(world)
    assert sample.rocketmq is not None
    assert sample.rocketmq.unlisted == UnlistedActivity(proxies=(), is_complete=False)
    assert "whether clients behind a proxy consume is not known for certain" in sample.problems[-1]


def test_account_without_a_right_on_the_cluster_knows_of_no_acknowledgement(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {}
        broker.fails = {315: 16}
    sample = look(world)
    assert sample.rocketmq is not None
    assert sample.rocketmq.unlisted == UnlistedActivity(proxies=(), is_complete=False)
    assert sample.problems == ("group g is offline: it has offsets, but no broker that answered lists a member",)


def test_members_beside_a_proxy_may_not_be_all(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.proxies = ["10.0.0.9:4711"]
        broker.acknowledged_per_s = 15.0
    sample = look(world)
    assert len(sample.members) == 2
    assert sample.rocketmq is not None
    assert sample.rocketmq.unlisted == UnlistedActivity(("10.0.0.9",), acknowledged_per_s=30.0)
    assert 345 not in requests_of(world)  # it would answer from the members' own subscription


GRPC = "host-1@4711@0@rb0bdf00"


def test_no_grpc_client_is_asked_what_it_runs(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {GRPC: ["10.0.0.1:1"]}
        broker.subscribed = ["T"]
    sample = look(world)
    assert sample.members == (Member(GRPC, "10.0.0.1:1", "JAVA", 0, owned=(), protocol="grpc"),)
    assert 307 not in requests_of(world)


def test_remoting_client_with_an_id_like_that_is_asked(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {GRPC: ["10.0.0.1:1"]}
        broker.subscribed = ["T", RETRY]
    assert [member.client_id for member in look(world).members if not member.is_grpc] == [GRPC]
    assert 307 in requests_of(world)


REMOTING = "10.0.0.3@4712#17"


def test_proxies_list_the_members_that_no_broker_knows(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members = {}
    first = FakeBroker("p", members={GRPC: ["10.0.0.1:1"]}, subscribed=["T"])
    second = FakeBroker("p", members={GRPC: ["10.0.0.1:1"], f"{GRPC}2": ["10.0.0.2:1"]}, subscribed=["T"])
    with FakeServer(first.script) as one, FakeServer(second.script) as other:
        sample = look(world, proxies=(one.address, other.address))
        assert [request.code for request in (*one.requests, *other.requests)] == [203, 203], "nothing else is asked"
    assert [(member.client_id, member.owned) for member in sample.members] == [(GRPC, ()), (f"{GRPC}2", ())]
    assert sample.rocketmq is not None
    assert [listing.clients for listing in sample.rocketmq.proxies] == [(GRPC,), (GRPC, f"{GRPC}2")]
    assert not any("offline" in problem for problem in sample.problems)
    assert 307 not in requests_of(world)


@pytest.mark.slow
def test_proxy_that_does_not_answer_is_named_and_its_members_are_unknown(world: FakeCluster) -> None:
    silent = FakeBroker("p", fails={203: SILENT})
    with FakeServer(silent.script) as server:
        sample = look(world, proxies=(server.address,), limits=IMPATIENT)
    assert sample.rocketmq is not None
    assert [listing.clients for listing in sample.rocketmq.proxies] == [None]
    assert any(f"proxy {server.address} does not list the group's members" in problem for problem in sample.problems)
    assert len(sample.members) == 2, "what the brokers list stays"


def test_remoting_client_of_a_proxy_is_listed_and_what_it_owns_is_unknown(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.members, broker.offsets = {}, {}
    proxy = FakeBroker("p", members={REMOTING: ["10.0.0.3:1"]}, subscribed=["T", RETRY])
    with FakeServer(proxy.script) as server:
        sample = look(world, proxies=(server.address,))
    (member,) = sample.members
    assert (member.identity, member.owned, sample.cluster) == (REMOTING, None, "C"), "a group without a commit yet"
    assert any("relays no question" in problem for problem in sample.problems)


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


def test_members_come_from_the_other_request_where_connections_are_refused(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.fails = {203: 1}
    sample = look(world)
    assert [(one.client_id, one.address, one.version) for one in sample.members] == [("m1", "", 0), ("m2", "", 0)]
    assert "client id m1 is in the list of members, but no broker has its connection" in sample.problems
    assert all(one.owned for one in sample.members)


def test_member_without_running_info_owns_nobody_knows_what(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.running["m2"] = 207
    sample = look(world)
    m1, m2 = sample.members
    assert (m2.owned, m2.tuning, m2.address) == (None, None, "10.0.0.2:1")
    assert m1.owned
    (problem,) = sample.problems
    assert problem.startswith("client m2 did not report what it runs: 127.0.0.1:")
    assert "code 207 (CONSUME_MSG_TIMEOUT)" in problem
    assert requests_of(world).count(307) == 2


def test_member_that_a_broker_has_just_lost_is_asked_by_way_of_the_next(world: FakeCluster) -> None:
    del world.broker("a").running["m1"]
    sample = look(world)
    assert sample.problems == ()
    assert sample.members[0].owned
    assert requests_of(world).count(307) == 3


def test_member_is_asked_by_way_of_the_next_broker_when_the_first_has_gone(world: FakeCluster) -> None:
    def gone(request: Command, wire: Wire) -> None:
        if request.code == 307:
            wire.close()
        else:
            world.broker("a").script(request, wire)

    world.broker("a").server.script = gone
    sample = look(world)
    assert sample.problems == ()
    assert [one.owned is not None for one in sample.members] == [True, True]


def test_member_that_owns_nothing_is_known_to(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.running["m2"] = running_info()
    assert look(world).members[1].owned == ()


@pytest.mark.slow
def test_silent_members_cost_no_more_than_their_common_limit() -> None:
    crowd = two_by_two()
    ids = [f"m{number:03}" for number in range(60)]
    for broker in crowd.brokers:
        broker.members = {one: ["h:1"] for one in ids}
        broker.running = dict.fromkeys(ids, SILENT)
    with running(crowd):
        sample = look(crowd, limits=QUICK)
    assert [one.owned for one in sample.members] == [None] * 60
    silent = [problem for problem in sample.problems if "did not answer GET_CONSUMER_RUNNING_INFO" in problem]
    given_up = [problem for problem in sample.problems if "was not asked any more" in problem]
    # Two brokers, each with 8 places of 1.2 s, until 8 times 1.5 s are lost: two rounds, and whoever just began. Where
    # the machine stands still meanwhile, the first round alone may lose that much.
    assert 16 <= len(silent) <= 46
    assert len(silent) + len(given_up) == len(sample.problems) == 60


def test_silent_process_that_is_a_member_of_many_groups_is_waited_for_once() -> None:
    crowd = two_by_two()
    groups = [f"g{number}" for number in range(30)]
    for broker in crowd.brokers:
        broker.groups = groups
        broker.running["m2"] = 207
    with running(crowd), RocketMQAdmin(crowd.server.address, limits=PATIENT) as admin:
        found = dict(observe_groups(admin, groups=None, cluster=None, at=AT))
    assert sorted(found) == sorted(groups)
    assert all(isinstance(one, GroupSample) and one.members[1].owned is None for one in found.values())
    asked = [request for broker in crowd.brokers for request in broker.server.requests if request.code == 307]
    assert sum(request.fields["clientId"] == "m2" for request in asked) <= 16


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
    assert set(requests_of(world)) <= {26, 28, 105, 106, 201, 202, 203, 208, 307}


def test_dead_letters_are_counted_where_there_are_any(world: FakeCluster) -> None:
    assert look(world).dead_letters == 0
    world.routes["%DLQ%g"] = {"a": (1, 1, 2), "b": (1, 1, 2)}
    world.broker("a").held["%DLQ%g", 0] = (2, 7)
    sample = look(world)
    assert (sample.dead_letters, sample.problems) == (5, ())
    world.broker("b").fails = {202: 16}
    sample = look(world)
    assert sample.dead_letters is None
    assert sample.problems[0].startswith("how many messages are in %DLQ%g is not known: 127.0.0.1:")


def test_what_members_want_and_brokers_are_set_to_is_told(world: FakeCluster) -> None:
    told = running_info(("T", "a", 0))
    told["subscriptionSet"] = [{"topic": "T", "subString": "red || blue", "expressionType": "TAG"}]
    for broker in world.brokers:
        broker.running["m1"] = told
    world.broker("b").ahead_s = 60
    before = time.monotonic()
    sample = look(world)
    took_s = time.monotonic() - before  # nobody knows when within it the clock was read
    assert sample.members[0].subscriptions == (Subscription("T", "red || blue"),)
    assert sample.rocketmq is not None
    assert sample.rocketmq.message_models == ("CLUSTERING",)
    first, second = sample.rocketmq.brokers
    assert (first.broker, first.version, first.role, first.permission) == ("a", 513, "ASYNC_MASTER", 6)
    assert first.settings == GroupSettings(True, True, True, 1, 3, in_order=False)
    low, high = first.clock_ahead_s or (9, 9)
    assert low <= 0 <= high < low + 2 + took_s
    low, high = second.clock_ahead_s or (0, 0)
    assert low <= 60 <= high < low + 2 + took_s
    (problem,) = sample.problems
    assert problem.startswith(f"the clock of broker b is {low:.1f} to {high:.1f} s ahead of ours")


@pytest.mark.parametrize(
    ("figures", "settings", "disk"),
    [
        ({"commitLogDiskRatio": "0.21", "consumeQueueDiskRatio": "0.4"}, {}, BrokerDisk(0.4, 0.85, 0.90)),
        ({"commitLogDiskRatio": "0.21"}, {"diskSpaceCleanForciblyRatio": "50"}, BrokerDisk(0.21, 0.5, 0.90)),
        (
            {"commitLogDiskRatio": "1.0"},
            {"diskSpaceCleanForciblyRatio": "99", "diskSpaceWarningLevelRatio": "10"},
            BrokerDisk(1.0, 0.85, 0.35),
        ),
        ({"commitLogDiskRatio": "0.5"}, {"cleanFileForciblyEnable": "false"}, BrokerDisk(0.5, None, 0.90)),
        ({"commitLogDiskRatio": "-1.0"}, {}, None),
        ({"commitLogDiskRatio": "NaN"}, {}, None),
        ({"commitLogDiskRatio": "much"}, {}, None),
        ({}, {}, None),
    ],
)
def test_how_full_a_brokers_disk_is(
    figures: Mapping[str, str], settings: Mapping[str, str], disk: BrokerDisk | None
) -> None:
    assert disk_of(BrokerRuntime(513, "V5_5_0", None, figures), settings) == disk


def test_everything_told_survives_a_file(world: FakeCluster) -> None:
    world.broker("b").ahead_s = -60
    sample = look(world)
    assert "behind ours" in sample.problems[0]
    assert SAMPLE.parse(SAMPLE.dump(sample), "sample.json") == sample


def test_broker_that_keeps_its_settings_to_itself_is_named(world: FakeCluster) -> None:
    world.broker("a").fails = {26: 16, 28: 16, 201: 16}
    sample = look(world)
    assert sample.rocketmq is not None
    assert sample.rocketmq.brokers[0] == BrokerState("a", version=513)
    told = [problem.partition(": ")[0] for problem in sample.problems]
    assert told == [f"broker a does not report its {what}" for what in ("clock", "settings", "groups' settings")]


def test_many_groups_share_what_is_the_same_for_all() -> None:
    crowd = two_by_two()
    groups = [f"g{number}" for number in range(20)]
    for broker in crowd.brokers:
        broker.groups = groups
    with running(crowd), RocketMQAdmin(crowd.server.address, limits=PATIENT) as admin:
        found = dict(observe_groups(admin, groups=None, cluster=None, at=AT))
    assert sorted(found) == sorted(groups)
    counts = Counter(requests_of(crowd))
    shared = {106: 1, 206: 1, 26: 2, 28: 2, 43: 2, 201: 2}
    assert {code: counts[code] for code in shared} == shared
    assert counts[105] == 2 + 20  # topics T and %RETRY%g, which members want, once; each group's own retry topic
    assert (counts[203], counts[208], counts[307]) == (40 + 2 + 20, 40, 40)  # the proxies, and whom clients serve, once


def test_other_groups_of_the_same_clients_are_listed(world: FakeCluster) -> None:
    """Red where nobody asks: then one client that rebalances for two groups stays unknown."""
    ((one, at), *_) = [(name, addresses[0]) for name, addresses in world.broker("a").members.items()]
    for broker in world.brokers:
        broker.groups = ["g", "mails", "bills", "apart"]
        broker.others = {"mails": {one: [at], "m7": ["10.0.0.7:1"]}, "bills": {}, "apart": {one: ["10.9.9.9:1"]}}
    before = requests_of(world).count(203)
    sample = look(world)
    assert sample.rocketmq is not None
    assert (sample.rocketmq.other_groups, sample.problems) == ((OtherGroup("mails", (one,)),), ())
    asked = requests_of(world).count(203) - before
    assert asked == 4 + 4, "one broker is asked for its groups that lists all members"


def test_ids_that_one_consumer_made_up_are_of_no_other_group(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.groups = ["g", "mails"]
        broker.members = {"10.0.0.1@7#1234567": ["10.0.0.1:1"]}
    sample = look(world)
    assert sample.rocketmq is not None
    assert (sample.rocketmq.other_groups, requests_of(world).count(203)) == ((), 4)


def test_other_groups_that_brokers_do_not_show_are_counted(world: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.sources.rocketmq.other_groups.MOST_GROUPS", 2)
    for broker in world.brokers:
        broker.groups = ["g", "mails", "bills"]
    assert [problem for problem in look(world).problems if "does not show the members" in problem] == [
        "broker a does not show the members of 1 of 3 groups, which the same clients may serve: planner doctor --all "
        "reads all"
    ]


def test_failure_of_one_group_is_its_own(world: FakeCluster) -> None:
    for broker in world.brokers:
        broker.groups = ["g"]
        broker.members = {}
    with RocketMQAdmin(world.server.address, limits=PATIENT) as admin:
        found = dict(observe_groups(admin, groups=["typo", "g"], cluster="C", at=AT))
        with pytest.raises(UnknownNameError, match="knows no cluster X"):
            next(observe_groups(admin, groups=["g"], cluster="X", at=AT))
    assert isinstance(found["typo"], UnknownNameError)
    assert isinstance(found["g"], GroupSample)


@pytest.mark.slow
def test_silent_broker_costs_a_look_at_many_groups_a_bounded_time() -> None:
    crowd = two_by_two()
    groups = [f"g{number}" for number in range(50)]
    for broker in crowd.brokers:
        broker.groups = groups
    crowd.broker("b").fails = dict.fromkeys((26, 28, 38, 43, 201, 202, 203, 208), SILENT)
    # Four seconds: the broker that does answer, a thread of this process, may stand still for one on a busy machine.
    with running(crowd), RocketMQAdmin(crowd.server.address, limits=replace(PATIENT, request_s=4.0)) as admin:
        found = dict(observe_groups(admin, groups=groups, cluster=None, at=AT))
    assert len(found) == 50
    for sample in found.values():
        assert isinstance(sample, GroupSample)
        assert [problem for problem in sample.problems if problem.startswith("broker b")]
    # 8 places, 8 times 4 s to lose at 4 s each: all of 250 requests would have been 125 s.
    assert len(crowd.broker("b").server.requests) <= 24


def test_groups_of_rocketmq_itself_are_left_out(world: FakeCluster) -> None:
    world.broker("a").groups = ["g", "CID_RMQ_SYS_x", "CID_ONSAPI_PULL", "b"]
    with RocketMQAdmin(world.server.address, limits=PATIENT) as admin:
        assert group_names(admin) == ("b", "g")
        for broker in world.brokers:
            broker.fails = {43: 16, 201: 16}
        with RocketMQAdmin(world.server.address) as other, pytest.raises(OutOfReachError, match="which groups there"):
            group_names(other, "C")


def test_a_broker_that_does_not_list_its_groups_is_named(world: FakeCluster) -> None:
    world.broker("a").groups = ["g"]
    world.broker("b").fails = {43: 16, 201: 16}
    with RocketMQAdmin(world.server.address, limits=PATIENT) as admin:
        told = list_groups(admin)
    assert told.names == ("g",)
    settings, commits = told.problems
    assert settings.startswith("broker b does not report which groups have settings, so some may be missing: ")
    assert commits.startswith("broker b does not report which groups committed, so some may be missing: ")


def test_a_time_without_zone_is_refused(world: FakeCluster) -> None:
    with RocketMQAdmin(world.server.address) as admin, pytest.raises(ValueError, match="a time with its zone"):
        observe_group(admin, cluster=None, group="g", topics=None, at=datetime(2026, 1, 1))  # noqa: DTZ001
