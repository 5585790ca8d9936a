"""A user's own strategy: one class in one file, run behind checks. ``examples/custom_strategy.py`` is the manual."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import Holdings, Owners, first_slots, owners_from_holdings
from planner.model.queues import MessageQueue


class UserStrategy(Protocol):
    """The class that a user writes, as their Java class; called once for each client and topic."""

    @property
    def name(self) -> str:
        """The name as the Java class's ``getName()`` spells it."""
        ...

    def allocate(self, client: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Sequence[MessageQueue]:
        """Return the queues of one topic that ``client`` takes; ``queues`` and ``clients`` come sorted."""
        ...


@dataclass(frozen=True, slots=True)
class CheckedStrategy:
    """A user's strategy behind checks: whatever it does wrong is reported in a sentence and stops nothing else."""

    user: UserStrategy
    is_positional: bool = False

    @property
    def name(self) -> str:
        """The user's name for it."""
        return self.user.name

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the first owner of each queue."""
        return owners_from_holdings(self.holdings(queues, clients), len(queues))

    def holdings(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        """Return the pairs that could be made use of."""
        return self.examine(queues, clients)[0]

    def examine(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> tuple[Holdings, list[str]]:
        """Return the usable pairs of one topic, and a sentence for everything that is wrong.

        A client whose call raises owns nothing here (a real one would keep what it has); a queue that is not in the
        topic is left out. Queues without a client and queues given to several clients are reported, not repaired.
        """
        pairs: list[tuple[int, int]] = []
        problems: list[str] = []
        index_of = {queue: index for index, queue in enumerate(queues)}
        first = first_slots(clients)
        for slot, client in enumerate(clients):
            if first is None or first[slot] == slot:
                taken, wrong = self._ask(client, tuple(queues), tuple(clients), index_of)
                problems += [f"client {client}: strategy {self.name} {complaint}" for complaint in wrong]
                pairs += [(slot, pick) for pick in taken]
        table = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        if clients:
            problems += self._ownership_problems(table, queues, clients)
        return Holdings(table[:, 0], table[:, 1]), problems

    def _ask(
        self,
        client: str,
        queues: tuple[MessageQueue, ...],
        clients: tuple[str, ...],
        index_of: dict[MessageQueue, int],
    ) -> tuple[list[int], list[str]]:
        try:
            answer = list(self.user.allocate(client, queues, clients))
            foreign = [queue for queue in answer if queue not in index_of]
        except Exception as error:  # a user's code may raise anything; the other clients go on
            return [], [f"raised {type(error).__name__}: {error}"]
        taken = list(dict.fromkeys(index_of[queue] for queue in answer if queue in index_of))
        problems = [f"returned {len(foreign)} foreign queues, first {foreign[0]}"] if foreign else []
        repeated = len(answer) - len(foreign) - len(taken)
        if repeated:
            problems.append(f"returned {repeated} queues twice")
        return taken, problems

    def _ownership_problems(
        self, table: NDArray[np.intp], queues: Sequence[MessageQueue], clients: Sequence[str]
    ) -> list[str]:
        counts = np.bincount(table[:, 1], minlength=len(queues))
        problems = []
        forgotten, shared = np.flatnonzero(counts == 0), np.flatnonzero(counts > 1)
        if len(forgotten):
            problems.append(
                f"strategy {self.name} forgot {len(forgotten)} queues, first {queues[forgotten[0]]}: no client takes it"
            )
        if len(shared):
            takers = [clients[slot] for slot, pick in table.tolist() if pick == shared[0]]
            problems.append(
                f"strategy {self.name} gave {len(shared)} queues to several clients, "
                f"first {queues[shared[0]]} to {' and '.join(takers)}"
            )
        return problems
