"""``BrokerConnections``: one for each address, opened when needed and kept, and how many requests may be under way.

A broker answers admin requests from a pool of 16 threads (``adminBrokerThreadPoolNums``) and holds one of them while it
waits for a member, up to 10 s. So members are asked by way of a broker only ``RELAYED_AT_ONCE`` at a time, and the
broker's operators keep threads for themselves.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.errors import OutOfReachError
from planner.sources.rocketmq import codec
from planner.sources.rocketmq.connection import Connection
from planner.sources.rocketmq.credentials import Credentials
from planner.sources.rocketmq.errors import ConnectionEndedError
from planner.sources.rocketmq.requests import AnswerCode, Request, RequestCode
from planner.sources.rocketmq.transport import Address, Tls

AT_ONCE: Final = 16
"""Requests under way at one address; servers would only queue more of them."""
RELAYED_AT_ONCE: Final = 8
"""Requests under way at one broker that wait for a member: half of its admin threads."""
_RELAYED: Final = {RequestCode.GET_CONSUMER_RUNNING_INFO, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS}


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long to wait, in seconds.

    ``running_info_s`` is longer than ``request_s`` because the broker itself waits up to 10 s for the member.
    ``members_s`` bounds what silent members may cost one session, however many groups it is about: when so much was
    waited in vain by way of a broker, that broker is asked for no further member.
    """

    connect_s: float = 3.0
    request_s: float = 5.0
    running_info_s: float = 12.0
    members_s: float = 30.0


class _Line:
    """The connection to one address, the last failure to open it, and permits for requests under way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.permits = threading.BoundedSemaphore(AT_ONCE)
        self.relay_permits = threading.BoundedSemaphore(RELAYED_AT_ONCE)
        self.connection: Connection | None = None
        self.is_closed = False
        self.failure: OutOfReachError | None = None
        self.failed_at = 0.0


class BrokerConnections:
    """The connections of one client to all addresses; safe to use from many threads."""

    def __init__(self, limits: TimeLimits, credentials: Credentials | None, tls: Tls | None) -> None:
        self._limits = limits
        self._credentials = credentials
        self._tls = tls
        self._lock = threading.Lock()
        self._lines: dict[Address, _Line] = {}
        self._server_names: dict[Address, str] = {}

    def close(self) -> None:
        """Close all connections: requests that wait fail at once. A later request opens them anew."""
        with self._lock:
            lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            with line.lock:
                line.is_closed = True
                if line.connection is not None:
                    line.connection.close()

    def name_servers_as(self, names: Mapping[Address, str]) -> None:
        """Let certificates of these addresses be checked against these names."""
        self._server_names |= names

    def ask(self, address: Address, request: Request, within_s: float) -> codec.Command:
        """Return the answer to ``request``, on a second connection when the kept one turns out to be at its end.

        Waits for a permit first; ``within_s`` counts from then on. Servers close connections that were idle for 120 s,
        and 5.x ones announce it (``GO_AWAY``) before they stop. All our requests are reads, so that asking twice does
        no harm. Raises ``OutOfReachError`` and its kinds.
        """
        line = self._line(address)
        with line.relay_permits if request.code in _RELAYED else line.permits:
            connection, is_new = self._connection(address, line)
            try:
                answer = connection.ask(request, within_s=within_s)
            except ConnectionEndedError:
                if is_new:
                    raise
            else:
                if is_new or answer.code != AnswerCode.GO_AWAY:
                    return answer
                connection.close()
            connection, _ = self._connection(address, line)
            return connection.ask(request, within_s=within_s)

    def _line(self, address: Address) -> _Line:
        with self._lock:
            if (line := self._lines.get(address)) is None:
                line = self._lines[address] = _Line()
            return line

    def _connection(self, address: Address, line: _Line) -> tuple[Connection, bool]:
        """Return an open connection and whether it is new.

        Threads that waited while another one failed to connect share that failure, or each of them would wait for
        its own time-out, one after the other.
        """
        asked_at = time.monotonic()
        with line.lock:
            if line.is_closed:
                # Else the second attempt of a request under way would open what no caller closes any more.
                raise ConnectionEndedError(f"the client of {address} was closed while a request waited: open a new one")
            if line.connection is not None and line.connection.is_open:
                return line.connection, False
            if line.failure is not None and line.failed_at >= asked_at:
                raise line.failure
            try:
                line.connection = self._open(address)
            except OutOfReachError as error:
                line.failure, line.failed_at = error, time.monotonic()
                raise
            return line.connection, True

    def _open(self, address: Address) -> Connection:
        return Connection(
            address,
            connect_s=self._limits.connect_s,
            tls=self._tls,
            server_name=self._server_names.get(address),
            credentials=self._credentials,
        )
