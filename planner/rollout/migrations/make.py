"""From what a person asks for to the migration that does it."""

from planner.errors import BadInputError, UnknownNameError
from planner.rollout.migrations.cluster import cluster
from planner.rollout.migrations.expand import expand
from planner.rollout.migrations.green import Green
from planner.rollout.migrations.kafka import assignor, assignor_in_a_window, consumer_protocol
from planner.rollout.migrations.migration import Migration, MigrationContext
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
    ShrinkRequest,
    StrategyRequest,
    SubscriptionRequest,
    UpdateRequest,
)
from planner.rollout.migrations.reset import reset
from planner.rollout.migrations.shrink import shrink
from planner.rollout.migrations.strategy import strategy
from planner.rollout.migrations.subscription import subscription
from planner.rollout.migrations.update import update


def make_migration(context: MigrationContext, request: Request) -> Migration:
    """Return the migration that does what is asked for.

    Raises ``RefusedError`` for what would do harm, ``BadInputError`` or ``UnknownNameError`` for what does not fit the
    group or its Deployment.
    """
    _check_names(context, request)
    match request:
        case RelocateRequest():
            made = relocate(context, request.change, request.green, request.room)
        case ClusterRequest():
            made = cluster(context, request.to, request.change, request.green)
        case ResetRequest():
            made = reset(context, request)
        case ExpandRequest():
            made = expand(context, request.topic, request.queues, request.consumers)
        case ShrinkRequest():
            made = shrink(context, request.topic, request.queues)
        case UpdateRequest():
            made = update(context, request.change, context.revision, request.surge)
        case _:
            made = _members_change(context, request)
    return made


def _members_change(
    context: MigrationContext,
    request: StrategyRequest | SubscriptionRequest | RenameRequest | AssignorRequest | ConsumerProtocolRequest,
) -> Migration:
    """Return the migration of those after which members share out their queues, read, or name themselves, otherwise."""
    match request:
        case StrategyRequest():
            green = Green(request.green, request.change, request.to, None, request.options or None, request.room)
            return strategy(context, green, request.new_group)
        case SubscriptionRequest():
            return subscription(context, request)
        case RenameRequest():
            return rename(context, request.to, request.change, request.green)
        case AssignorRequest():
            return _assignor(context, request)
        case ConsumerProtocolRequest():
            return consumer_protocol(context, request.change, context.revision, request.to)


def _assignor(context: MigrationContext, request: AssignorRequest) -> Migration:
    if request.variable is not None:
        return assignor(context, request.to, request.variable, context.revision)
    assert request.change is not None
    assert request.green is not None
    return assignor_in_a_window(context, request.to, request.change, request.green)


def _check_names(context: MigrationContext, request: Request) -> None:
    """Raise for a container that the Deployment does not have, and for a green Deployment of the old one's name."""
    present = [container.name for container in context.deployment.containers]
    change, variable = getattr(request, "change", None), getattr(request, "variable", None)
    named = [container_change.container for container_change in change.containers] if change else []
    for name in [*named, *([variable.container] if variable else [])]:
        if name not in present:
            raise UnknownNameError(
                f"{context.deployment.workload} has no container {name!r}: it has {', '.join(present) or 'none'}"
            )
    if getattr(request, "green", None) == context.settings.deployment:
        raise BadInputError(
            f"the green Deployment cannot be {context.settings.deployment}, which it takes over from: name another one"
        )
