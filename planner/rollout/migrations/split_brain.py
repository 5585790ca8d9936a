"""Two allocation strategies in one RocketMQ group at a time: what that would do, and changes that would bring it."""

from collections.abc import Collection, Iterator

from planner.allocation.registry import known_names, runnable_strategy
from planner.allocation.strategy import Strategy
from planner.model.queues import message_queues
from planner.rollout.migrations.migration import MigrationContext
from planner.rollout.refusals import Refusal, refused
from planner.rollout.template import TemplateChange
from planner.simulation.group_model import system_of
from planner.simulation.rocketmq.ownership import ownership, views_with
from planner.snapshot.strategy import STRATEGY_OF_CLASS

_TELLING = ("STRATEGY", "ALLOCAT")


def refuse_rolling(context: MigrationContext, change: TemplateChange) -> None:
    """Raise ``RefusedError`` for a change that would bring another strategy to one RocketMQ member after the other.

    What an image makes of its settings nobody knows here. As strategies count RocketMQ's own classes, and
    a strategy's name in a variable or argument that says "strategy" or "allocation".
    """
    if not system_of(context.snapshot).members_allocate:
        return
    for to in _strategies(change):
        if to != context.strategy:
            new = runnable_strategy(to)
            what = (
                describe_split_brain(context, new, to)
                if new
                else f"A rolling change would tear the group: members would mix {to} in."
            )
            raise refused(Refusal.SPLIT_BRAIN, f"{what} Use the migration strategy.")


def describe_split_brain(context: MigrationContext, new: Strategy, to: str) -> str:
    """Return in a sentence what the group is while half of its members follow one strategy and half the other."""
    members, snapshot = context.snapshot.clients, context.snapshot
    old = runnable_strategy(context.strategy, snapshot.strategy_options)
    if old is None:
        return f"A rolling change would tear the group: members would mix {context.strategy} and {to}."
    half = len(members) // 2 or 1
    queues = message_queues(state.queue for state in snapshot.data_queues)
    halves = ownership(views_with([(m, new if index < half else old) for index, m in enumerate(members)], queues))
    return (
        f"A rolling change would tear the group: with {half} of {len(members)} members on {to}, "
        f"{len(halves.doubled)} queues have two owners and {len(halves.orphans)} none."
    )


def describe_unread(context: MigrationContext, topics: Collection[str]) -> str:
    """Return how many queues would be unread of the topics that are given up, half of the members being new.

    A member's own strategy gives it queues of topics to which it does not subscribe, too. The text precedes "of" and
    the topics' names.
    """
    members, snapshot = context.snapshot.clients, context.snapshot
    strategy = runnable_strategy(context.strategy, snapshot.strategy_options)
    queues = message_queues(state.queue for state in snapshot.data_queues if state.queue.topic not in topics)
    if strategy is None or not queues:
        return "queues "
    half = len(members) // 2 or 1
    owned = ownership(views_with([(member, strategy) for member in members], queues))
    unread = sum(owner in members[:half] for owners in owned.owners.values() for owner in owners)
    return f"with {half} of {len(members)} members on the new one, {unread} of {len(queues)} queues "


def _strategies(change: TemplateChange) -> Iterator[str]:
    """Yield the strategies that a change names."""
    for container in change.containers:
        settings = [(variable.name, variable.value) for variable in container.env]
        settings += [
            (name, value) for name, _, value in (argument.partition("=") for argument in container.arguments or ())
        ]
        for name, value in settings:
            simple = value.rpartition(".")[2]
            if simple in STRATEGY_OF_CLASS:
                yield STRATEGY_OF_CLASS[simple]
            elif value in known_names() and any(word in name.upper() for word in _TELLING):
                yield value
