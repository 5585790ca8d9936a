"""The two requests that set a RocketMQ group's offsets, and a connection that can send nothing else.

The client that reads (``planner.sources.rocketmq``) cannot send these, and this one cannot send any other.
Source: ``AdminBrokerProcessor#cloneGroupOffset``, ``ConsumerManageProcessor#updateConsumerOffset`` (4.9.7, 5.5.0).
"""

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Final, Self

from planner.errors import OutOfReachError
from planner.execution.ports import DeniedError
from planner.model.queues import MessageQueue
from planner.sources.rocketmq import Credentials, FrameError, Tls, codec
from planner.sources.rocketmq.transport import connect, parse_address

CONNECT_S: Final = 3.0


class WriteCode(IntEnum):
    """Codes of RocketMQ's ``RequestCode`` that set offsets and nothing else."""

    UPDATE_CONSUMER_OFFSET = 15
    CLONE_GROUP_OFFSET = 314


@dataclass(frozen=True, slots=True)
class OffsetWrite:
    """One request that sets offsets; ``fields`` are the header's ``extFields``."""

    code: WriteCode
    fields: Mapping[str, str]

    def __post_init__(self) -> None:
        if not isinstance(self.code, WriteCode):
            raise TypeError(f"request code {self.code!r} is not on the allow-list of requests that set offsets")

    @property
    def topic(self) -> str:
        """The topic whose offsets it sets."""
        return self.fields["topic"]

    def __str__(self) -> str:
        text = ", ".join(f"{name} {value}" for name, value in self.fields.items())
        return f"{self.code.name} ({self.code.value}) for {text}"


def clone_request(origin: str, group: str, topic: str) -> OffsetWrite:
    """Give ``group`` all that ``origin`` has committed on a topic at that broker, in place of what it had there.

    The topic must be named: without one both versions clone the offsets of a topic ``null``. ``offline`` is said
    whether or not the origin has members: else topics that these do not subscribe any more would be left out.
    """
    fields = {"srcGroup": origin, "destGroup": group, "topic": topic, "offline": "true"}
    return OffsetWrite(WriteCode.CLONE_GROUP_OFFSET, fields)


def commit_request(group: str, queue: MessageQueue, offset: int) -> OffsetWrite:
    """Set a group's offset on one queue; a broker 5.5.0 must have settings for the group, 4.9.7 and 5.1.4 need none."""
    fields = {
        "consumerGroup": group,
        "topic": queue.topic,
        "queueId": str(queue.queue_id),
        "commitOffset": str(offset),
    }
    return OffsetWrite(WriteCode.UPDATE_CONSUMER_OFFSET, fields)


class OffsetWriter:
    """A connection to one broker; a context manager. It is cut after ``within_s`` seconds, whatever is in progress.

    So nothing arrives long after its sender made sure that the group has no members.
    """

    def __init__(self, broker: str, within_s: float, credentials: Credentials | None, tls: Tls | None) -> None:
        if within_s <= 0:
            raise OutOfReachError(f"broker {broker} was not written to: making sure that it may be took too long")
        self.broker = broker
        self._credentials = credentials
        self._opaque = itertools.count(1)
        self._stream = connect(parse_address(broker), connect_s=min(within_s, CONNECT_S), tls=tls)
        self._cut = threading.Timer(within_s, self._stream.end)
        self._cut.daemon = True
        self._cut.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cut.cancel()
        self._stream.end()

    def write(self, request: OffsetWrite) -> None:
        """Return once the broker has answered that it is done.

        Raises ``DeniedError`` where it refuses, ``OutOfReachError`` where it has not answered: perhaps it is done.
        """
        answer = self._ask(request)
        if answer.code:
            remark = answer.remark.strip().partition("\n")[0]
            message = self._credentials.redacted(remark) if self._credentials else remark
            raise DeniedError(
                f"{self.broker} answered {request} with code {answer.code}, expected 0, and says: {message}: create "
                "the group there where it is missing, or grant the account the rights of docs/connect-rocketmq.md"
            )

    def _ask(self, request: OffsetWrite) -> codec.Command:
        opaque = next(self._opaque)
        fields = self._credentials.signed(request.fields) if self._credentials else request.fields
        try:
            self._stream.sendall(codec.encode(codec.Command(int(request.code), opaque, fields=fields)))
            while (answer := self._next()).opaque != opaque or not answer.is_answer:
                pass  # a broker may push something first
        except (OSError, FrameError) as error:
            raise OutOfReachError(f"{self.broker} did not answer {request} ({error}): see whether it is up") from error
        return answer

    def _next(self) -> codec.Command:
        return codec.decode(self._exactly(codec.frame_length(self._exactly(4))))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._stream.recv(size - len(data))
            if not chunk:
                raise ConnectionResetError("the connection ended before")
            data += chunk
        return data
