"""Free TCP ports that parallel test runs do not fight over."""

import random
import socket
from dataclasses import dataclass, field

from tests.clusters.errors import CannotRunHereError

BLOCK = 4
# Below the usual range of outgoing connections (from 32768), which could take a port between check and use.
FIRST, LAST = 20_000, 31_999


@dataclass
class PortLease:
    """Four neighbouring ports, ``first`` to ``first + 3``, ours until ``release`` or the end of our process."""

    first: int
    _claim: socket.socket = field(repr=False)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports, ascending."""
        return tuple(range(self.first, self.first + BLOCK))

    def release(self) -> None:
        """Give the ports back; releasing twice does nothing."""
        self._claim.close()


def lease_block() -> PortLease:
    """Return a block of four ports that nobody listens on and no other launcher of this machine holds.

    A name in the abstract socket space marks a block as taken: like ports it belongs to the network
    namespace, leaves no file, and the kernel drops it with its owner, however that ends. Raise
    CannotRunHereError when every block is taken.
    """
    blocks = list(range(FIRST, LAST - BLOCK + 2, BLOCK))
    random.shuffle(blocks)
    for first in blocks:
        if lease := _try_block(first):
            return lease
    raise CannotRunHereError("ports", f"no {BLOCK} free neighbouring ports between {FIRST} and {LAST}")


def is_free(port: int) -> bool:
    """True when a server could listen on ``port`` now, on loopback and on all interfaces."""
    return _can_listen("127.0.0.1", port) and _can_listen("", port)


def _try_block(first: int) -> PortLease | None:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0consumer-planner-ports-{first}")
    except OSError:
        claim.close()
        return None
    if all(is_free(port) for port in range(first, first + BLOCK)):
        return PortLease(first, claim)
    claim.close()
    return None


def _can_listen(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Java servers set it too: a connection that is merely winding down does not make a port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
        return True
