"""Kafka groups of all three protocols on one broker, changed while they work."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

from tests.clusters.errors import StartFailedError
from tests.clusters.kafka import KafkaCluster
from tests.conformance.kafka import changes
from tests.conformance.kafka.cells import Case, Cell
from tests.conformance.kafka.coordinator import ends, look
from tests.conformance.kafka.group import Before, DisturbedError, Group
from tests.conformance.kafka.matrix import CRASH, JOIN, LEAVE, cells
from tests.conformance.kafka.requests import request
from tests.conformance.kafka.stage import stage
from tests.conformance.kafka.waves import MOST_LATE_S
from tests.conformance.live.transition import Transition, Watch, doubt, together, undelivered
from tests.conformance.measure import NotSettledError, Queue
from tests.conformance.record import Record
from tests.conformance.report import compare
from tests.conformance.rocketmq.collect import QUIET_S, Machine

SYSTEM = "kafka"
PARTITIONS = 6
"""So that neither two nor three members can be given unequal shares: who gets the odd one, nobody could know."""
DELIVERED_S = 180.0
"""A limit against hanging only."""


def _cell(assignor: str, change: Mapping[str, object]) -> Cell:
    """Return the first cell of the matrix that is like that, with a group of another size."""
    found = next(cell for cell in cells() if cell.assignor == assignor and cell.change == change)
    return replace(found, members=2 if change is JOIN else 3, partitions=PARTITIONS)


EAGER, COOPERATIVE, CONSUMER_PROTOCOL = "range", "cooperative-sticky", "uniform"
CALM = (
    _cell(EAGER, JOIN),
    _cell(EAGER, LEAVE),
    _cell(COOPERATIVE, JOIN),
    _cell(COOPERATIVE, LEAVE),
    _cell(CONSUMER_PROTOCOL, JOIN),
)
KILLED = (_cell(EAGER, CRASH),)


def name(cell: Cell) -> str:
    """Return what the transition of a group is called."""
    return " ".join((f"{SYSTEM} {cell.assignor}:", cell.kind, str(cell.change.get("how", "")))).strip()


def watch_kafka(cluster: KafkaCluster, machine: Machine) -> Watch:
    """Change all groups, each as soon as it is at rest, and return what was seen."""
    with ExitStack() as undo, ThreadPoolExecutor(len(CALM) + len(KILLED)) as pool:
        undo.callback(vars(cluster).pop, "admin", None)  # it would wait for ever for a broker that has stopped
        groups: list[Group] = []
        for wave in (CALM, KILLED):
            with machine.turn():
                on = undo.enter_context(stage(cluster, wave[0].client, with_victims=wave is KILLED))
            groups += [Group(Case(cell, 0), on) for cell in wave]
        return together(pool.map(lambda group: _watch(group, machine), groups))


def _watch(group: Group, machine: Machine) -> Watch:
    called = name(group.cell)
    try:
        group.start()
        with machine.turn(QUIET_S):  # one change after the other: each is judged by how busy the machine was
            machine.await_calm()
            before = group.look()
            changed_ms = changes.make(group, group.stage.kill() if group.cell.blow[0] else None)
        group.await_settled(changed_ms)
        return Watch({called: _seen(called, group, before, machine)}, {called: _lost(group)})
    except (DisturbedError, NotSettledError, StartFailedError) as error:
        return Watch({called: error}, {})
    finally:
        group.end()


def _seen(called: str, group: Group, before: Before, machine: Machine) -> Transition:
    cluster = group.stage.cluster
    document = request(group, before, cluster.version)
    compared = compare(Record(called, SYSTEM, document, group.observed(), {}))
    strangers = _strangers(compared.answer["after"], before)
    ids = {**before.picture.ids, **dict(zip(group.newcomers, strangers, strict=True))}
    picture = look(cluster, group.name)
    owners = {} if picture is None else {queue: {ids[client]} for queue, client in picture.owners.items()}
    span = group.moment_ms / 1000, group.end_ms / 1000
    late_s = group.stage.lateness.longest_s(*span)
    late = f"the machine was {late_s:.2f} s late" if late_s > MOST_LATE_S else ""
    return Transition(called, compared, owners, late or doubt(machine, *span))


def _strangers(after: Mapping[str, object], before: Before) -> Iterator[str]:
    """Yield what a forecast calls those that were not there before: their ids are made up as they join."""
    return (member for member in after if member not in set(before.picture.ids.values()))


def _lost(group: Group) -> Mapping[Queue, Sequence[int]]:
    """Stop sending and return what nobody was given."""
    group.end_producers()
    deadline = time.monotonic() + DELIVERED_S
    while True:
        produced = {
            (group.topic, number): end
            for number, end in enumerate(ends(group.stage.cluster, group.topic, group.partitions))
        }
        seen = group.stage.deliveries(group.topic)
        lost = undelivered(produced, (((one.topic, one.partition), one.offset) for one in seen))
        if not lost or time.monotonic() > deadline:
            return lost
        time.sleep(1.0)
