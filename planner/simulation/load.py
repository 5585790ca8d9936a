"""Load and backlog of every consumer under a given ownership."""

from collections.abc import Iterable, Mapping, Sequence

from planner.model.queues import Queue
from planner.model.snapshot import QueueState
from planner.simulation.outcome import ConsumerLoad

DECIMALS = 6


def consumer_loads(
    states: Iterable[QueueState],
    owners: Mapping[Queue, str | None],
    clients: Sequence[str],
    capacity: float | None,
) -> tuple[ConsumerLoad, ...]:
    """Return the load of each client, in the order of ``clients``; ``capacity`` in messages per second.

    The consume pool is one first-in-first-out line for all queues of a consumer (rocketmq.md 3.11), so
    backlog and capacity are shared over its queues: a fluid of ``lag`` messages drains at capacity minus
    arrival rate.
    """
    owned: dict[str, list[QueueState]] = {client: [] for client in clients}
    for state in states:
        owner = owners.get(state.queue)
        if owner is not None:
            owned[owner].append(state)
    return tuple(_load(client, owned[client], capacity) for client in clients)


def _load(client: str, states: Sequence[QueueState], capacity: float | None) -> ConsumerLoad:
    rate = sum_known([state.upper_arrival_rate for state in states])
    return load_of(client, len(states), rate, sum_of_known_lags(states), capacity)


def load_of(client: str, queues: int, rate: float | None, lag: int | None, capacity: float | None) -> ConsumerLoad:
    """Return the load of one consumer that so many messages per second come to, and so many wait for.

    Under a ``capacity`` that may be 0 nothing is known of its time, as under none that is known.
    """
    if rate is None or not capacity:
        return ConsumerLoad(client, queues, rate, None, lag, None, None)
    spare = capacity - rate
    return ConsumerLoad(
        client=client,
        queues=queues,
        arrival_rate=rate,
        utilisation=round(rate / capacity, DECIMALS),
        lag=lag,
        wait_s=None if lag is None else round(lag / capacity, DECIMALS),
        drain_s=None if lag is None or spare <= 0 else round(lag / spare, DECIMALS),
    )


def sum_of_known_lags(states: Sequence[QueueState]) -> int | None:
    """Return the sum, ``None`` as soon as one lag is unknown."""
    known = [state.lag for state in states if state.lag is not None]
    return sum(known) if len(known) == len(states) else None


def sum_known(rates: Sequence[float | None]) -> float | None:
    """Return the sum, ``None`` as soon as one rate is unknown."""
    total = 0.0
    for rate in rates:
        if rate is None:
            return None
        total += rate
    return round(total, DECIMALS)
