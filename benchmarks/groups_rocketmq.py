"""How fast many RocketMQ groups are read: real brokers, real members, and ``mqadmin consumerProgress`` in the same run.

1 000 groups on 3 brokers. ``LIVE_GROUPS`` of them (20 by default) have four real members each, which consume and
answer for themselves: all in one JVM, each with connections and threads of its own as in a process of its own. 2 cores
do not carry 4 000 of them beside three brokers. The others are offline, with commits that the brokers loaded from their
stores. So two things are measured: one look at all, and one at the live ones over and over until they are 1 000, which
asks for the running info of 4 000 members. Each look is by a client that knows nothing yet. A group that is looked at
again shares the state of its retry topic with the time before, four of twelve requests.
"""

import os
import re
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from planner.model.samples import GroupSample
from planner.sources.rocketmq import RocketMQAdmin, observe_groups
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve

MEMBERS = ("m1", "m2", "m3", "m4")
TOPICS = 20
QUEUES = 2
GROUPS = 1000
READY_S = 240.0
IDLE_S = 10.0
COMPARED = 5
"""Calls of mqadmin: each starts a JVM for one group, so that a few tell what a thousand would take."""


def main() -> None:
    """Print groups per second for us and for mqadmin, over the same groups at the same brokers."""
    live = [f"live-{number:04}" for number in range(int(os.environ.get("LIVE_GROUPS", "20")))]
    offline = [f"offline-{number:04}" for number in range(GROUPS - len(live))]
    files = {"store/config/consumerOffset.json": commits(offline)}
    with RocketMQCluster.start(NEW, brokers=3, broker_files=files) as cluster:
        start_members(cluster, live)
        all_s = min(read_s(cluster, None, GROUPS) for _ in range(3))
        idle_s = busy_s()
        time.sleep(IDLE_S)
        idle_s = busy_s() - idle_s
        spent_s = time.process_time()
        live_s = min(read_s(cluster, live * (GROUPS // len(live)), GROUPS) for _ in range(3))
        spent_s = (time.process_time() - spent_s) / 3
        one_s = min(read_s(cluster, live[:1], 1) for _ in range(3))
        theirs_s = sum(progress_s(cluster, group) for group in live[:COMPARED]) / COMPARED
    groups_per_s = GROUPS / live_s
    print(f"{all_s:8.2f} s a look at {GROUPS} groups, {len(live)} of them with {len(MEMBERS)} members each")
    print(
        f"{live_s:8.2f} s a look at {GROUPS} of which each has {len(MEMBERS)} members: {GROUPS * len(MEMBERS)} answers"
    )
    print(f"{spent_s:8.2f} s of one core for it are ours; all else takes {idle_s / IDLE_S:.2f} cores without us")
    print(f"{one_s:8.2f} s a look at one of them")
    print(f"{groups_per_s:8.1f} groups/s with running info, against {1 / theirs_s:.2f} by mqadmin without")
    print(f"{groups_per_s * theirs_s:8.0f} times as many; {GROUPS / all_s * theirs_s:.0f} times in a look at all")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MiB peak of this process", flush=True)


def busy_s() -> float:
    """Return the seconds that all cores of this machine were busy since it started (``proc(5)``)."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def commits(groups: list[str]) -> str:
    """Return what a broker finds in its store: each group has committed on all queues of one topic there."""
    table = ",".join(
        f'"topic-{number % TOPICS:02}@{group}":{{{",".join(f"{queue}:3" for queue in range(QUEUES))}}}'
        for number, group in enumerate(groups)
    )
    return f'{{"offsetTable":{{{table}}}}}'


def start_members(cluster: RocketMQCluster, groups: list[str]) -> None:
    """Start four members of each group, and wait until each group has committed something."""
    topics = [f"topic-{number:02}" for number in range(TOPICS)]
    for topic in topics:
        cluster.create_topic(topic, QUEUES)
    load = cluster.load()
    curves = [
        QueueCurve(topic, broker.name, queue, ((0, 5), (1, 5)))
        for topic in topics
        for broker in cluster.brokers
        for queue in range(QUEUES)
    ]
    load.start_producer(curves).wait(60)
    lines: list[dict[str, str | int | float]] = [
        {
            "group": group,
            "topics": topics[number % TOPICS],
            "instances": ",".join(f"{group}-{member}" for member in MEMBERS),
            "threads": 1,
        }
        for number, group in enumerate(groups)
    ]
    started = time.perf_counter()
    ward = load.start_ward(lines, wait_ready=False, heap="2g")
    ward.await_ready(READY_S)
    print(f"{len(groups) * len(MEMBERS)} members started in {time.perf_counter() - started:.0f} s", flush=True)
    await_whole(cluster, groups)


def await_whole(cluster: RocketMQCluster, groups: list[str]) -> None:
    """Return once a look finds each group whole: members, owners, offsets and nothing to complain about."""
    deadline = time.monotonic() + READY_S
    while found := incomplete(cluster, groups):
        if time.monotonic() > deadline:
            sys.exit(f"after {READY_S:g} s {len(found)} of {len(groups)} groups are not whole: {found[0]}")
        time.sleep(10)


def incomplete(cluster: RocketMQCluster, groups: list[str]) -> list[str]:
    """Return why groups are not whole yet."""
    with RocketMQAdmin(cluster.name_server) as admin:
        found = observe_groups(admin, groups=groups, cluster=None, at=datetime.now(UTC))
        return [reason for group, sample in found if (reason := _flaw(group, sample))]


def _flaw(group: str, sample: object) -> str:
    if not isinstance(sample, GroupSample):
        return str(sample)
    owned = sum(len(member.owned or ()) for member in sample.members)
    if len(sample.members) < len(MEMBERS) or owned < len(sample.routes.read_queues):
        return f"{group} has {len(sample.members)} members that own {owned} queues"
    return "; ".join(sample.problems)


def read_s(cluster: RocketMQCluster, groups: list[str] | None, count: int) -> float:
    """Return the seconds of one look by a client that knows nothing yet; leave unless it finds so many groups."""
    started = time.perf_counter()
    with RocketMQAdmin(cluster.name_server) as admin:
        found = list(observe_groups(admin, groups=groups, cluster=None, at=datetime.now(UTC)))
    took_s = time.perf_counter() - started
    failed = [str(one) for _, one in found if not isinstance(one, GroupSample)]
    if len(found) != count or failed:
        sys.exit(f"found {len(found)} groups, expected {count}; {len(failed)} failed: {failed[:1]}")
    return took_s


def progress_s(cluster: RocketMQCluster, group: str) -> float:
    """Return the seconds of one ``mqadmin consumerProgress`` for a group; leave when it tells no offsets."""
    tool = cluster.mqadmin()
    started = time.perf_counter()
    told = tool.run("consumerProgress", {"g": group})
    took_s = time.perf_counter() - started
    if not re.search(r"Consume Diff Total|Diff Total", told):
        sys.exit(f"mqadmin told: {told[-500:]}")
    return took_s


if __name__ == "__main__":
    main()
