"""Reconciles until a plan is at its end: what ``planner apply`` does, and can be stopped in at any moment."""

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Final

from planner.deployments.api import RolloutApi
from planner.deployments.clock import ServerClock
from planner.deployments.cluster_state import ClusterState, Policies
from planner.deployments.events import ClusterEvents
from planner.deployments.groups import Groups
from planner.deployments.leases import ClusterLeases
from planner.deployments.plans import ClusterPlans
from planner.errors import PlannerError
from planner.execution.lease import holder_name, lease_name
from planner.execution.ports import StoredPlan
from planner.execution.reconcile import Outcome, Ports, ReconcileResult, run_reconcile

PAUSE_S: Final = 1.0
"""Between two observations while nothing moves."""
_FINAL: Final = (Outcome.DONE, Outcome.GONE)


def open_ports(api: RolloutApi, namespace: str, groups: Groups, policies: Policies) -> Ports:
    """Return the ports on an API server, all in one namespace and by the server's time."""
    clock = ServerClock(api.server_time)
    return Ports(
        plans=ClusterPlans(api, namespace),
        cluster=ClusterState(api, namespace, groups, policies),
        leases=ClusterLeases(api, namespace),
        events=ClusterEvents(api, namespace, clock),
        clock=clock,
    )


def executor_name() -> str:
    """Return a name that no other process has, now or later."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def drive(
    ports: Ports, name: str, executor: str, sleep: Callable[[float], object] = time.sleep
) -> Iterator[ReconcileResult]:
    """Yield how each reconcile ended, to the plan's end: the last one is ``DONE`` or ``GONE``."""
    while True:
        turned = run_reconcile(ports, name, executor)
        yield turned
        if turned.outcome in _FINAL:
            return
        if turned.outcome is not Outcome.MOVED:
            sleep(PAUSE_S)


def give_back(ports: Ports, stored: StoredPlan, executor: str) -> bool:
    """Give the group's lease back where it is ours, so that who goes on need not wait; ``False`` if that failed."""
    name = lease_name(stored.plan.group)
    try:
        lease = ports.leases.read(name)
        if lease is not None and lease.holder == holder_name(executor, stored.key):
            ports.leases.write(name, lease, None, ports.clock())
    except PlannerError:
        return False  # it runs out by itself
    return True
