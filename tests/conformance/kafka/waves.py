"""Many groups changed at once on one cluster; those of a wave share their client processes, and the blow if any."""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TypeVar

import psutil

from tests.clusters.errors import StartFailedError
from tests.clusters.kafka import KafkaCluster
from tests.conformance.kafka import changes
from tests.conformance.kafka.cells import Case
from tests.conformance.kafka.group import SPREAD_S, Before, DisturbedError, Group
from tests.conformance.kafka.matrix import METADATA_AGE_S
from tests.conformance.kafka.requests import request
from tests.conformance.kafka.stage import Stage, stage
from tests.conformance.measure import NotSettledError
from tests.conformance.record import Record

MOST_LATE_S = 0.5
"""A machine that wakes a sleeper later than this adds too much of its own."""
UNUSABLE = (DisturbedError, NotSettledError, StartFailedError)
"""What makes a transition worth nothing: it is told, and tried again by a later run."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def run_wave(cluster: KafkaCluster, cases: Sequence[Case]) -> list[Record]:
    """Return the records of the cases that went well; all have the same client version and the same blow."""
    blow = cases[0].cell.blow[0]
    first = cases[0].cell
    staged = stage(cluster, first.client, with_victims=bool(blow), release=first.release, is_cut=blow == "cut")
    with staged as on, ThreadPoolExecutor(len(cases)) as pool:
        groups = _usable(pool, _started, [Group(case, on) for case in cases])
        found = _usable(pool, _spread, groups) if not blow else _hit(pool, on, groups)
        records = _usable(pool, lambda one: _record(*one, len(groups)), found)
        for group in groups:
            group.end()
    return records


Seen = tuple[Group, Before]


def _started(group: Group) -> Group:
    group.start()
    return group


def _spread(group: Group) -> Seen:
    """Change a group some time after all are at rest, each at a time of its own."""
    # Partitions are found by the age of metadata, which has a phase of its own.
    spread_s = METADATA_AGE_S if group.cell.kind == "queues" else SPREAD_S
    time.sleep(group.dice.uniform(0, spread_s))
    return _changed(group, group.look(), None)


def _hit(pool: ThreadPoolExecutor, on: Stage, groups: Sequence[Group]) -> list[Seen]:
    """Hit the process of the victims of all groups that are at rest."""
    at_rest = _usable(pool, lambda group: (group, group.look()), groups)
    if not at_rest:
        return []
    blow, for_s = groups[0].cell.blow
    at_ms = on.kill() if blow == "kill" else on.freeze(for_s) if blow == "freeze" else on.cut(for_s)
    return _usable(pool, lambda one: _changed(*one, at_ms), at_rest)


def _changed(group: Group, before: Before, blow_ms: int | None) -> Seen:
    begun = psutil.cpu_times()
    group.await_settled(changes.make(group, blow_ms))
    group.busy = _busy(begun)
    return group, before


def _record(group: Group, before: Before, at_once: int) -> Record:
    case = group.case
    late_s = group.stage.lateness.longest_s(group.moment_ms / 1000, group.end_ms / 1000)
    if late_s > MOST_LATE_S:
        raise DisturbedError(f"the machine was {late_s:.2f} s late: too busy to measure")
    setup = {
        "cell": case.cell.document(),
        "repetition": case.repetition,
        "when": datetime.fromtimestamp(group.moment_ms / 1000, UTC).isoformat(timespec="seconds"),
        "busy": round(group.busy, 2),
        "late_s": round(late_s, 3),
        "groups": at_once,
    }
    observed = group.observed()
    return Record(case.id, "kafka", request(group, before, group.stage.cluster.version), observed, setup)


def _usable(pool: ThreadPoolExecutor, step: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """Do a step with all at the same time; return the answers of those with whom it went well."""
    futures = [pool.submit(step, item) for item in items]
    answers = []
    for future in futures:
        try:
            answers.append(future.result())
        except UNUSABLE as error:
            print(f"left out: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
    return answers


def _busy(begun: "psutil._common.scputimes") -> float:
    """Return which share of all cores was at work since then."""
    ended = psutil.cpu_times()
    spent = sum(ended) - sum(begun)
    idle = ended.idle - begun.idle
    return 1 - idle / spent if spent else 0.0
