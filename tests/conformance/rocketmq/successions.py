"""Members that others take over from: clients of another release, or those of another group."""

import time
from dataclasses import replace
from typing import Final

from planner.deployments.offsets.rocketmq import RocketMQOffsets
from planner.sources.rocketmq import RocketMQAdmin
from tests.conformance.rocketmq.cells import Step
from tests.conformance.rocketmq.changes import Calm, Change, ids, in_turn, instance, since, sleep_until
from tests.conformance.rocketmq.group import LiveGroup

CLUSTER: Final = "DefaultCluster"


def upgrade(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """Each member in turn is shut down and starts again with another release."""
    before, group.load = ids(group), group.cluster.load(step["to"])
    order = group.random.sample(group.members, len(group.members))
    successors = [group.spawn(instance(old)) for old in order]
    calm()
    at_ms, starts = in_turn(group, order, successors, step["interval_s"])
    change = {
        "kind": "upgrade",
        "to": step["to"],
        "clients": [life.client_id for life in order],
        "interval_s": step["interval_s"],
    }
    request = group.request(change, group.strategy, group.options, before, {})
    group.config = replace(group.config, client=step["to"])
    return Change(at_ms, request, starts)


def blue_green(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """All members are shut down, the offsets are copied, and as many of another group start."""
    before, old, origin = ids(group), group.members, group.group
    with RocketMQAdmin(group.cluster.name_server) as admin:
        offsets = RocketMQOffsets(admin, CLUSTER, [group.name], None, None)
        group.group = f"{origin}-v2"
        group.cluster.create_group(group.group)
        successors = [group.spawn(group.new_id()) for _ in old]
        offsets.committed(origin)  # connections are open then, and a copy takes milliseconds
        calm()
        at_ms = time.time() * 1000
        for life in old:
            group.end(life, "graceful")
        sleep_until(at_ms + step["clone_s"] * 1000)
        offsets.clone(origin, group.group)
        cloned_ms = time.time() * 1000
    starts = [group.begin(life) for life in successors]
    change = {
        "kind": "blue_green",
        "to_group": group.group,
        "clients": [{"id": life.client_id} for life in successors],
        "stop_s": 0,
        "clone_s": round((cloned_ms - at_ms) / 1000, 3),
        "start_s": round((starts[0] - at_ms) / 1000, 3),
    }
    request = group.request(change, group.strategy, group.options, before, {})
    return Change(at_ms, {**request, "group": origin}, since(at_ms, starts))
