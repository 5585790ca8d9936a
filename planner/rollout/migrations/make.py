"""From what a person asks for to the migration that does it."""

from planner.errors import BadInputError, UnknownNameError
from planner.rollout.migrations.cluster import cluster
from planner.rollout.migrations.expand import expand
from planner.rollout.migrations.green import Green
from planner.rollout.migrations.kafka import assignor, assignor_in_a_window, consumer_protocol
from planner.rollout.migrations.migration import Ground, Migration
from planner.rollout.migrations.relocate import relocate
from planner.rollout.migrations.rename import rename
from planner.rollout.migrations.requests import (
    AssignorRequest,
    ClusterRequest,
    ConsumerProtocolRequest,
    ExpandRequest,
    RelocateRequest,
    RenameRequest,
    Request,
    ResetRequest,
    StrategyRequest,
    UpdateRequest,
)
from planner.rollout.migrations.reset import reset
from planner.rollout.migrations.strategy import strategy
from planner.rollout.migrations.update import update


def make_migration(found: Ground, request: Request) -> Migration:
    """Return the migration that does what is asked for.

    Raises ``RefusedError`` for what would do harm, ``BadInputError`` or ``UnknownNameError`` for what does not fit the
    group or its Deployment.
    """
    _check_names(found, request)
    match request:
        case RelocateRequest():
            made = relocate(found, request.change, request.green, request.room)
        case ClusterRequest():
            made = cluster(found, request.to, request.change, request.green)
        case ResetRequest():
            made = reset(found, request.to)
        case ExpandRequest():
            made = expand(found, request.topic, request.queues, request.consumers)
        case UpdateRequest():
            made = update(found, request.change, found.revision, request.surge)
        case _:
            made = _members_change(found, request)
    return made


def _members_change(
    found: Ground, request: StrategyRequest | RenameRequest | AssignorRequest | ConsumerProtocolRequest
) -> Migration:
    """Return the migration of those after which members share out their queues, or name themselves, otherwise."""
    match request:
        case StrategyRequest():
            green = Green(request.green, request.change, request.to, None, request.options or None, request.room)
            return strategy(found, green, request.new_group)
        case RenameRequest():
            return rename(found, request.to, request.change, request.green)
        case AssignorRequest():
            return _assignor(found, request)
        case ConsumerProtocolRequest():
            return consumer_protocol(found, request.change, found.revision, request.to)


def _assignor(found: Ground, request: AssignorRequest) -> Migration:
    if request.variable is not None:
        return assignor(found, request.to, request.variable, found.revision)
    assert request.change is not None
    assert request.green is not None
    return assignor_in_a_window(found, request.to, request.change, request.green)


def _check_names(found: Ground, request: Request) -> None:
    """Raise for a container that the Deployment does not have, and for a green Deployment of the old one's name."""
    there = [container.name for container in found.deployment.containers]
    change, variable = getattr(request, "change", None), getattr(request, "variable", None)
    named = [one.container for one in change.containers] if change else []
    for name in [*named, *([variable.container] if variable else [])]:
        if name not in there:
            raise UnknownNameError(
                f"{found.deployment.workload} has no container {name!r}: it has {', '.join(there) or 'none'}"
            )
    if getattr(request, "green", None) == found.settings.deployment:
        raise BadInputError(
            f"the green Deployment cannot be {found.settings.deployment}, which it takes over from: name another one"
        )
