"""``BrokerConnections``: our own connections to one cluster's brokers, opened when needed and kept until they end."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from planner.errors import OutOfReachError
from planner.sources.kafka.connection import Address, Connection
from planner.sources.kafka.errors import AnswerError, ConnectionEndedError, ProtocolError
from planner.sources.kafka.settings import KafkaSettings
from planner.sources.listener import check_system

_T = TypeVar("_T")


class BrokerConnections:
    """Connections by address. One thread at a time: the one that uses it holds ``lock``."""

    def __init__(self, bootstrap: Sequence[Address], settings: KafkaSettings, timeout_s: float) -> None:
        self.bootstrap = tuple(bootstrap)
        self.lock = threading.RLock()
        self._settings = settings
        self._timeout_s = timeout_s
        self._open: dict[Address, Connection] = {}

    def at(self, address: Address, ask: Callable[[Connection], _T]) -> _T:
        """Return what ``ask`` gets from one broker; where a kept connection has ended meanwhile, on a new one.

        Brokers close idle connections (``connections.max.idle.ms``) and restart. What came too late is not asked again.
        """
        is_kept = address in self._open
        try:
            return self._ask(address, ask)
        except ConnectionEndedError:
            if not is_kept:
                raise
        return self._ask(address, ask)

    def anywhere(self, ask: Callable[[Connection], _T]) -> _T:
        """Return what ``ask`` gets from the first bootstrap server that answers; raise what all of them answered."""
        failures = []
        for address in self.bootstrap:
            try:
                return self.at(address, ask)
            except (AnswerError, ProtocolError) as error:  # the others would answer the same
                check_system("kafka", address.host, address.port, error)
                raise
            except OutOfReachError as error:
                check_system("kafka", address.host, address.port, error)
                failures.append(str(error))
        raise OutOfReachError(f"no Kafka broker can be reached: {'; '.join(failures)}")

    def close(self) -> None:
        """Close all; closing twice does nothing."""
        for address in tuple(self._open):
            self._drop(address)

    def _ask(self, address: Address, ask: Callable[[Connection], _T]) -> _T:
        if address not in self._open:
            self._open[address] = Connection(address, self._settings, self._timeout_s)
        try:
            return ask(self._open[address])
        except AnswerError:
            raise
        except OutOfReachError:  # an answer that still comes must not be taken for that to the next request
            self._drop(address)
            raise

    def _drop(self, address: Address) -> None:
        if connection := self._open.pop(address, None):
            connection.close()
