"""Record cells: run real groups, read them as ``planner snapshot`` does, keep samples and truth in a folder each."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from planner.documents.policy import ConsumerScalingPolicy
from planner.model.samples import GroupSample
from planner.sources.capture import write_capture
from planner.sources.live import Installation, Pace, watch_installation
from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.matrix.cells import BLOCKED_QUEUE, Cell
from tests.matrix.groups import BACKLOG_S, POP_SETTINGS, Groups, KafkaGroups, RocketMQGroups
from tests.matrix.policies import policy, policy_text

TRUTH_FILE = "truth.json"
WARM_S = 30.0
"""A group has run for so long when the watch begins; its backlog was sent before."""

SHARED_S = 180.0
"""A limit against hanging only: until then its members share the queues."""

BLOCKED_WATCH_S = 240.0
"""Kafka throws out a member that has not polled for 300 s."""


@dataclass(frozen=True)
class Recorded:
    """What was read of one cell's group, and what its consumers did: client -> messages a second over the watch."""

    cell: Cell
    policy: str
    samples: tuple[GroupSample, ...]
    sample_every_s: float
    rates: dict[str, float]


@contextmanager
def running(*, kafka: bool, rocketmq: bool) -> Iterator[dict[bool, Groups]]:
    """Give the groups of one broker of each system that is asked for: key ``True`` is Kafka's."""
    with ExitStack() as opened:
        groups: dict[bool, Groups] = {}
        if kafka:
            groups[True] = KafkaGroups(opened.enter_context(KafkaCluster.start()))
        if rocketmq:
            logs = Path(tempfile.mkdtemp(prefix="matrix-"))
            opened.callback(shutil.rmtree, logs, ignore_errors=True)
            cluster = opened.enter_context(RocketMQCluster.start(NEW, brokers=1, settings=POP_SETTINGS))
            groups[False] = RocketMQGroups(cluster, logs)
        yield groups


def record(cells: Sequence[Cell], groups: dict[bool, Groups], watch_s: float) -> list[Recorded]:
    """Run the cells side by side and return what was read of each while it was watched for ``watch_s``."""
    by_system = {kind: [cell for cell in cells if cell.is_kafka == kind] for kind in groups}
    present = {kind: mine for kind, mine in by_system.items() if mine}
    with ThreadPoolExecutor(len(present)) as pool:
        runs = [pool.submit(_record_system, mine, groups[kind], watch_s) for kind, mine in present.items()]
        return [recorded for run in runs for recorded in run.result()]


def _record_system(cells: Sequence[Cell], groups: Groups, watch_s: float) -> list[Recorded]:
    try:
        groups.start(cells, BACKLOG_S + WARM_S + SHARED_S + watch_s)
        started = time.monotonic()
        installation = Installation(tuple(policy(cell, groups.address) for cell in cells))
        _await_shared(installation, cells)
        time.sleep(max(0.0, BACKLOG_S + WARM_S - (time.monotonic() - started)))
        pace = Pace()
        samples = _watched(installation, watch_s, pace)
        return [_recorded(cell, groups, tuple(samples[cell.name]), pace) for cell in cells]
    finally:
        groups.stop()


def _watched(installation: Installation, seconds: float, pace: Pace) -> dict[str, list[GroupSample]]:
    samples: dict[str, list[GroupSample]] = {one.spec.source.group: [] for one in installation.policies}
    for of_policy, answer in watch_installation(installation, seconds, pace):
        if isinstance(answer, GroupSample):
            samples[_group(of_policy)].append(answer)
    return samples


def _group(of_policy: ConsumerScalingPolicy) -> str:
    return of_policy.spec.source.group


def _await_shared(installation: Installation, cells: Sequence[Cell]) -> None:
    """Return once each group has all its members; queues that are popped have no owner to wait for."""
    deadline = time.monotonic() + SHARED_S
    while True:
        samples = _watched(installation, 0, Pace())
        waiting = [cell.name for cell in cells if not _is_shared(cell, samples[cell.name])]
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {SHARED_S:g} s these groups do not have all their members: {waiting}")
        time.sleep(1.0)


def _is_shared(cell: Cell, samples: Sequence[GroupSample]) -> bool:
    if not samples or len(samples[-1].members) != cell.members:
        return False
    owned = [queue for queue in samples[-1].owners if not queue.is_retry]
    return cell.client == "pop" or len(owned) == cell.queues


def _recorded(cell: Cell, groups: Groups, samples: tuple[GroupSample, ...], pace: Pace) -> Recorded:
    first, last = samples[0].at, samples[-1].at
    consumed = groups.consumed(cell, first.timestamp() * 1000, last.timestamp() * 1000)
    seconds = (last - first).total_seconds()
    rates = {client: round(count / seconds, 3) for client, count in sorted(consumed.items())}
    return Recorded(cell, policy_text(cell, groups.address), samples, pace.sample_every_s, rates)


def judged_s(cell: Cell, watch_s: float) -> float:
    """Return how much of a watch is judged."""
    return min(watch_s, BLOCKED_WATCH_S) if cell.cause == BLOCKED_QUEUE else watch_s


def keep(folder: Path, recorded: Recorded) -> Path:
    """Write a cell's samples, a capture as ``planner doctor --capture`` reads it, and its truth beside it."""
    place = folder / recorded.cell.name
    cell = recorded.cell
    versions = (("client", cell.client),)
    story = (f"{cell.members} members of {cell.capacity:g} messages/s each, {cell.rate:g} come in",)
    write_capture(place, recorded.samples, recorded.sample_every_s, story, versions)
    truth = {
        "cell": asdict(cell),
        "members": cell.members,
        "queues": cell.queues,
        "threads": cell.threads,
        "arrival_rate": cell.rate,
        "capacity_by_service_time": cell.capacity,
        "consumed_by_client": recorded.rates,
        "policy": recorded.policy,
    }
    (place / TRUTH_FILE).write_text(json.dumps(truth, indent=2) + "\n")
    return place
