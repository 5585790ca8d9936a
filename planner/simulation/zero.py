"""``outcome_around_zero``: a group whose last pod stops, or whose first one starts."""

from collections.abc import Mapping
from dataclasses import replace

from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.figures import outcome_of
from planner.simulation.group_model import group_model
from planner.simulation.moves import MoveRange
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.transition import with_transition

NEXT_MESSAGE = "how long the next message waits: for the next look, a pod's start and the group's first rebalance"
COLD_START = "how long the pods take to start: the forecast begins when their consumers do"


def outcome_around_zero(snapshot: GroupSnapshot, count: int, digest: str) -> CandidateOutcome:
    """Return what ``count`` pods mean for a group that has none, or none for one that has some.

    Every queue loses its owner, or gets its first: so many move. From zero its transition says when the first pods'
    members have delivered from every queue (``settle_s``); nobody delivered before, so that there is no pause.
    ``digest`` is the snapshot's.
    """
    outcome = _owners_around_zero(snapshot, count)
    return with_transition(outcome, snapshot, digest) if count else outcome


def _owners_around_zero(snapshot: GroupSnapshot, count: int) -> CandidateOutcome:
    members = count * (snapshot.members_per_pod or 1)
    clients = tuple(f"new consumer {number}" for number in range(1, members + 1))
    queues = sorted(state.queue for state in snapshot.data_queues)
    model = group_model(snapshot)
    owners: Mapping[Queue, str | None] = model.fresh_owners(clients) if clients else dict.fromkeys(queues)
    moved = sum(state.owner != owners[state.queue] for state in snapshot.data_queues)
    outcome = outcome_of(
        snapshot,
        strategy=snapshot.strategy or "",
        is_current=False,
        is_useful=True,
        largest_share=None if clients else 0,
        moves=MoveRange(moved, moved, (), ()),
        owners=owners,
        clients=clients,
        unknowns=(COLD_START, *model.fresh_unknowns()) if clients else (NEXT_MESSAGE,),
    )
    return replace(outcome, count=count, members_per_pod=snapshot.members_per_pod or 1)
