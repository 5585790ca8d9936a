"""One connection: matching by opaque, deadlines, garbage, and every way in which a server can end it."""

import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from planner.errors import BadInputError, OutOfReachError
from planner.sources.rocketmq import codec, requests
from planner.sources.rocketmq.codec import Command
from planner.sources.rocketmq.connection import Connection
from planner.sources.rocketmq.errors import ConnectionEndedError, NoAnswerError, ProtocolError
from planner.sources.rocketmq.transport import Address, parse_address
from tests.unit.sources.rocketmq.fake_server import FakeServer, Script, Wire, answer_to

ASK = requests.member_ids("g")
PATIENCE_S = 60.0
"""What comes comes at once, but a busy machine may stand still for some seconds."""


def echo(request: Command, wire: Wire) -> None:
    wire.answer(request, body=request.fields["consumerGroup"].encode())


def connected(server: FakeServer, **options: int) -> Connection:
    return Connection(parse_address(server.address), **options)


def refuses(script: Script, error: type[OutOfReachError], message: str) -> None:
    """Hold that a request fails with ``error`` before its time is over, and that the connection is closed then."""
    with FakeServer(script) as server, connected(server) as connection:
        with pytest.raises(error, match=message) as caught:
            connection.ask(ASK, within_s=PATIENCE_S)
        assert type(caught.value) is error, "NoAnswerError would say that all the time was waited"
        assert server.address in str(caught.value)
        assert "GET_CONSUMER_LIST_BY_GROUP (38) for consumerGroup g" in str(caught.value)
        assert not connection.is_open
        with pytest.raises(error):
            connection.ask(ASK, within_s=PATIENCE_S)


def test_an_answer_comes_back() -> None:
    with FakeServer(echo) as server, connected(server) as connection:
        answer = connection.ask(ASK, within_s=PATIENCE_S)
        assert (answer.code, answer.body) == (0, b"g")
        assert connection.is_open


def test_a_request_says_who_we_are_and_what_we_read() -> None:
    with FakeServer(echo) as server, connected(server) as connection:
        connection.ask(ASK, within_s=PATIENCE_S)
        (request,) = server.requests
    assert (request.code, request.flag, request.language, request.version) == (38, 0, "PYTHON", 513)


def test_answers_out_of_order_find_their_requests() -> None:
    kept: list[Command] = []

    def backwards(request: Command, wire: Wire) -> None:
        kept.append(request)
        if len(kept) == 50:
            for one in reversed(kept):
                echo(one, wire)

    with FakeServer(backwards) as server, connected(server) as connection, ThreadPoolExecutor(50) as pool:
        asked = [pool.submit(connection.ask, requests.member_ids(f"g{n}"), within_s=PATIENCE_S) for n in range(50)]
        assert [one.result().body.decode() for one in asked] == [f"g{n}" for n in range(50)]
        assert server.connections == 1


def test_a_second_request_does_not_wait_for_the_first() -> None:
    kept: list[Command] = []

    def slow_comes_last(request: Command, wire: Wire) -> None:
        kept.append(request)
        if len(kept) > 1:
            echo(request, wire)
        if len(kept) > 2:
            echo(kept[0], wire)

    with FakeServer(slow_comes_last) as server, connected(server) as connection, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(connection.ask, requests.member_ids("slow"), within_s=PATIENCE_S)
        while not kept:
            time.sleep(0.01)
        assert connection.ask(requests.member_ids("quick"), within_s=PATIENCE_S).body == b"quick"
        assert not slow.done()
        assert connection.ask(requests.member_ids("last"), within_s=PATIENCE_S).body == b"last"
        assert slow.result().body == b"slow"


def test_no_answer_fails_at_the_deadline_and_the_connection_lives_on() -> None:
    kept: list[Command] = []

    def late(request: Command, wire: Wire) -> None:
        kept.append(request)
        if len(kept) == 2:
            echo(kept[0], wire)  # nobody waits for this one any more
            echo(request, wire)

    with FakeServer(late) as server, connected(server) as connection:
        start = time.monotonic()
        with pytest.raises(OutOfReachError, match=r"did not answer .* within 0.3 s") as caught:
            connection.ask(ASK, within_s=0.3)
        assert time.monotonic() - start >= 0.3
        assert type(caught.value) is NoAnswerError
        assert connection.ask(requests.member_ids("next"), within_s=PATIENCE_S).body == b"next"


def test_an_answer_to_another_request_is_not_taken() -> None:
    def other(request: Command, wire: Wire) -> None:
        wire.answer(request, opaque=request.opaque + 1000, body=b"wrong")
        wire.answer(request, opaque=-1, body=b"wrong")
        echo(request, wire)

    with FakeServer(other) as server, connected(server) as connection:
        assert connection.ask(ASK, within_s=PATIENCE_S).body == b"g"


def test_a_request_pushed_by_the_server_is_not_taken_for_an_answer() -> None:
    def push(request: Command, wire: Wire) -> None:
        wire.send(codec.encode(Command(40, request.opaque, fields={"consumerGroup": "g"})))
        echo(request, wire)

    with FakeServer(push) as server, connected(server) as connection:
        answer = connection.ask(ASK, within_s=PATIENCE_S)
        assert (answer.code, answer.body) == (0, b"g")


def test_a_second_answer_to_the_same_request_is_dropped() -> None:
    def twice(request: Command, wire: Wire) -> None:
        echo(request, wire)
        wire.answer(request, body=b"again")

    with FakeServer(twice) as server, connected(server) as connection:
        assert [connection.ask(ASK, within_s=PATIENCE_S).body for _ in range(3)] == [b"g"] * 3


def test_an_answer_in_single_bytes_is_put_together() -> None:
    def drip(request: Command, wire: Wire) -> None:
        for byte in codec.encode(answer_to(request, body=b"drop by drop")):
            wire.send(bytes([byte]))

    with FakeServer(drip) as server, connected(server) as connection:
        assert connection.ask(ASK, within_s=PATIENCE_S).body == b"drop by drop"


def test_an_answer_of_more_than_16_mib_is_read() -> None:
    body = bytes(range(256)) * (20 * 4096)
    with FakeServer(lambda request, wire: wire.answer(request, body=body)) as server, connected(server) as connection:
        assert connection.ask(ASK, within_s=PATIENCE_S).body == body


def test_a_binary_header_is_understood() -> None:
    def binary(request: Command, wire: Wire) -> None:
        wire.send(codec.encode(answer_to(request, body=b"b"), codec.HEADER_BINARY))

    with FakeServer(binary) as server, connected(server) as connection:
        assert connection.ask(ASK, within_s=PATIENCE_S).body == b"b"


def test_a_server_that_closes_at_once() -> None:
    refuses(lambda _, wire: wire.close(), ConnectionEndedError, "connection .* ended while")


def test_a_server_that_closes_inside_a_frame() -> None:
    def cut(request: Command, wire: Wire) -> None:
        wire.send(codec.encode(answer_to(request, body=b"x" * 100))[:50])
        wire.close()

    refuses(cut, ConnectionEndedError, "46 of .* bytes into a read")


def test_a_server_that_closes_inside_a_length() -> None:
    def cut(_: Command, wire: Wire) -> None:
        wire.send(b"\0\0")
        wire.close()

    refuses(cut, ConnectionEndedError, "2 of 4 bytes into a read")


@pytest.mark.parametrize(
    ("garbage", "found"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "frame length 1213486160"),
        (b"\xff\xff\xff\xff", "frame length -1"),
        (b"\x7f\xff\xff\xff", "frame length 2147483647"),
        (b"\0\0\0\0", "frame length 0"),
        (struct.pack(">iI", 4, 5), "header length 5 in a frame of 4 bytes"),
        (struct.pack(">iI", 6, 2) + b"[]", "header is list"),
        (struct.pack(">iI", 6, 2) + b"\xff\xff", "header is not JSON"),
        (struct.pack(">iI", 6, 7 << 24 | 2) + b"{}", "header encoding 7"),
    ],
)
def test_garbage_ends_the_connection_with_a_protocol_error(garbage: bytes, found: str) -> None:
    refuses(lambda _, wire: wire.send(garbage), ProtocolError, found)


def test_a_frame_above_the_limit_is_refused_before_it_is_read() -> None:
    def long(request: Command, wire: Wire) -> None:
        wire.answer(request, body=b"x" * 2000)

    with FakeServer(long) as server, connected(server, max_frame=1000) as connection:
        with pytest.raises(ProtocolError, match="expected 4 to 1000"):
            connection.ask(ASK, within_s=PATIENCE_S)
        assert not connection.is_open


def test_all_that_wait_learn_of_the_end() -> None:
    seen: list[Command] = []

    def close_at_ten(request: Command, wire: Wire) -> None:
        seen.append(request)
        if len(seen) == 10:
            wire.close()

    with FakeServer(close_at_ten) as server, connected(server) as connection, ThreadPoolExecutor(10) as pool:
        asked = [pool.submit(connection.ask, ASK, within_s=PATIENCE_S) for _ in range(10)]
        assert all(isinstance(one.exception(), ConnectionEndedError) for one in asked), "not that none came in time"


def test_closing_ends_what_waits_and_the_reader() -> None:
    with FakeServer(lambda *_: None) as server, ThreadPoolExecutor(1) as pool:
        connection = connected(server)
        waiting = pool.submit(connection.ask, ASK, within_s=PATIENCE_S)
        while not server.requests:
            time.sleep(0.01)
        connection.close()
        connection.close()
        with pytest.raises(ConnectionEndedError, match="closed on our side"):
            waiting.result()
        names = [thread.name for thread in threading.enumerate()]
        assert f"rocketmq {server.address}" not in names


def test_an_idle_connection_notices_that_the_server_closed_it() -> None:
    with FakeServer(echo) as server, connected(server) as connection:
        connection.ask(ASK, within_s=PATIENCE_S)
        server.close_connections()
        deadline = time.monotonic() + PATIENCE_S
        while connection.is_open and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not connection.is_open


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(OutOfReachError, match=rf"no connection to {address} after .* of at most 3 s .*refused"):
        Connection(address)


def test_a_host_that_swallows_everything_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = Address(*full.getsockname()[:2])
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        with pytest.raises(OutOfReachError, match="timed out"):
            Connection(address, connect_s=0.5)
        for filler in fillers:
            filler.close()


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(OutOfReachError, match=r"no connection to broker.invalid:10911"):
        Connection(Address("broker.invalid", 10911))
    with pytest.raises(OutOfReachError, match="no connection to"):
        Connection(Address("x" * 70, 10911))


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("127.0.0.1:9876", Address("127.0.0.1", 9876), "127.0.0.1:9876"),
        (" mq.example.org:1 ", Address("mq.example.org", 1), "mq.example.org:1"),
        ("[::1]:65535", Address("::1", 65535), "[::1]:65535"),
        ("fe80::1:9876", Address("fe80::1", 9876), "[fe80::1]:9876"),
    ],
)
def test_addresses(text: str, address: Address, shown: str) -> None:
    assert parse_address(text) == address
    assert str(address) == shown


@pytest.mark.parametrize("text", ["", "host", ":9876", "host:", "host:0", "host:65536", "host:9x", "host:٣", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="is not host:port"):
        parse_address(text)
