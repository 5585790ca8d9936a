"""Our own connections to the brokers of one cluster: opened when needed, kept, opened again when one has ended."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from planner.errors import OutOfReachError
from planner.sources.kafka.connection import Address, Connection
from planner.sources.kafka.errors import AnswerError, ProtocolError
from planner.sources.kafka.settings import KafkaSettings

_T = TypeVar("_T")


class Links:
    """Connections by address. One thread at a time: whoever uses it holds ``lock``."""

    def __init__(self, bootstrap: Sequence[Address], settings: KafkaSettings, timeout_s: float) -> None:
        self.bootstrap = tuple(bootstrap)
        self.lock = threading.RLock()
        self._settings = settings
        self._timeout_s = timeout_s
        self._open: dict[Address, Connection] = {}

    def to(self, address: Address) -> Connection:
        """Return a connection to one broker."""
        if address not in self._open:
            self._open[address] = Connection(address, self._settings, self._timeout_s)
        return self._open[address]

    def at(self, address: Address, ask: Callable[[Connection], _T]) -> _T:
        """Return what ``ask`` gets from one broker; on a connection that ended meanwhile, try once on a new one."""
        is_kept = address in self._open
        try:
            return ask(self.to(address))
        except (AnswerError, ProtocolError):
            raise
        except OutOfReachError:
            self._drop(address)
            if not is_kept:
                raise
        return ask(self.to(address))

    def anywhere(self, ask: Callable[[Connection], _T]) -> _T:
        """Return what ``ask`` gets from the first bootstrap server that answers; raise what all of them said."""
        failures = []
        for address in self.bootstrap:
            try:
                return self.at(address, ask)
            except (AnswerError, ProtocolError):  # the others would say the same
                raise
            except OutOfReachError as error:
                self._drop(address)
                failures.append(str(error))
        raise OutOfReachError(f"no Kafka broker can be reached: {'; '.join(failures)}")

    def close(self) -> None:
        """Close all; closing twice does nothing."""
        for address in tuple(self._open):
            self._drop(address)

    def _drop(self, address: Address) -> None:
        if connection := self._open.pop(address, None):
            connection.close()
