"""``RocketMQAdmin``: name servers in turn, kept connections, and answers that are refusals."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from planner.errors import BadInputError, OutOfReachError, UnknownNameError
from planner.model.queues import MessageQueue
from planner.sources.rocketmq import (
    AnswerError,
    ConnectionEndedError,
    ProtocolError,
    RocketMQAdmin,
    TimeLimits,
    codec,
)
from planner.sources.rocketmq.answers import ClusterInfo
from planner.sources.rocketmq.broker_connections import AT_ONCE, RELAYED_AT_ONCE
from planner.sources.rocketmq.codec import Command
from tests.unit.sources.rocketmq import samples
from tests.unit.sources.rocketmq.fake_server import FakeServer, Script, Wire

PATIENT = TimeLimits(connect_s=60.0, request_s=60.0, running_info_s=60.0)
"""For what comes: a busy machine may stand still for some seconds."""
IMPATIENT = replace(PATIENT, request_s=3.0)
"""Long enough for an answer, short enough to wait for one that never comes."""


def says(body: bytes = b"", code: int = 0, remark: str = "") -> Script:
    return lambda request, wire: wire.answer(request, code=code, body=body, remark=remark)


def nothing(_: Command, __: Wire) -> None:
    """Never answer."""


@contextmanager
def broker(script: Script, limits: TimeLimits | None = None) -> Iterator[tuple[FakeServer, RocketMQAdmin]]:
    """Run a broker, and a client whose name server nobody needs."""
    with FakeServer(script) as server, RocketMQAdmin("127.0.0.1:1", limits=limits or PATIENT) as admin:
        yield server, admin


@contextmanager
def name_servers(*scripts: Script, limits: TimeLimits = PATIENT) -> Iterator[tuple[list[FakeServer], RocketMQAdmin]]:
    """Run name servers, and a client that knows all of them."""
    with ExitStack() as stack:
        servers = [stack.enter_context(FakeServer(script)) for script in scripts]
        admin = stack.enter_context(RocketMQAdmin([server.address for server in servers], limits=limits))
        yield servers, admin


@pytest.fixture
def dead() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    yield address


def test_recorded_answers_come_out_typed() -> None:
    def script(request: Command, wire: Wire) -> None:
        names = {106: "106_cluster_info", 105: "105_route", 38: "38_members", 203: "203_connections"}
        names |= {208: "208_consume_stats", 307: "307_running_info"}
        wire.answer(request, body=samples.recorded("5.5.0", names[request.code]).body)

    with FakeServer(script) as server, RocketMQAdmin(server.address) as admin:
        assert len(admin.cluster_info().brokers) == 2
        assert len(admin.topic_route("TopicA").topic.read_queues) == 8
        assert len(admin.member_ids(server.address, "GroupA")) == 3
        connections = admin.connections(server.address, "GroupA")
        assert connections is not None
        assert len(connections.connections) == 3
        assert len(admin.consume_stats(server.address, "GroupA", "TopicA").offsets) == 9
        assert len(admin.running_info(server.address, "GroupA", "c1").owned) == 7
        assert server.connections == 1
        assert [request.fields.get("topic") for request in server.requests] == [
            None,
            "TopicA",
            *([None] * 2),
            "TopicA",
            None,
        ]


@pytest.mark.parametrize("spelling", ["{0};{1}", " {0} , {1} ;"])
def test_name_servers_in_one_text(dead: str, spelling: str) -> None:
    with FakeServer(says(samples.CLUSTER_INFO)) as server:
        admin = RocketMQAdmin(spelling.format(dead, server.address))
        assert [str(one) for one in admin.name_servers] == [dead, server.address]
        admin.close()


@pytest.mark.parametrize("wrong", ["", ";", [], ["host"], "host:1;other"])
def test_name_servers_that_are_none_are_refused(wrong: str | list[str]) -> None:
    with pytest.raises(BadInputError):
        RocketMQAdmin(wrong)


@pytest.mark.slow
def test_next_name_server_is_asked_when_one_is_gone_and_stays_preferred() -> None:
    with name_servers(nothing, nothing, says(samples.CLUSTER_INFO), limits=IMPATIENT) as ((gone, mute, good), admin):
        gone.stop()
        assert len(admin.cluster_info().brokers) == 2
        assert (len(mute.requests), len(good.requests)) == (1, 1)
        admin.cluster_info()
        assert (len(mute.requests), len(good.requests)) == (1, 2)


@pytest.mark.parametrize("code", [2, 3, 14, 1500])
def test_next_name_server_is_asked_when_one_is_busy_or_none_at_all(code: int) -> None:
    with name_servers(says(code=code), says(samples.CLUSTER_INFO)) as (_, admin):
        assert len(admin.cluster_info().brokers) == 2


@pytest.mark.slow
def test_garbage_from_one_name_server_leads_to_the_next() -> None:
    with name_servers(lambda _, wire: wire.send(b"HTTP/1.1"), says(samples.CLUSTER_INFO)) as (_, admin):
        assert len(admin.cluster_info().brokers) == 2


@pytest.mark.slow
def test_no_name_server_answers(dead: str) -> None:
    with (
        FakeServer(nothing) as mute,
        RocketMQAdmin([dead, mute.address], limits=IMPATIENT) as admin,
        pytest.raises(OutOfReachError) as caught,
    ):
        admin.cluster_info()
    message = str(caught.value)
    assert message.startswith("no name server answers: ")
    assert message.count(dead) == 1, "each failure once"
    assert mute.address in message
    assert "refused" in message
    assert "did not answer" in message
    assert caught.value.exit_code == 3


@pytest.mark.slow
def test_a_name_server_comes_back(dead: str) -> None:
    with FakeServer(says(samples.CLUSTER_INFO)) as good, RocketMQAdmin([good.address, dead], limits=IMPATIENT) as admin:
        admin.cluster_info()
        good.script = nothing
        with pytest.raises(OutOfReachError):
            admin.cluster_info()
        good.script = says(samples.CLUSTER_INFO)
        admin.cluster_info()


def test_topic_that_no_name_server_knows() -> None:
    refusal = samples.recorded("5.5.0", "105_no_topic")
    with FakeServer(says(code=refusal.code, remark=refusal.remark)) as server, RocketMQAdmin(server.address) as admin:
        with pytest.raises(UnknownNameError, match=f"topic Nope has no route at the name server .{server.address}."):
            admin.topic_route("Nope")
        assert len(server.requests) == 1


def test_no_permission_for_a_topic_is_not_taken_for_a_missing_one() -> None:
    with name_servers(says(code=16, remark="no")) as ((server,), admin):
        with pytest.raises(AnswerError, match=r"code 16 \(NO_PERMISSION\), expected 0, and says: no; grant"):
            admin.topic_route("T")
        assert len(server.requests) == 1


@pytest.mark.parametrize("version", samples.VERSIONS)
def test_offline_group_in_the_words_of_real_brokers(version: str) -> None:
    def script(request: Command, wire: Wire) -> None:
        name = {38: "38_no_members", 203: "203_offline", 208: "208_unknown"}[request.code]
        real = samples.recorded(version, name)
        wire.answer(request, code=real.code, body=real.body, remark=real.remark)

    with broker(script) as (server, admin):
        assert admin.member_ids(server.address, "Nope") == ()
        assert admin.connections(server.address, "Nope") is None
        assert admin.consume_stats(server.address, "Nope").offsets == ()


def test_other_system_errors_are_not_taken_for_an_offline_group() -> None:
    with broker(says(code=1, remark="NullPointerException\n\tat x")) as (server, admin):
        with pytest.raises(AnswerError) as caught:
            admin.member_ids(server.address, "g")
        address = server.address
    assert caught.value.code == 1
    assert caught.value.remark == "NullPointerException\n\tat x"
    assert str(caught.value) == (
        f"{address} answered GET_CONSUMER_LIST_BY_GROUP (38) for consumerGroup g with code 1 (SYSTEM_ERROR), "
        f"expected 0, and says: NullPointerException; look into that server's log"
    )


def test_a_long_remark_is_cut_and_an_unknown_code_shown() -> None:
    with broker(says(code=4711, remark="x" * 500)) as (server, admin):
        with pytest.raises(AnswerError, match=r"4711 \(unknown to us\)") as caught:
            admin.consume_stats(server.address, "g")
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"offsetTable":{"T":1}}'])
def test_a_body_that_cannot_be_read_is_a_protocol_error_that_names_the_request(body: bytes) -> None:
    with broker(says(body)) as (server, admin):
        with pytest.raises(ProtocolError) as caught:
            admin.consume_stats(server.address, "g")
        assert server.connections == 1
    assert f"{server.address} answered GET_CONSUME_STATS (208) for consumerGroup g with a body" in str(caught.value)
    assert "(ordinal 513)" in str(caught.value)
    assert (caught.value.exit_code, caught.value.can_retry) == (3, False)


def test_a_kept_connection_that_ended_is_replaced() -> None:
    with broker(says(samples.MEMBERS)) as (server, admin):
        for _ in range(3):
            assert len(admin.member_ids(server.address, "g")) == 3
            server.close_connections()
        assert server.connections == 3


def test_a_connection_that_ends_under_a_request_is_tried_once_more() -> None:
    closes = [False, True, False]

    def script(request: Command, wire: Wire) -> None:
        if closes.pop(0):
            wire.close()
        else:
            wire.answer(request, body=samples.MEMBERS)

    with broker(script) as (server, admin):
        admin.member_ids(server.address, "g")
        assert len(admin.member_ids(server.address, "g")) == 3
        assert (server.connections, len(server.requests)) == (2, 3)


def test_a_new_connection_that_ends_is_not_tried_again() -> None:
    with broker(lambda _, wire: wire.close()) as (server, admin):
        with pytest.raises(OutOfReachError, match="ended while"):
            admin.member_ids(server.address, "g")
        assert server.connections == 1


def test_go_away_on_a_kept_connection_leads_to_a_new_one() -> None:
    codes = [0, 1500, 0]
    with broker(lambda request, wire: wire.answer(request, codes.pop(0), samples.MEMBERS)) as (server, admin):
        assert [len(admin.member_ids(server.address, "g")) for _ in range(2)] == [3, 3]
        assert server.connections == 2


def test_many_threads_share_one_connection() -> None:
    with broker(says(samples.MEMBERS)) as (server, admin), ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: admin.member_ids(server.address, "g"), range(200)))
        assert [len(ids) for ids in answers] == [3] * 200
        assert server.connections == 1


@pytest.mark.slow
def test_those_who_wait_for_a_dead_host_share_one_time_out() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = f"127.0.0.1:{full.getsockname()[1]}"
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        limits, together = replace(PATIENT, connect_s=1.0), threading.Barrier(8)

        def ask() -> BaseException | None:
            together.wait()
            with pytest.raises(OutOfReachError) as caught:
                admin.member_ids(address, "g")
            return caught.value

        with RocketMQAdmin("127.0.0.1:1", limits=limits) as admin, ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(ask) for _ in range(8)]
            failures = {id(error): error for one in asked if (error := one.result())}
            # Not always one: a thread that a busy machine holds up for that second begins after the time-out.
            assert len(failures) < 4
            with pytest.raises(OutOfReachError) as later:
                admin.member_ids(address, "g")
            assert id(later.value) not in failures, "a later one tries anew"
        for filler in fillers:
            filler.close()


@pytest.mark.slow
def test_running_info_waits_longer_than_other_requests() -> None:
    def slow(request: Command, wire: Wire) -> None:
        if request.code == 307:
            time.sleep(1.5)
            wire.answer(request, body=samples.RUNNING_INFO)

    with broker(slow, replace(PATIENT, request_s=1.0)) as (server, admin):
        assert admin.running_info(server.address, "g", "c").owned
        with pytest.raises(OutOfReachError, match=r"within 1 s"):
            admin.member_ids(server.address, "g")


def test_leaving_closes_everything_and_a_later_request_opens_anew() -> None:
    with FakeServer(says(samples.CLUSTER_INFO)) as server:
        admin = RocketMQAdmin(server.address)
        with admin:
            admin.cluster_info()
        assert not [one for one in threading.enumerate() if one.name.startswith("rocketmq ")]
        assert isinstance(admin.cluster_info(), ClusterInfo)
        admin.close()


def recorded_broker(version: str) -> Script:
    """Answer every request with what a real server of ``version`` said."""
    found = {int(path.stem.split("_")[0]): path.stem for path in sorted((samples.FIXTURES / version).glob("*.frame"))}
    found |= {202: "202_topic_stats", 223: "223_consumer_status", 315: "315_stats", 14: "14_offset"}
    found |= {345: "345_subscription"}

    def script(request: Command, wire: Wire) -> None:
        real = samples.recorded(version, found[request.code])
        wire.send(codec.encode(replace(real, opaque=request.opaque)))

    return script


@pytest.mark.parametrize("version", samples.VERSIONS)
def test_each_of_the_other_reads_is_typed(version: str) -> None:
    queue = MessageQueue("TopicA", "broker-a", 0)
    at = datetime.fromtimestamp(1.25, UTC)
    is_new = version == "5.5.0"
    with FakeServer(recorded_broker(version)) as server, RocketMQAdmin(server.address) as admin:
        here = server.address
        assert "TopicA" in admin.topic_names()
        assert "TopicA" in admin.topics_of_cluster("DefaultCluster")
        stats = admin.topic_stats(here, "TopicA")
        assert stats is not None
        assert len(stats.queues) == 4
        assert admin.groups_of_topic(here, "TopicA") == ("GroupA",)
        assert admin.topics_of_group(here, "GroupA") == (("%RETRY%GroupA", "TopicA", "TopicB") if is_new else None)
        wanted = admin.subscription(here, "GroupA", "TopicA")
        assert (wanted.expression if wanted else None) == ("*" if is_new else None)
        assert "GroupA" in {one.group for one in admin.group_configs(here)}
        assert "TopicA" in {one.topic for one in admin.topic_configs(here)}
        assert len(admin.member_offsets(here, "GroupA", "TopicA")) == 2
        assert len(admin.all_offsets(here)) == 3
        assert admin.broker_consume_stats(here).lag == 0
        assert admin.committed_offset(here, "GroupA", queue) == 15
        assert (admin.max_offset(here, queue), admin.min_offset(here, queue)) == (18, 0)
        assert admin.offset_at(here, queue, at) > 0
        assert server.requests[-1].fields["timestamp"] == "1250"
        counter = admin.counter(here, "GROUP_GET_NUMS", "TopicA@GroupA")
        assert counter is not None
        assert counter.minute.total == 78
        assert admin.broker_runtime(here).version_name == f"V{version.replace('.', '_')}"
        assert admin.broker_config(here)["brokerName"] == "broker-a"


@pytest.mark.parametrize("version", samples.VERSIONS)
def test_what_is_not_there_in_the_words_of_real_brokers(version: str) -> None:
    names = {202: "202_no_topic", 315: "315_unknown", 223: "223_offline", 14: "14_unknown_not_zero"}
    names |= {343: "343_topics_of_group", 345: "345_subscription"} if version == "4.9.7" else {345: "345_unknown"}

    def script(request: Command, wire: Wire) -> None:
        wire.send(codec.encode(replace(samples.recorded(version, names[request.code]), opaque=request.opaque)))

    with broker(script) as (server, admin):
        here = server.address
        assert admin.topic_stats(here, "Nope") is None
        assert admin.counter(here, "GROUP_GET_NUMS", "x@y") is None
        assert admin.subscription(here, "GroupA", "Nope") is None
        # Up to 5.0 the broker makes up a 0, and nothing tells it from a real one.
        found = admin.committed_offset(here, "Nope", MessageQueue("TopicA", "b", 0))
        assert found == (0 if version == "4.9.7" else None)
        with pytest.raises(AnswerError, match="NullPointerException"):
            admin.member_offsets(here, "Nope", "TopicA")


def test_an_offset_that_misses_in_the_header_is_a_protocol_error() -> None:
    with (
        broker(says()) as (server, admin),
        pytest.raises(ProtocolError, match=r"GET_MAX_OFFSET \(30\).*offset in the header is None"),
    ):
        admin.max_offset(server.address, MessageQueue("T", "b", 0))


@pytest.mark.parametrize(("wanted", "at_once"), [("running_info", RELAYED_AT_ONCE), ("member_ids", AT_ONCE)])
def test_a_broker_is_asked_for_so_much_at_once_and_no_more(wanted: str, at_once: int) -> None:
    kept: list[tuple[Command, Wire]] = []
    is_full, is_over = threading.Event(), threading.Event()

    def keep(request: Command, wire: Wire) -> None:
        kept.append((request, wire))
        if len(kept) == at_once:
            is_full.set()
        if len(kept) > at_once:
            is_over.set()

    with broker(keep, PATIENT) as (server, admin), ThreadPoolExecutor(32) as pool:
        ask = {
            "running_info": lambda: admin.running_info(server.address, "g", "c"),
            "member_ids": lambda: admin.member_ids(server.address, "g"),
        }[wanted]
        asked = [pool.submit(ask) for _ in range(at_once + 4)]
        assert is_full.wait(60)
        assert not is_over.wait(0.3)
        request, wire = kept[0]
        wire.answer(request, code=1, remark="no")
        assert is_over.wait(60)
        admin.close()
        failures = [one.exception() for one in asked]
    assert all(isinstance(one, OutOfReachError) for one in failures)
    assert server.connections == 1


def test_closing_ends_what_waits_and_opens_nothing_new() -> None:
    is_asked = threading.Event()
    with broker(lambda *_: is_asked.set()) as (server, admin), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(admin.member_ids, server.address, "g")
        assert is_asked.wait(60)
        admin.close()
        assert isinstance(waiting.exception(60), ConnectionEndedError)
        assert server.connections == 1
