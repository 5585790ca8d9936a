"""When clients and coordinator notice the change: the events of the trials, each with its interval."""

from collections.abc import Iterator

import numpy as np

from planner.forecast.common.changes import CUT
from planner.forecast.kafka.membership.scenario import NOBODY, Floats, Indexes, Scenario
from planner.forecast.kafka.simulate import Simulation
from planner.forecast.trials import Document, interval

MOST_EVENTS = 200
GROUP = "the group"


def find_timeline(scenario: Scenario, simulation: Simulation) -> tuple[Document, ...]:
    """Return events in the order of their median time, the earliest 200.

    ``event`` is ``starts``, ``joins`` (its first request to join), ``ends``, ``stops`` (last delivery), ``sleeps``,
    ``wakes``, ``loses`` (the network), ``returns`` (the coordinator hears it), ``leaves`` (the coordinator drops it),
    ``assigns`` (the group has all back in a round), ``drops``, ``takes`` or ``delivers`` (first delivery after taking);
    ``client`` says whose, ``queues`` which partitions: those concerned in at least half of the trials.
    """
    events = [
        *_process_events(scenario, simulation),
        *_round_events(simulation),
        *_partition_events(scenario, simulation),
    ]
    return tuple(sorted(events, key=lambda event: float(event["at_s"]["p50"]))[:MOST_EVENTS])


def _process_events(scenario: Scenario, simulation: Simulation) -> Iterator[Document]:
    times, trials = simulation.times, scenario.request.trials
    for index, process in enumerate(scenario.processes):
        member = simulation.names.labels[process.member]
        if process.starts_s is not None:
            if process.replaces is None:
                yield from _event("starts", member, np.full(trials, process.starts_s))
            yield from _event("joins", member, times.arrives[:, index])
        if process.ends_s is not None:
            yield from _event("ends", member, times.ends[:, index])
            yield from _event("stops", member, times.stops[:, index])
        if process.suspended_s is not None:
            away, back = ("loses", "returns") if process.how == CUT else ("sleeps", "wakes")
            yield from _event(away, member, times.suspended_at[:, index])
            yield from _event(back, member, times.resumed_at[:, index])
        yield from _event("leaves", member, times.leaves[:, index])


def _round_events(simulation: Simulation) -> Iterator[Document]:
    for played_round in simulation.membership.rounds:
        yield from _event("assigns", GROUP, np.where(played_round.played, played_round.barrier, np.inf))


def _partition_events(scenario: Scenario, simulation: Simulation) -> Iterator[Document]:
    tenures = simulation.membership.tenures
    is_owned, is_new = tenures.process != NOBODY, np.isfinite(tenures.assigned_at)
    ends = np.array([*(process.ends_s is not None for process in scenario.processes), False])[tenures.process]
    for name, concerned, at in (
        ("drops", is_owned & np.isfinite(tenures.revoked_at) & ~ends, tenures.revoked_at),
        ("takes", is_owned & is_new, tenures.assigned_at),
        ("delivers", simulation.deliveries.delivers & is_new, simulation.deliveries.first),
    ):
        number, trial, column = np.nonzero(concerned)
        process, when = tenures.process[number, trial, column], at[number, trial, column]
        for index in np.unique(process).tolist():
            mine = process == index
            partitions = _usual(scenario, trial[mine], column[mine])
            if partitions:
                first = np.full(scenario.request.trials, np.inf)
                np.minimum.at(first, trial[mine], when[mine])
                yield from _event(
                    name, simulation.names.labels[scenario.processes[index].member], first, queues=partitions
                )


def _usual(scenario: Scenario, trial: Indexes, column: Indexes) -> list[list[object]]:
    """Return the partitions that are concerned in at least half of the trials."""
    count = len(scenario.partitions)
    trials_of = np.bincount(np.unique(trial * count + column) % count, minlength=count)
    return [
        list(scenario.partitions[pick]) for pick in np.flatnonzero(trials_of * 2 >= scenario.request.trials).tolist()
    ]


def _event(event: str, client: str, at: Floats, **more: object) -> Iterator[Document]:
    """Yield the event if it happens in at least half of the trials, with the interval of those."""
    known = at[np.isfinite(at)]
    if len(known) * 2 >= len(at) and len(known):
        yield {"at_s": interval(known), "event": event, "client": client, **more}
