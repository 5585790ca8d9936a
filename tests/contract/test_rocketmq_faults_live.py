"""What goes wrong while groups are read: with real brokers and clients, each named and bounded."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.samples import GroupSample
from planner.sources.rocketmq import (
    RocketMQAdmin,
    TimeLimits,
    broker_states,
    group_names,
    observe_group,
    observe_groups,
)
from planner.sources.rocketmq.offset_files import read_broadcast_offsets
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import GHOSTS_GONE_S, NEW, OLD, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, QueueCurve, RocketMQLoad

pytestmark = pytest.mark.cluster

QUICK = {"poll-ms": 1000, "heartbeat-ms": 2000, "persist-ms": 500}
LIMITS = TimeLimits(connect_s=5.0, request_s=8.0, running_info_s=8.0)
"""Who runs answers in that time on a busy machine, too."""
MANY = [f"shared-{number}" for number in range(3)]
DELETE_GROUP = 207


@dataclass
class World:
    """Two brokers. Group ``shop`` with a process of its own, and three groups that share two processes."""

    cluster: RocketMQCluster
    load: RocketMQLoad
    shop: ConsumerProcess
    first: ConsumerProcess
    second: ConsumerProcess

    @contextmanager
    def admin(self, name_servers: str | None = None) -> Iterator[RocketMQAdmin]:
        with RocketMQAdmin(name_servers or self.cluster.name_server, limits=LIMITS) as admin:
            yield admin

    def look(self, group: str = "shop", name_servers: str | None = None) -> GroupSample:
        with self.admin(name_servers) as admin:
            return observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))

    def look_at(self, groups: list[str] | None = None) -> dict[str, GroupSample | PlannerError]:
        with self.admin() as admin:
            return dict(observe_groups(admin, groups=groups, cluster=None, at=datetime.now(UTC)))

    def await_whole(self, group: str = "shop", members: int = 1) -> GroupSample:
        def is_whole(sample: GroupSample) -> bool:
            owned = {queue for member in sample.members for queue in member.owned or ()}
            return len(sample.members) == members and owned == set(sample.routes.read_queues) and not sample.problems

        return awaited(lambda: self.look(group), is_whole)


def awaited(look: Callable[[], object], is_met: Callable[..., object], within_s: float = GHOSTS_GONE_S) -> "object":
    """Return what ``look`` gives once it is as wanted."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            found = look()
            if is_met(found):
                return found
        except (OutOfReachError, UnknownNameError) as error:
            found = error
        assert time.monotonic() < deadline, f"not met in {within_s} s: {found}"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with RocketMQCluster.start(NEW, brokers=2) as cluster:
        for topic in ("orders", "lost", "all"):
            cluster.create_topic(topic, 2)
        load = cluster.load()
        load.start_producer([curve(topic, broker) for topic in ("orders", "lost", "all") for broker in "ab"]).wait(300)
        lines = [{"group": group, "topics": "orders", "threads": 1, **QUICK} for group in MANY]
        world = World(
            cluster,
            load,
            load.start_consumer(group="shop", topics=["orders"], instance="s1", options=QUICK, wait_ready=False),
            load.start_ward([{**line, "instances": "w1"} for line in lines], wait_ready=False),
            load.start_ward([{**line, "instances": "w2"} for line in lines], wait_ready=False),
        )
        for process in (world.shop, world.first, world.second):
            process.await_ready()
        world.await_whole()
        for group in MANY:
            world.await_whole(group, members=2)
        yield world


def curve(topic: str, broker: str) -> QueueCurve:
    return QueueCurve(topic, f"broker-{broker}", 0, ((0, 5), (1, 5)))


def test_frozen_process_is_unknown_in_all_its_groups_and_other_groups_are_whole(world: World) -> None:
    world.second.freeze()
    try:
        found = world.look_at()
    finally:
        world.second.resume()
    assert {"shop", *MANY} <= set(found)
    for group in MANY:
        sample = found[group]
        assert isinstance(sample, GroupSample)
        # Its partner was seen not to answer either in that time (docs/rocketmq-client.md): nothing is claimed of it.
        unknown = {one.client_id for one in sample.members if one.owned is None}
        assert "127.0.0.1@w2" in unknown
        for client_id in unknown:
            assert [one for one in sample.problems if f"{client_id} did not report what it runs" in one]
        assert {one.queue for one in sample.offsets} == set(sample.routes.read_queues)
    shop = found["shop"]
    assert isinstance(shop, GroupSample)
    assert shop.problems == ()
    assert len(shop.members) == 1


def test_group_deleted_in_between_is_its_own_affair(world: World) -> None:
    gone = world.load.start_consumer(group="doomed", topics=["orders"], instance="d1", options=QUICK)
    awaited(lambda: world.look("doomed"), lambda sample: any(one.consumer_offset for one in sample.offsets))
    gone.stop()
    awaited(lambda: world.cluster.members("doomed"), lambda listed: not any(listed.values()))
    with world.admin() as admin:
        listed = group_names(admin)
        assert "doomed" in listed
        for broker in world.cluster.brokers:
            fields = {"groupName": "doomed", "cleanOffset": "true"}
            remoting.ask_or_raise(broker.address, DELETE_GROUP, fields)
        found = dict(observe_groups(admin, groups=listed, cluster=None, at=datetime.now(UTC)))
    assert isinstance(found["doomed"], UnknownNameError)
    assert all(isinstance(found[group], GroupSample) for group in ("shop", *MANY))


def test_wrong_clock_is_told_with_its_amount(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours is set wrong instead of the broker's: only the difference counts."""
    monkeypatch.setattr(broker_states, "now_s", lambda: time.time() - 60)
    sample = world.look()
    assert sample.rocketmq is not None
    for state in sample.rocketmq.brokers:
        low, high = state.clock_ahead_s or (0.0, 0.0)
        assert low <= 60 <= high
    told = [problem for problem in sample.problems if "s ahead of ours" in problem]
    assert len(told) == 2


def test_dead_letters_are_counted(world: World) -> None:
    options = {**QUICK, "fail": "true", "max-reconsume": 0}
    failing = world.load.start_consumer(group="fails", topics=["lost"], instance="f1", options=options)
    sent = sum(world.cluster.produced("lost").values())
    awaited(lambda: world.look("fails").dead_letters, lambda count: count == sent)
    failing.kill()


@pytest.mark.parametrize("version", [OLD, NEW])
def test_offsets_of_a_broadcasting_member_are_read_from_its_file(world: World, version: str) -> None:
    group = f"cast-{version.replace('.', '-')}"
    load = world.cluster.load(version)
    member = load.start_consumer(group=group, topics=["all"], instance="b1", options={**QUICK, "broadcast": "true"})
    sent = sum(world.cluster.produced("all").values())
    home = member.delivery_log.parent
    (path,) = awaited(lambda: list(home.glob(".rocketmq_offsets/*/*/offsets.json")), len)
    assert path.parts[-3:-1] == ("127.0.0.1@b1", group)
    awaited(lambda: sum(offset for _, offset in read_broadcast_offsets(Path(path))), lambda read: read == sent)
    member.stop()
    produced = world.cluster.produced("all")
    told = {(queue.broker, queue.queue_id): offset for queue, offset in read_broadcast_offsets(Path(path))}
    assert {queue: count for queue, count in produced.items() if count} == {
        queue: offset for queue, offset in told.items() if offset
    }


class _Page(BaseHTTPRequestHandler):
    """Answers every request, also one that is none, with a page."""

    def handle_one_request(self) -> None:
        self.rfile.readline(64)
        self.wfile.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        self.close_connection = True


def test_name_server_that_answers_garbage_is_passed_over_or_named(world: World) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as page:
        thread = threading.Thread(target=page.serve_forever)
        thread.start()
        try:
            wrong = f"127.0.0.1:{page.server_address[1]}"
            assert world.look(name_servers=f"{wrong};{world.cluster.name_server}").members
            with pytest.raises(
                OutOfReachError, match=rf"no name server answers: {wrong} answered .*something else than RocketMQ"
            ):
                world.look(name_servers=wrong)
        finally:
            page.shutdown()
            thread.join()


def test_frozen_master_leaves_the_rest_of_every_group(world: World) -> None:
    broker = world.cluster.broker("broker-b")
    broker.process.freeze()
    try:
        found = world.look_at(["shop", *MANY])
    finally:
        broker.process.resume()
    for group, sample in found.items():
        assert isinstance(sample, GroupSample), f"{group}: {sample}"
        assert {one.queue.broker for one in sample.offsets} == {"broker-a"}
        assert [problem for problem in sample.problems if problem.startswith("broker broker-b")]
        assert sample.members


def test_broker_restarted_during_collection_is_named_and_comes_back(world: World) -> None:
    broker = world.cluster.broker("broker-b")
    broker.kill()
    restart = threading.Thread(target=broker.start)
    restart.start()
    seen: list[GroupSample | PlannerError] = []
    while restart.is_alive():
        seen += world.look_at(["shop", MANY[0]]).values()
    restart.join()
    assert seen
    samples = [one for one in seen if isinstance(one, GroupSample)]
    assert all(isinstance(one, GroupSample | OutOfReachError) for one in seen)
    for sample in samples:
        brokers = {one.broker for one in sample.routes.brokers}
        is_whole = {one.queue.broker for one in sample.offsets} == {"broker-a", "broker-b"}
        assert is_whole or "broker-b" not in brokers or [one for one in sample.problems if "broker-b" in one]
    world.await_whole()
