"""Your own allocation strategy, previewed by every command. This file runs, is tested, and is the manual.

A strategy is one class: a ``name``, as your Java class's ``getName()`` spells it, and one method::

    allocate(client, queues, clients) -> the queues that this client takes

which is what ``AllocateMessageQueueStrategy#allocate`` does in your consumers: it is asked once for every client and
every topic. ``queues`` (of one topic) and ``clients`` come sorted as RocketMQ sorts them. Compute from the arguments
alone: no clock, no randomness, no memory, or the members of your group will not agree with each other.

Fields of the class are its options, with their defaults. Use it by path wherever a strategy is named::

    planner allocate request.json        with "strategy": "examples/custom_strategy.py", "options": {"weights": {...}}
    planner simulate snap.json --strategy examples/custom_strategy.py

A file with several strategies is named with the class: ``strategies.py:ByCapacity``. A package installs a strategy
under a name of its own with the entry point group ``consumer_planner.strategies``. Naming a file runs it.

A policy names it as ``strategy: examples/custom_strategy.py``. The planner can choose a count only where the place in
the sorted list decides and not the id itself: say ``is_positional: bool = True`` in your class if that is so.
Otherwise it holds, because nobody knows the ids of consumers that do not run yet.

What goes wrong is said with group, topic and client, and stops nothing else: a call that raises (a real client would
keep the queues it has), queues that are not in the list, queues that no client takes, queues that several take.

The strategy here is rendezvous hashing: every queue goes to the client that draws the highest number for it. A joining
client takes its share and moves nothing else; hosts can weigh more than others.

    python examples/custom_strategy.py   compares it with AVG when a fifth client joins
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import md5

from planner.allocation.group import allocate_group
from planner.allocation.plugins import from_path
from planner.allocation.registry import find_strategy
from planner.allocation.strategy import Strategy
from planner.model.queues import MessageQueue
from planner.simulation.changes import changes

EVENLY = 2**48


@dataclass(frozen=True)
class ByCapacity:
    """Weighted rendezvous hashing; ``weights`` maps a host (the id up to ``@``) to its weight, 1 when not named."""

    weights: Mapping[str, float] = field(default_factory=dict)
    name: str = "BY_CAPACITY"

    def allocate(self, client: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Sequence[MessageQueue]:
        """Return the queues for which ``client`` draws the highest number."""
        return [queue for queue in queues if max(clients, key=lambda one: (self._draw(one, queue), one)) == client]

    def _draw(self, client: str, queue: MessageQueue) -> float:
        weight = self.weights.get(client.partition("@")[0], 1.0)
        if weight <= 0:
            return -math.inf
        drawn = md5(f"{client} {queue.topic} {queue.broker} {queue.queue_id}".encode(), usedforsecurity=False).digest()
        share = (int.from_bytes(drawn[:6]) + 0.5) / EVENLY
        return -weight / math.log(share)


def main() -> None:
    """Print what a join moves under this strategy and under AVG."""
    queues = [MessageQueue("orders", broker, number) for broker in ("broker-a", "broker-b") for number in range(16)]
    before = [f"10.0.0.{number}@app" for number in range(1, 5)]
    after = [*before, "10.0.0.25@app"]
    strategies: tuple[Strategy, ...] = (from_path(__file__, {}), find_strategy("AVG"))
    for strategy in strategies:
        old, new = (allocate_group(strategy, queues, clients).answer() for clients in (before, after))
        found = changes(old, new)
        sizes = " ".join(str(len(owned)) for owned in new.values())
        sys.stdout.write(f"{strategy.name}: {len(found.moved)} of {len(queues)} queues move, then {sizes} each\n")


if __name__ == "__main__":
    main()
