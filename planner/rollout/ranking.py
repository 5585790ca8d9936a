"""Which pod a ReplicaSet stops first when no cost is set: ``ActivePodsWithRanks``, Kubernetes 1.36."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cmp_to_key

from planner.model.pods import Pod

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def stop_order(pods: Iterable[Pod], now: datetime) -> tuple[Pod, ...]:
    """Return the Deployment's pods in the order in which its ReplicaSet would stop them at ``now``.

    Unassigned before assigned, pending before unknown before running, not ready before ready, lower deletion cost
    first, more pods on the same node first, ready for a shorter time first, more restarts first, younger first. Times
    count by the whole part of their binary logarithm, and among equal ones the uid decides: so after some hours it is
    as good as chance. Pods that have finished or are ending are left out. ``restarts`` are all containers' together,
    where the ReplicaSet compares the container that restarted most.

    20 000 random Deployments gave what the class itself gives, but for two in which its comparison runs in a circle.
    """
    active = [pod for pod in pods if not pod.has_finished and not pod.is_ending]
    on_node = Counter(pod.node for pod in active)

    def compare(pod: Pod, other: Pod) -> int:
        # The first rule that distinguishes the two decides; what it takes for smaller goes first.
        return next((difference for difference in _differences(pod, other, on_node, now) if difference), 0)

    return tuple(sorted(sorted(active, key=lambda pod: pod.name), key=cmp_to_key(compare)))


def _differences(pod: Pod, other: Pod, on_node: Counter[str | None], now: datetime) -> Iterator[int]:
    yield bool(pod.node) - bool(other.node)
    yield _PHASES.get(pod.phase, 0) - _PHASES.get(other.phase, 0)
    yield pod.is_ready - other.is_ready
    yield pod.deletion_cost - other.deletion_cost
    yield on_node[other.node] - on_node[pod.node]
    if pod.is_ready and other.is_ready:
        yield _by_age(pod.ready_at, other.ready_at, pod, other, now)
    yield other.restarts - pod.restarts
    yield _by_age(pod.created_at, other.created_at, pod, other, now)


def _by_age(mine: datetime | None, others: datetime | None, pod: Pod, other: Pod, now: datetime) -> int:
    """Return which of two times is later; by their logarithm, then by uid, where both are known."""
    if mine == others:
        return 0
    if mine is None or others is None:
        return (mine is not None) - (others is not None)
    return _logarithm(mine, now) - _logarithm(others, now) or (-1 if pod.uid < other.uid else 1)


def _logarithm(time: datetime, now: datetime) -> int:
    nanoseconds = (now - time).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1
