"""Broadcasting groups: every client consumes every queue, so nothing ever moves (3.8)."""

import numpy as np

from planner.allocation.ordering import java_sorted, sorted_queues
from planner.errors import BadInputError
from planner.simulation.dynamics.rocketmq.changes import Join, Leave, Restart
from planner.simulation.dynamics.rocketmq.request import ForecastRequest
from planner.simulation.dynamics.trials import Trials

WARNING = "the group is broadcasting: every client consumes every queue from offsets of its own, so nothing moves"


def broadcasting_trials(request: ForecastRequest) -> Trials:
    """Return trials in which nothing moves; refuse changes that are not of members."""
    change = request.change
    if not isinstance(change, Join | Leave | Restart):
        raise BadInputError(
            "change.kind: found one that is no join, leave or restart, which has no forecast for broadcasting yet"
        )
    queues = [[queue.topic, queue.broker, queue.queue_id] for queue in sorted_queues(request.queues)]
    before = [str(client.id) for client in request.clients]
    joined = (
        [client.id or f"new-{number + 1}" for number, client in enumerate(change.clients)]
        if isinstance(change, Join)
        else []
    )
    left = set(change.clients) if isinstance(change, Leave) else set()
    after = [client for client in (*before, *joined) if client not in left]
    nothing = np.zeros((request.trials, len(queues)))
    return Trials(
        queues=queues,
        before=dict.fromkeys(java_sorted(before), queues),
        after=dict.fromkeys(java_sorted(after), queues),
        owner_before=[None] * len(queues),
        owner_after=[None] * len(queues),
        moved=[],
        moves=np.zeros(nothing.shape, dtype=bool),
        pause_s=nothing,
        duplicates=nothing,
        burst=nothing,
        settle_s=np.zeros(request.trials),
        warnings=(*request.warnings, WARNING),
    )
