"""Other topics for a group, or other tags: a roll for Kafka; RocketMQ's clients must never mix two subscriptions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.errors import BadInputError
from planner.rollout.migrations.green import (
    CONTENT,
    Green,
    cheapest,
    explain_choice,
    in_a_window,
    of_new_group,
    side_by_side,
)
from planner.rollout.migrations.kafka import SERVER_ASSIGNORS
from planner.rollout.migrations.machine_rooms import await_settled
from planner.rollout.migrations.migration import Migration, MigrationContext, forecast_change, known_cost
from planner.rollout.migrations.requests import ALL_MESSAGES, SubscriptionRequest
from planner.rollout.migrations.split_brain import describe_unread
from planner.rollout.migrations.update import roll_change, update_steps
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps.moves import MovedQueues
from planner.simulation.group_model import group_model, system_of
from planner.simulation.outcome import Transition

KIND = "subscription"
ROLL_SURGE = 1


def subscription(context: MigrationContext, request: SubscriptionRequest) -> Migration:
    """Return the safe migration to the topics of the request, which its change of the template brings.

    Kafka's members come with them one by one, as its assignors give partitions to subscribers alone; a static member's
    new topics nobody notices, so that such members, and RocketMQ's clients, all stop before any starts, or a second
    group takes over beside the old one.
    Raises ``BadInputError`` for topics that are there already, ``RefusedError`` where members would have to mix.
    """
    _check_topics(context, request)
    if request.green is None:
        _refuse_mixture(context, request)
        return _roll(context, request)
    as_now = await_settled(context, context.count)
    green = Green(request.green, request.change, context.strategy, None, as_now.options, as_now.new_room)
    window = in_a_window(context, green)
    takeovers = [window]
    if request.new_group is not None and not context.snapshot.orderly:
        takeovers.append(side_by_side(context, replace(green, group=request.new_group)))
    best = cheapest(takeovers)
    joined = of_new_group(context, request.new_group) if request.new_group and best is not window else ()
    mixture = () if _can_mix(context) else (describe_mixture(context, request),)
    return Migration(
        kind=KIND,
        steps=best.steps,
        must_be_true=(*_conditions(context, request), *joined, CONTENT),
        why=(*mixture, *explain_choice(best, takeovers)),
        moved=_moved(context, request),
        cost=known_cost(best.transition),
        unknowns=tuple(_unknowns(context, request, best.unknown)),
    )


def _roll(context: MigrationContext, request: SubscriptionRequest) -> Migration:
    """Return the roll of a Kafka group, one member more at a time before an old one goes."""
    moved, forecast = _moved(context, request), _cost_of_roll(context, request)
    unknown = forecast if isinstance(forecast, str) else None
    return Migration(
        kind=KIND,
        steps=update_steps(context, request.change, context.revision, ROLL_SURGE, moved, context.strategy),
        must_be_true=_conditions(context, request),
        why=(
            "One roll, one member at a time: the assignor gives each partition to a member that subscribes to its "
            "topic, so that old and new members can be mixed.",
        ),
        moved=moved,
        cost=known_cost(forecast),
        unknowns=tuple(_unknowns(context, request, unknown)),
    )


def _cost_of_roll(context: MigrationContext, request: SubscriptionRequest) -> Transition | str:
    """Return what the roll costs, or in half a sentence why that is unknown."""
    if _added(context, request):
        return "what the migration costs in pauses and duplicates: it depends on partitions that the snapshot lacks"
    ready = context.ready_s(ROLL_SURGE)
    if ready is None:
        return "how long a pod takes until it is ready: none of the present ones shows it"
    least, most = (
        group_model(context.snapshot).with_topics(roll_change(context, ROLL_SURGE, 0, ready_s), request.to)
        for ready_s in (ready.least, ready.most)
    )
    return forecast_change(context, (least, most))


def describe_mixture(context: MigrationContext, request: SubscriptionRequest) -> str:
    """Return in a sentence what a roll would do to a group of RocketMQ while old and new clients are mixed."""
    present = _present(context)
    unshared = sorted({*present} ^ {*request.to})
    filtered = sorted(topic for topic in request.to if topic in present and request.to[topic] != ALL_MESSAGES)
    sentences = []
    if unshared:
        sentences.append(
            f"{describe_unread(context, request.to)}of {', '.join(unshared)} would have owners that do not subscribe "
            "to it, and nobody would read them; and each heartbeat would make brokers forget the other members' "
            "topics, and refuse pulls"
        )
    if filtered:
        sentences.append(
            f"brokers would filter {', '.join(filtered)} for all clients by one client's tags, and messages that these "
            "leave out would be passed over for good"
        )
    what = "; ".join(sentences) or "brokers would filter for all clients by one client's tags"
    return f"A rolling change would mix two subscriptions in group {context.snapshot.group}: {what}."


def _refuse_mixture(context: MigrationContext, request: SubscriptionRequest) -> None:
    """Raise ``RefusedError`` where members cannot be mixed and no Deployment is named that starts after the old one."""
    if _can_mix(context):
        return
    group, static = context.snapshot.group, _static(context)
    kept = (
        "nobody has watched such members of the consumer protocol come back with other topics."
        if context.strategy in SERVER_ASSIGNORS
        else "the coordinator keeps the assignment of one that comes back, whatever it subscribes to: its new topics "
        "would stay unread until another rebalance."
    )
    what = (
        f"Members of group {group} have instance ids ({', '.join(static[:2])}), and {kept}"
        if static
        else describe_mixture(context, request)
    )
    raise refused(
        Refusal.MIXED_SUBSCRIPTIONS,
        f"{what} Name a green Deployment (--green), so that all stop before any starts; with a second group "
        "(--new-group) both side by side are weighed, too.",
    )


def _can_mix(context: MigrationContext) -> bool:
    return not system_of(context.snapshot).members_allocate and not _static(context)


def _static(context: MigrationContext) -> list[str]:
    return [member.instance_id for member in context.snapshot.members if member.instance_id is not None]


def _check_topics(context: MigrationContext, request: SubscriptionRequest) -> None:
    if system_of(context.snapshot).members_allocate:
        return
    tagged = sorted(topic for topic, tags in request.to.items() if tags != ALL_MESSAGES)
    if tagged:
        raise BadInputError(
            f"to: found tags of {tagged[0]}, expected {ALL_MESSAGES}: Kafka's brokers filter nothing by tags"
        )
    if set(request.to) == _present(context):
        raise BadInputError(
            f"group {context.snapshot.group} subscribes to {', '.join(sorted(request.to))} already: nothing is to be "
            "changed"
        )


def _present(context: MigrationContext) -> set[str]:
    return {state.queue.topic for state in context.snapshot.data_queues}


def _moved(context: MigrationContext, request: SubscriptionRequest) -> MovedQueues:
    """Return what moves: every queue that is read on, and of a topic that is left out what brokers go on to show."""
    owned = [owner.queue.topic for owner in context.current.owners if owner.owner is not None]
    return MovedQueues(sum(topic in request.to for topic in owned), len(owned))


def _added(context: MigrationContext, request: SubscriptionRequest) -> list[str]:
    return sorted(request.to.keys() - _present(context))


def _conditions(context: MigrationContext, request: SubscriptionRequest) -> tuple[str, ...]:
    named = ", ".join(
        topic if tags == ALL_MESSAGES else f"{topic} ({tags})" for topic, tags in sorted(request.to.items())
    )
    removed = sorted(_present(context) - request.to.keys())
    gone = [f"nobody needs what then waits, and comes, in {', '.join(removed)} for this group"] if removed else []
    starts = [
        f"the consumers begin {topic} where they should, by their own setting for a topic without offsets"
        for topic in _added(context, request)
    ]
    return (f"the changed template makes every consumer subscribe to {named}, and to nothing else", *gone, *starts)


def _unknowns(context: MigrationContext, request: SubscriptionRequest, unknown: str | None) -> Iterator[str]:
    if unknown is not None:
        yield unknown
    added: Sequence[str] = _added(context, request)
    if added:
        yield (
            f"how much of {', '.join(added)} waits until somebody reads it, as the snapshot has no rate of it: planner "
            "forecast with change.kind subscription and that rate says it"
        )
