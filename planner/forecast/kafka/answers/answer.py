"""The answer to one Kafka request: the simulation's arrays under the contract's names."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.allocation.ordering import java_sorted
from planner.forecast.kafka.answers.causes import find_causes
from planner.forecast.kafka.answers.timeline import find_timeline
from planner.forecast.kafka.answers.warnings import warnings
from planner.forecast.kafka.membership.scenario import NOBODY, World, build_world
from planner.forecast.kafka.request.changes import RollingUpdate, Upgrade
from planner.forecast.kafka.request.reader import read_request
from planner.forecast.kafka.simulate import Simulation, simulate
from planner.forecast.kafka.timing import DEFAULT, Calibration
from planner.forecast.trials import Trials


def forecast_kafka(document: Mapping[str, Any], calibration: Calibration = DEFAULT) -> Trials:
    """Return the trials of one request document; raise ``BadInputError`` naming field, found and expected."""
    world = build_world(read_request(document))
    return _trials(world, simulate(world, calibration))


def _trials(world: World, found: Simulation) -> Trials:
    labels = [*found.names.labels, None]
    partitions = [list(partition) for partition in world.partitions]
    before, after = found.owners.before.tolist(), found.shown.tolist()
    initial = [world.lives[life].member for life in world.initial]
    final = [world.lives[life].member for life in world.final]
    return Trials(
        queues=partitions,
        before=_assignments(partitions, before, initial, found.names.labels),
        after=_assignments(partitions, after, final, found.names.labels),
        owner_before=[labels[owner] for owner in before],
        owner_after=[labels[owner] for owner in after],
        moved=[
            partition
            for partition, old, new in zip(partitions, before, after, strict=True)
            if NOBODY not in {old, new} and old != new
        ],
        moves=found.owners.moves,
        pause_s=found.observed.pause_s,
        duplicates=found.observed.duplicates,
        burst=found.observed.burst,
        settle_s=found.observed.settle_s,
        drained_s=found.observed.drained_s,
        unread_s=found.observed.unread_s if isinstance(world.request.change, RollingUpdate | Upgrade) else None,
        warnings=warnings(world, found),
        causes=find_causes(world, found),
        timeline=find_timeline(world, found),
    )


def _assignments(
    partitions: Sequence[list[Any]], owners: Sequence[int], members: Sequence[int], labels: Sequence[str]
) -> dict[str, list[list[Any]]]:
    """Return every member's partitions, members in the order of their ids, partitions sorted."""
    mine: dict[int, list[list[Any]]] = {member: [] for member in members}
    for partition, owner in zip(partitions, owners, strict=True):
        if owner in mine:
            mine[owner].append(partition)
    label = {labels[member]: member for member in mine}
    return {name: mine[label[name]] for name in java_sorted(label)}
