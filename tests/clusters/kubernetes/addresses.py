"""Addresses for pods: loopback addresses of their own, which processes behind pods can bind."""

import random
import socket

from tests.clusters.errors import CannotRunHereError

_NETWORKS = range(1, 255)
_HOSTS = range(2, 255)


class PodAddresses:
    """Hands out addresses in 127.1.x.y, x being ours alone on this machine until ``close``.

    An address is used again only after all others were, as pod networks do it.
    """

    def __init__(self) -> None:
        self._claims: list[socket.socket] = []
        self._free: list[str] = []

    def take(self) -> str:
        """Return an address that no pod of this machine has; raise CannotRunHereError when none is left."""
        if not self._free:
            self._free = self._claim_network()
        return self._free.pop(0)

    def give_back(self, address: str) -> None:
        """Let another pod have it, later."""
        self._free.append(address)

    def close(self) -> None:
        """Give all networks back."""
        for claim in self._claims:
            claim.close()

    def _claim_network(self) -> list[str]:
        networks = list(_NETWORKS)
        random.shuffle(networks)
        for network in networks:
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                # As with ports: a name in the abstract socket space goes with its owner, however that ends.
                claim.bind(f"\0consumer-planner-pods-127.1.{network}")
            except OSError:
                claim.close()
                continue
            self._claims.append(claim)
            return [f"127.1.{network}.{host}" for host in _HOSTS]
        raise CannotRunHereError("pod addresses", "every network 127.1.x.0 is taken by other runs")
