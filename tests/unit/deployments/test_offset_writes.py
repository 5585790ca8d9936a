"""The requests that set RocketMQ offsets: these two and no other, on a connection that ends in time."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from planner.deployments.offsets.rocketmq_writes import (
    OffsetWrite,
    OffsetWriter,
    WriteCode,
    clone_request,
    commit_request,
)
from planner.errors import OutOfReachError
from planner.execution.ports import DeniedError
from planner.model.queues import MessageQueue
from planner.sources.rocketmq import Credentials, codec
from planner.sources.rocketmq.requests import RequestCode

QUEUE = MessageQueue("orders", "broker-a", 3)
Answer = Callable[[codec.Command], codec.Command | None]


def test_the_allow_list_is_these_two_and_the_reading_client_has_neither() -> None:
    assert {int(code) for code in WriteCode} == {15, 314}
    assert not {int(code) for code in WriteCode} & {int(code) for code in RequestCode}


@pytest.mark.parametrize(
    "code", [10, 25, 34, 200, 222, 310, int(RequestCode.GET_MAX_OFFSET), RequestCode.GET_MAX_OFFSET]
)
def test_no_other_request_can_be_made(code: int) -> None:
    with pytest.raises(TypeError, match="allow-list"):
        OffsetWrite(cast("WriteCode", code), {})


@pytest.fixture
def broker() -> Iterator[Callable[[Answer], str]]:
    """Give the way to start a broker that answers one request as it is told."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def serve(answer: Answer) -> None:
            with server.accept()[0] as stream, stream.makefile("rwb") as file:
                asked = codec.decode(file.read(codec.frame_length(file.read(4))))
                said = answer(asked)
                if said is None:
                    ended.wait(60)
                    return
                file.write(codec.encode(codec.Command(11, 99)))  # something pushed first
                file.write(codec.encode(said))

        threads = []

        def start(answer: Answer) -> str:
            thread = threading.Thread(target=serve, args=(answer,))
            thread.start()
            threads.append(thread)
            return f"127.0.0.1:{server.getsockname()[1]}"

        yield start
        ended.set()
        for thread in threads:
            thread.join()


def test_what_is_sent_is_signed_and_waits_for_its_own_answer(broker: Callable[[Answer], str]) -> None:
    heard: list[codec.Command] = []

    def answer(asked: codec.Command) -> codec.Command:
        heard.append(asked)
        return codec.Command(0, asked.opaque, flag=1)

    account = Credentials("writer", "a secret key")
    with OffsetWriter(broker(answer), 30.0, account, None) as writer:
        writer.write(commit_request("shop", QUEUE, 12))
    (asked,) = heard
    expected = {"consumerGroup": "shop", "topic": "orders", "queueId": "3", "commitOffset": "12"}
    assert (asked.code, asked.fields) == (15, account.signed(expected))


def test_a_refusal_is_told_without_our_secret(broker: Callable[[Answer], str]) -> None:
    def answer(asked: codec.Command) -> codec.Command:
        return codec.Command(26, asked.opaque, flag=1, remark="Group shop not exist! a secret key\nat Java")

    account = Credentials("writer", "a secret key")
    with (
        OffsetWriter(broker(answer), 30.0, account, None) as writer,
        pytest.raises(DeniedError, match=r"code 26.*Group shop not exist! \(hidden\): create the group") as told,
    ):
        writer.write(clone_request("shop", "shop-2", "orders"))
    assert "Java" not in str(told.value)


@pytest.mark.slow
def test_a_broker_that_stays_silent_is_given_up(broker: Callable[[Answer], str]) -> None:
    with (
        OffsetWriter(broker(lambda _: None), 2.0, None, None) as writer,
        pytest.raises(OutOfReachError, match="did not answer CLONE_GROUP_OFFSET"),
    ):
        writer.write(clone_request("shop", "shop-2", "orders"))


def test_nothing_is_sent_once_the_look_that_allowed_it_is_too_old() -> None:
    with pytest.raises(OutOfReachError, match="took too long"):
        OffsetWriter("127.0.0.1:1", 0.0, None, None)
