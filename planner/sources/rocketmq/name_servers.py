"""``NameServers``: which addresses to ask in which order; any of them may answer, as all know the same."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from planner.errors import BadInputError
from planner.sources.rocketmq.transport import Address, parse_address, resolve

_RESOLVE_EVERY_S: Final = 30.0
"""How long a name server's name is taken to mean the same addresses; resolving it for each request would be slow."""


class NameServers:
    """The name servers of one installation, in the user's order, from the one on that answered last."""

    def __init__(self, addresses: str | Sequence[str], name_them: Callable[[dict[Address, str]], None]) -> None:
        """Read ``host:port;host:port`` or a sequence of such; raise ``BadInputError`` for anything else.

        ``name_them`` gets the name for which each address stands, as certificates hold names.
        """
        listed = [addresses] if isinstance(addresses, str) else list(addresses)
        texts = [address.strip() for text in listed for address in text.replace(",", ";").split(";") if address.strip()]
        if not texts:
            raise BadInputError(f"no name server in {addresses!r}: give at least one host:port")
        self.configured: tuple[Address, ...] = tuple(parse_address(text) for text in texts)
        self._name_them = name_them
        self._preferred = self.configured[0]
        self._addresses: tuple[Address, ...] = ()
        self._resolve_at = 0.0

    def __str__(self) -> str:
        return "; ".join(map(str, self.configured))

    def in_order(self) -> tuple[Address, ...]:
        """Return all addresses in their order, from the one on that answered last."""
        if time.monotonic() >= self._resolve_at:
            self._addresses = self._resolve()
            self._resolve_at = time.monotonic() + _RESOLVE_EVERY_S
        listed = self._addresses
        first = listed.index(self._preferred) if self._preferred in listed else 0
        return (*listed[first:], *listed[:first])

    def prefer(self, address: Address) -> None:
        """Begin with this one from now on."""
        self._preferred = address

    def _resolve(self) -> tuple[Address, ...]:
        addresses: list[Address] = []
        for address in self.configured:
            behind = resolve(address)
            # One address is reached by its name, so that messages show what the user wrote.
            addresses += [address] if len(behind) == 1 else behind
            self._name_them(dict.fromkeys(behind, address.host))
        return tuple(dict.fromkeys(addresses))
