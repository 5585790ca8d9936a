"""Which processes of a group there are, before and after its change: one function for each kind of change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.simulation.dynamics.rocketmq.changes import (
    FREEZE,
    GRACEFUL,
    Change,
    Client,
    Freeze,
    Join,
    Leave,
    Restart,
    StrategyChange,
)

BEFORE, AFTER = 0, 1
"""The two states of routes and strategies: every process has either the one or the other."""


@dataclass(frozen=True, slots=True)
class Life:
    """One process of the group.

    ``client`` is its place in the world's clients; ``starts_s`` is ``None`` for one that runs before the change;
    ``follows`` is the life of the same client that must have ended first, ``resumes`` the one that stood still and goes
    on as this one; ``strategy`` is BEFORE or AFTER.
    """

    client: int
    threads: int
    starts_s: float | None = None
    ends_s: float | None = None
    how: str | None = None
    strategy: int = BEFORE
    follows: int | None = None
    resumes: int | None = None


def processes(clients: Sequence[Client], change: Change) -> tuple[Life, ...]:
    """Return every process of the change, those that run before it first, in the clients' order."""
    running = [Life(index, client.threads) for index, client in enumerate(clients)]
    place = {client.id: index for index, client in enumerate(clients)}
    match change:
        case Join():
            return (*running, *_joining(change, len(clients)))
        case Leave():
            return _ended(running, [place[name] for name in change.clients], change.how, change.stagger_s)
        case Restart():
            return _restarted(running, [place[name] for name in change.clients], change)
        case Freeze():
            return _frozen(running, [place[name] for name in change.clients], change.for_s)
        case StrategyChange():
            return _switched(running, [place[name] for name in change.clients], change.interval_s)
    return tuple(running)


def _joining(change: Join, first: int) -> list[Life]:
    return [
        Life(first + order, client.threads, starts_s=order * change.stagger_s)
        for order, client in enumerate(change.clients)
    ]


def _ended(running: Sequence[Life], places: Sequence[int], how: str, stagger_s: float) -> tuple[Life, ...]:
    """Return the processes where those in these places end in turn."""
    ends = {place: order * stagger_s for order, place in enumerate(places)}
    return tuple(
        replace(life, ends_s=ends[place], how=how) if place in ends else life for place, life in enumerate(running)
    )


def _restarted(running: Sequence[Life], places: Sequence[int], change: Restart) -> tuple[Life, ...]:
    ended = _ended(running, places, change.how, change.stagger_s)
    return (
        *ended,
        *(replace(running[place], starts_s=(ended[place].ends_s or 0.0) + change.interval_s) for place in places),
    )


def _frozen(running: Sequence[Life], places: Sequence[int], for_s: float) -> tuple[Life, ...]:
    woken = (replace(running[place], starts_s=for_s, resumes=place) for place in places)
    return (*_ended(running, places, FREEZE, 0.0), *woken)


def _switched(running: Sequence[Life], places: Sequence[int], interval_s: float) -> tuple[Life, ...]:
    """Return the processes where those in these places end in turn and start at once with the other strategy."""
    ended = _ended(running, places, GRACEFUL, interval_s)
    started = (replace(running[place], starts_s=ended[place].ends_s, strategy=AFTER, follows=place) for place in places)
    return (*ended, *started)
