"""When clients and brokers notice the change: the events of the trials, each with its interval."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from planner.forecast.common.changes import FREEZE
from planner.forecast.rocketmq.membership.ownership import NOBODY
from planner.forecast.rocketmq.membership.process_times import NEVER
from planner.forecast.rocketmq.membership.scenario import Floats, Indexes, Scenario
from planner.forecast.rocketmq.request.changes import CUT
from planner.forecast.rocketmq.request.settings import Consumer
from planner.forecast.rocketmq.simulate import Simulation
from planner.forecast.trials import Document, interval

MOST_EVENTS = 200


def find_timeline(scenario: Scenario, simulation: Simulation) -> tuple[Document, ...]:
    """Return events in the order of their median time, the earliest 200.

    ``event`` is ``starts``, ``registers``, ``ends``, ``stops`` (last delivery), ``sleeps``, ``wakes``, ``loses`` and
    ``returns`` (its connections), ``removed`` (from a broker's member table), ``drops``, ``takes`` or ``delivers``
    (first delivery after taking); ``client`` says whose, ``queues`` which queues in the median trial's sense: those
    concerned in at least half of the trials.
    """
    events = [
        *_process_events(scenario, simulation),
        *_table_events(scenario, simulation),
        *_queue_events(scenario, simulation),
    ]
    if scenario.request.consumer == Consumer.PULL:  # the application pulls when it likes
        events = [event for event in events if event["event"] != "delivers"]
    return tuple(sorted(events, key=lambda event: float(event["at_s"]["p50"]))[:MOST_EVENTS])


def _process_events(scenario: Scenario, simulation: Simulation) -> Iterator[Document]:
    for index, process in enumerate(scenario.processes):
        client = simulation.names.labels[process.client]
        if process.resumes is not None:
            was_cut = scenario.processes[process.resumes].how == CUT
            yield from _event(
                "loses" if was_cut else "sleeps", client, simulation.membership.times.ended[:, process.resumes]
            )
            yield from _event(
                "returns" if was_cut else "wakes", client, simulation.membership.times.heartbeat[:, index]
            )
        elif process.starts_s is not None:
            yield from _event("starts", client, simulation.membership.times.constructed[:, index])
        if process.ends_s is not None and process.how not in (FREEZE, CUT):
            yield from _event("ends", client, simulation.membership.times.ended[:, index])
            yield from _event("stops", client, simulation.membership.times.stopped[:, index])


def _table_events(scenario: Scenario, simulation: Simulation) -> Iterator[Document]:
    registrations, times = simulation.membership.registrations, simulation.membership.times
    entered, left = np.where(registrations.notifies_entering, registrations.entered, NEVER), registrations.left.copy()
    for index, old in enumerate(scenario.resumed.tolist()):
        if old != NOBODY:  # nobody removes the entry of a process that resumes in time
            left[:, old] = np.where(left[:, old] < times.heartbeat[:, index, None], left[:, old], NEVER)
    for index, process in enumerate(scenario.processes):
        client = simulation.names.labels[process.client]
        for number, broker in enumerate(scenario.brokers):
            yield from _event("registers", client, entered[:, index, number], broker=broker)
            yield from _event("removed", client, left[:, index, number], broker=broker)


def _queue_events(scenario: Scenario, simulation: Simulation) -> Iterator[Document]:
    tenures = simulation.tenures
    is_new = np.isfinite(tenures.taken)
    for name, concerned, at in (
        ("drops", np.isfinite(tenures.dropped) & ~tenures.dies, tenures.dropped),
        ("takes", is_new & ~tenures.resumed, tenures.taken),
        ("delivers", is_new & simulation.deliveries.delivers, simulation.starts.first),
    ):
        event = np.flatnonzero(concerned & (tenures.process != NOBODY))
        trial, column = np.divmod(event // tenures.process.shape[2], tenures.process.shape[1])
        process, when = tenures.process.ravel()[event], at.ravel()[event]
        for index, mine in _by_process(process, len(scenario.processes)):
            queues = _usual_queues(scenario, simulation, trial[mine], column[mine])
            if queues:
                first = np.full(scenario.request.trials, NEVER)
                np.minimum.at(first, trial[mine], when[mine])
                yield from _event(name, simulation.names.labels[scenario.processes[index].client], first, queues=queues)


def _by_process(process: Indexes, processes: int) -> Iterator[tuple[int, Indexes]]:
    """Yield each process that occurs, with its places, both ascending."""
    # Small whole numbers are sorted by their digits, large ones by comparing.
    order = np.argsort(process.astype(np.min_scalar_type(processes)), kind="stable")
    ends = np.cumsum(np.bincount(process, minlength=processes))
    for index, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        if begin < end:
            yield index, order[begin:end]


def _usual_queues(scenario: Scenario, simulation: Simulation, trial: Indexes, column: Indexes) -> list[list[object]]:
    """Return the queues that are concerned in at least half of the trials."""
    is_usual = np.zeros((scenario.request.trials, len(simulation.tenures.queues)), dtype=bool)
    is_usual[trial, column] = True
    picks = simulation.tenures.queues[is_usual.sum(axis=0) * 2 >= scenario.request.trials].tolist()
    return [
        [scenario.queues[pick].topic, scenario.queues[pick].broker, scenario.queues[pick].queue_id] for pick in picks
    ]


def _event(event: str, client: str, at: Floats, **more: object) -> Iterator[Document]:
    """Yield the event if it happens in at least half of the trials, with the interval of those."""
    known = at[np.isfinite(at)]
    if len(known) * 2 >= len(at) and len(known):
        yield {"at_s": interval(known), "event": event, "client": client, **more}
