"""What more Kafka consumers in each process would do: at most, as nobody reports what the members of a pod share."""

from collections.abc import Callable
from math import ceil
from typing import Final

from planner.model.snapshot import GroupSnapshot
from planner.simulation.need import Need
from planner.snapshot.other_levers import kafka_lever
from planner.snapshot.pod_capacity import STATED
from planner.text.words import counted, number, per_second, percent, queues

SHARED: Final = 0.9
"""A pod whose members do less than this share of what each does alone has a limit that they share."""

FREE: Final = 0.5
"""A consumer that is used less than this has most of its time to spare: it is not what holds messages up."""


def more_members(snapshot: GroupSnapshot, need: Need, most_owned: Callable[[int], int | None]) -> str | None:
    """Return what more members in each pod would do; ``None`` where nobody knows how many a pod runs.

    ``most_owned`` says how many partitions the busiest of so many members owns, ``None`` where that is unknown.
    """
    per_pod = snapshot.members_per_pod
    is_other = kafka_lever(snapshot.strategy, [member.client_id for member in snapshot.members]) is not None
    if is_other or per_pod is None or snapshot.uneven_pods:
        return None
    limit = _hot_partition(snapshot) or _shared_limit(snapshot, per_pod)
    if need.used is not None and need.used < FREE:
        limit = f"the busiest is used at {percent(need.used)}"
    return f"More consumers a process would not help: {limit}" if limit else _compared(snapshot, need, most_owned)


def _compared(snapshot: GroupSnapshot, need: Need, most_owned: Callable[[int], int | None]) -> str | None:
    """Return what as many members on the present pods own; ``None`` where that cannot be computed."""
    per_pod, pods = snapshot.members_per_pod or 1, snapshot.count
    most = max(len(snapshot.data_queues) // pods, per_pod)
    target = most if need.members is None else min(ceil(need.members / pods), most)
    now, then = most_owned(per_pod * pods), most_owned(target * pods)
    if now is None or then is None:
        return None
    if then >= now:
        return f"More consumers a process would not help: the busiest would keep {queues(now, snapshot.system)}"
    return (
        f"{need.instead}: {target} instead of {counted(per_pod, 'consumer')} a process (Spring: concurrency) would "
        f"leave the busiest {then} instead of {queues(now, snapshot.system)} and so serve at most "
        f"{per_second(now / then)} times as much, if what the listener calls and the pod's processors keep up; planner "
        "migrate update brings it in the pods' template. max.poll.records changes nothing where a listener handles one "
        "record at a time"
    )


def _hot_partition(snapshot: GroupSnapshot) -> str | None:
    """Return which partition alone is more than one consumer can do, whichever consumer owns it; ``None`` for none."""
    capacity = snapshot.consumer_capacity
    if capacity is None or capacity.is_lower_bound:
        return None
    hot = max(snapshot.data_queues, key=lambda state: state.upper_arrival_rate or 0.0)
    used = (hot.upper_arrival_rate or 0.0) / capacity.sure_messages_per_s
    return f"partition {hot.queue} alone takes {percent(used)} of what one can do" if used > 1.0 else None


def _shared_limit(snapshot: GroupSnapshot, per_pod: int) -> str | None:
    """Return which limit the members of a pod share, by what was measured of one and of all; ``None`` for none."""
    capacity = snapshot.capacity
    pod = capacity.pod_messages_per_s if capacity else None
    if capacity is None or pod is None or per_pod == 1 or STATED in (capacity.source, capacity.pod_source):
        return None
    if capacity.is_lower_bound or pod >= SHARED * per_pod * capacity.messages_per_s:
        return None
    alone = number(capacity.messages_per_s)
    return f"the {per_pod} of a pod together did {number(pod)} messages/s and one alone {alone}: they share a limit"
