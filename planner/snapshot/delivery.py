"""How a group's messages come to its members: from queues that they own or by popping, in order or not."""

from typing import Any

from planner.model.machine_rooms import with_rooms
from planner.model.samples import GroupSample
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.unlisted import consumes_in_order, is_of_grpc_clients, is_share_group

SERVER_SIDE = ("AVG", "AVG_BY_CIRCLE")
"""The strategies that a broker knows (``QueryAssignmentProcessor``), and so those of members that pop."""

_ALL_QUEUES = -1
"""``popShareQueueNum`` where nobody set it (``BrokerConfig#defaultPopShareQueueNum``, 5.0.0 to 5.5.0)."""


def count_shared_queues(newest: GroupSample) -> int:
    """Return how many data queues several members own at once: all of them where members pop."""
    data = newest.data_queues
    return len(data) if pops(newest) else sum(len(newest.owners.get(queue, ())) > 1 for queue in data)


def pops(newest: GroupSample) -> bool:
    """Return whether brokers hand messages to whichever member asks: always in a share group, and to gRPC clients.

    A remoting client whose queues the broker gives out (``clientRebalance`` false, 5.x) either has queues of its own or
    pops: it then reports no data queue.
    """
    if is_of_grpc_clients(newest) or is_share_group(newest):
        return True
    lets_the_broker = any(
        member.tuning and ("clientRebalance", "false") in member.tuning.properties for member in newest.members
    )
    return lets_the_broker and not any(newest.owners.get(queue) for queue in newest.data_queues)


def is_orderly(newest: GroupSample) -> bool | None:
    """Return whether members consume in order; of gRPC clients the group's settings decide, not the members."""
    if is_of_grpc_clients(newest):
        return consumes_in_order(newest)
    tunings = [member.tuning for member in newest.members if member.tuning is not None]
    return any(tuning.orderly for tuning in tunings) if tunings else None


def strategy_options(newest: GroupSample, strategy: str | None, settings: SnapshotSettings) -> dict[str, Any]:
    """Return the strategy's parameters: what the policy states, and that members pop, by default from all queues."""
    stated = settings.strategy_options if strategy == settings.strategy else {}
    stated = with_rooms(stated, [member.identity for member in newest.members], settings.new_pods.room)
    return {"pop_share_queues": _ALL_QUEUES, **stated} if strategy in SERVER_SIDE and pops(newest) else dict(stated)
