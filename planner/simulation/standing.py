"""Queues of which nothing is consumed although messages wait: no work for any number of consumers."""

from dataclasses import replace

from planner.model.snapshot import GroupSnapshot, QueueState
from planner.text.words import some


def without_standing_work(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return the snapshot with nothing waiting in, and nothing coming to, the queues that stand still.

    Their consumer hangs or passes them over: another count neither frees it nor gets to what waits there.
    """
    standing = snapshot.standing_queues
    if not standing:
        return snapshot
    names = frozenset(standing)
    states = tuple(_idle(state) if state.queue in names else state for state in snapshot.queues)
    return replace(snapshot, queues=states, blocked_queues=standing)


def _idle(state: QueueState) -> QueueState:
    return replace(state, lag=0, arrival_rate=0.0, upper_arrival_rate=0.0)


def describe_standing_work(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Return in a sentence what an outcome leaves out of the queues that stand still; empty where none does."""
    if not snapshot.standing_queues:
        return ()
    return (
        f"when {some(snapshot.standing_queues)} will be consumed again: nothing is consumed there, so that what waits "
        "and comes in there is left out",
    )
