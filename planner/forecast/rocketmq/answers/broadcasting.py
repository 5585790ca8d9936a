"""Broadcasting groups: every client consumes every queue by offsets of its own, so nothing ever moves (3.8).

A client whose processes or routes change goes through it alone, as the only member of a group that does not broadcast,
but for its offsets: they lie in a file of its own (``LocalFileOffsetStore``), and nobody asks brokers for members.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.allocation.ordering import java_sorted
from planner.allocation.rocketmq import Averagely
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import Floats, Scenario, build_scenario
from planner.forecast.rocketmq.request.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Change,
    Client,
    Freeze,
    Join,
    Leave,
    Partition,
    QueueCount,
    Restart,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    Upgrade,
    newcomers,
)
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.simulate import simulate
from planner.forecast.rocketmq.timing import Calibration
from planner.forecast.trials import Trials, interval

WARNING = "the group is broadcasting: every client consumes every queue from offsets of its own, so nothing moves"
_NEVER_MISSED = {"channelExpiredTimeout": 2**40, "serverChannelMaxIdleTimeSeconds": 2**30}
"""Brokers remove a silent member of such a group, too, and nobody cares."""


@dataclass(frozen=True, slots=True, eq=False)
class _Alone:
    """What clients go through, each by itself: by client, trial and queue (``settle_s``: without the last)."""

    pause_s: Floats
    duplicates: Floats
    settle_s: Floats


def broadcasting_trials(request: ForecastRequest, calibration: Calibration) -> Trials:
    """Return trials in which nothing moves.

    By queue, ``pause_s`` is the longest that a client which stays, or comes again, gets nothing of it; ``duplicates``
    is what comes again to the client that had it. A trial has settled when each of them is served.
    """
    scenario = build_scenario(request)
    all_alone = [_alone(each, stop_order, calibration) for each, stop_order in _each_alone(request)]
    shape = (request.trials, len(scenario.queues))
    pause, duplicates, settle = np.zeros(shape), np.zeros(shape), np.zeros(request.trials)
    for alone in all_alone:
        pause = np.maximum(pause, alone.pause_s.max(axis=0))
        duplicates = duplicates + alone.duplicates.sum(axis=0)
        settle = np.maximum(settle, alone.settle_s.max(axis=0))
    return Trials(
        queues=_names(scenario, range(shape[1])),
        before=_everything(scenario, [str(client.id) for client in request.clients], BEFORE),
        after=_everything(scenario, _staying(request), AFTER),
        owner_before=[None] * shape[1],
        owner_after=[None] * shape[1],
        moved=[],
        moves=np.zeros(shape, dtype=bool),
        pause_s=pause,
        duplicates=duplicates,
        burst=np.zeros(shape),
        settle_s=settle,
        warnings=(*request.warnings, WARNING, *_about_offsets(request.change, settle)),
    )


def _each_alone(request: ForecastRequest) -> Iterator[tuple[ForecastRequest, Floats]]:
    """Yield requests of one client that goes through the change, and when each that does so alike has its turn.

    A request has as many trials as all of these together: each has its own draws.
    """
    change, ids = request.change, [client.id for client in request.clients]
    if isinstance(change, Join | Leave | RollingUpdate | BlueGreen | SubscriptionChange):
        return  # the last of these is refused
    stop_order = (
        dict.fromkeys(ids, 0.0) if isinstance(change, BrokerDown | BrokerUp | QueueCount) else _stop_order(change)
    )
    settings = replace(request.settings, given={**request.settings.given, **_NEVER_MISSED})
    threads = {client.id: client.threads for client in request.clients}
    for count in sorted({threads[name] for name in stop_order}):
        alike = [name for name in stop_order if threads[name] == count]
        alone_client = Client(alike[0], count, orderly=False)  # nobody else is to be locked out
        alone = replace(
            request,
            strategy=Averagely(),
            clients=(alone_client,),
            settings=settings,
            change=_of_client(change, alike[0]),
            trials=request.trials * len(alike),
        )
        yield alone, np.array([stop_order[name] for name in alike])


def _stop_order(change: Restart | Freeze | Partition | Upgrade | StrategyChange) -> dict[str | None, float]:
    """Return when the change comes to each of its clients, in seconds."""
    match change:
        case Restart():
            apart = change.stagger_s
        case Upgrade() | StrategyChange():
            apart = change.interval_s
        case Freeze() | Partition():
            apart = 0.0
    return {name: order * apart for order, name in enumerate(change.clients)}


def _of_client(change: Change, name: str | None) -> Change:
    """Return the change as it comes to one client."""
    if isinstance(change, BrokerDown | BrokerUp | QueueCount) or name is None:
        return change
    if isinstance(change, StrategyChange):
        return replace(change, to=Averagely(), clients=(name,))
    assert isinstance(change, Restart | Freeze | Partition | Upgrade)
    return replace(change, clients=(name,))


def _alone(request: ForecastRequest, stop_order: Floats, calibration: Calibration) -> _Alone:
    """Return what one client goes through, as often as there are turns.

    Processes that started together ask for routes and rebalance together, and nothing shows which did: they do so in
    every other trial.
    """
    scenario = build_scenario(request)
    observed = simulate(scenario, calibration).observed
    shape = (len(stop_order), request.trials // len(stop_order), len(scenario.queues))
    settle = observed.settle_s.reshape(shape[:2])
    if scenario.route_changes:
        settle[:, ::2] = settle[:1, ::2]
    return _Alone(
        observed.pause_s.reshape(shape),
        observed.duplicates.reshape(shape),
        np.where(settle > 0, settle + stop_order[:, None], 0.0),
    )


def _staying(request: ForecastRequest) -> list[str]:
    """Return the clients that are there in the end; one whose id nobody knows has a name made up."""
    change = request.change
    left = set(change.clients) if isinstance(change, Leave) else set()
    before = [] if isinstance(change, RollingUpdate) else [str(client.id) for client in request.clients]
    joined = [client.id or f"new-{number + 1}" for number, client in enumerate(newcomers(change))]
    return [client for client in (*before, *joined) if client not in left]


def _everything(scenario: Scenario, clients: Sequence[str], side: int) -> dict[str, list[list[Any]]]:
    """Return all queues of a route for every client, clients sorted."""
    queues = _names(scenario, (pick for topic in scenario.topics for pick in topic.queues[side].tolist()))
    return dict.fromkeys(java_sorted(clients), queues)


def _names(scenario: Scenario, picks: Iterable[int]) -> list[list[Any]]:
    return [
        [scenario.queues[pick].topic, scenario.queues[pick].broker, scenario.queues[pick].queue_id] for pick in picks
    ]


def _about_offsets(change: Change, settle_s: Floats) -> list[str]:
    """Return what follows from offsets that lie with the clients, and no figure says."""
    if isinstance(change, Join | RollingUpdate):
        return [
            "new clients have no offsets yet and begin by their consumeFromWhere: unless set otherwise with the "
            "newest message, so that what comes between an old client's stop and a new one's start is lost to the group"
        ]
    if isinstance(change, Restart | Upgrade | StrategyChange):
        return [
            "clients keep their offsets in a file (~/.rocketmq_offsets): the forecast takes it that each finds its own "
            "again, under the same id on the same disk; else nothing comes twice, and what came meanwhile is missed"
        ]
    grows = isinstance(change, BrokerUp) or (isinstance(change, QueueCount) and settle_s.any())
    latest = interval(settle_s)
    if grows and latest is not None:
        return [
            f"what comes to a new queue before a client knows of it, for up to {latest['p95']:.0f} s, that client "
            "never gets, unless its consumeFromWhere is CONSUME_FROM_FIRST_OFFSET"
        ]
    return []
