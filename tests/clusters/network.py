"""A network that can be cut for single processes: their packets carry a mark in the kernel, marked ones are dropped.

Needs root, ``nft`` (nftables) and ``setpriv`` (util-linux). Nothing but processes started with ``prefix`` is touched.
"""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.clusters.artifacts import find_program
from tests.clusters.errors import CannotRunHereError

FIRST_GROUP: Final = 47_000
"""Unix groups from here on are nobody's: what belongs to one of them was started by us."""
_groups = itertools.count(FIRST_GROUP)


@dataclass(frozen=True, slots=True)
class Apart:
    """Processes of one Unix group whose network can be cut."""

    table: str
    group: int
    nft: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words before a command that make its process one of them."""
        return (find_program("setpriv"), "--regid", str(self.group), "--clear-groups")

    def cut(self, *addresses: str) -> None:
        """Drop all packets from now on, or those of these addresses, both ways, without a word to either side."""
        ports = [address.rpartition(":")[2] for address in addresses]
        ends = [f"tcp {side} {port} " for port in ports for side in ("sport", "dport")] or [""]
        hooks = itertools.product(("input", "output"), ends)
        _nft(self.nft, "; ".join(self._rule(hook, f"{end}ct mark {self.group} drop") for hook, end in hooks))

    def heal(self) -> None:
        """Let packets through again."""
        flushes = [f"flush chain inet {self.table} {hook}" for hook in ("input", "output")]
        _nft(self.nft, "; ".join([*flushes, self._marks()]))

    def mark(self) -> None:
        """Mark every connection that the processes open."""
        _nft(self.nft, self._marks())

    def _marks(self) -> str:
        return self._rule("output", f"meta skgid {self.group} ct mark set {self.group}")

    def _rule(self, hook: str, rule: str) -> str:
        return f"add rule inet {self.table} {hook} {rule}"


@contextmanager
def apart() -> Iterator[Apart]:
    """Give a network of its own to processes; raise CannotRunHereError where the kernel's filter cannot be set."""
    made = _first_free(find_program("nft"))
    try:
        for hook in ("input", "output"):
            _nft(made.nft, f"add chain inet {made.table} {hook} {{ type filter hook {hook} priority 0; }}")
        made.mark()
        yield made
    finally:
        _nft(made.nft, f"delete table inet {made.table}")


def _first_free(nft: str) -> Apart:
    """Make the table of the first group that has none: other tests on this machine begin with the same group."""
    while True:
        group = next(_groups)
        made = Apart(f"planner-tests-{group}", group, nft)
        try:
            _nft(nft, f"create table inet {made.table}")
        except CannotRunHereError as error:
            if "File exists" not in error.reason:
                raise
        else:
            return made


def _nft(program: str, command: str) -> None:
    ended = subprocess.run([program, command], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise CannotRunHereError("nft", f"{command}: {ended.stderr.strip()}")
