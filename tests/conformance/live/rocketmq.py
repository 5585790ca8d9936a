"""Five RocketMQ groups on one cluster, changed while they work: members, old clients, locks, strategies, brokers."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

from planner.documents.forecast import forecast
from tests.clusters.errors import StartFailedError
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import RocketMQLoad
from tests.conformance.live.transition import Transition, Watch, doubt, together, undelivered
from tests.conformance.measure import NotSettledError, Queue, measure, owners_of
from tests.conformance.record import Record
from tests.conformance.report import compare
from tests.conformance.rocketmq.cells import SYSTEM, Config, Series, Step, broker, join, leave, switch
from tests.conformance.rocketmq.changes import Change
from tests.conformance.rocketmq.collect import LATEST_S, QUIET_S, WARM_S, Machine, await_settled
from tests.conformance.rocketmq.group import LiveGroup
from tests.conformance.rocketmq.performing import perform

OLD_CLIENT = "4.9.8"
BROKER_LOCK_LIVES_MS, LOCK_INTERVAL_MS = 8000, 2000
"""By default a lock lives for 60 s and is renewed every 20 s: an orderly crash would take a minute."""
BROKER_PROPERTIES = {"rocketmq.broker.rebalance.lockMaxLiveTime": BROKER_LOCK_LIVES_MS}
LOCKS = {**BROKER_PROPERTIES, "rocketmq.client.rebalance.lockInterval": LOCK_INTERVAL_MS}
QUICK = {"pollNameServerInterval": 3000, "rocketmq.client.rebalance.waitInterval": 4000}
"""By default routes are polled every 30 s and looked at every 20 s: each change of brokers would take up to 50 s."""
WHOLE_S, DELIVERED_S = 240.0, 180.0
"""Limits against hanging only."""
MOST_CALM_S = 4.0
"""A machine that stays busy is no reason to wait long: then times are not judged."""

USUAL = Config(NEW, NEW, "AVG", {}, members=2, queues=4, rate=8.0, service_s=0.05)


def _series(kind: str, config: Config, *steps: Step) -> Series:
    return Series(kind, 1, config, steps)


AT_ONCE = (
    _series("members", replace(USUAL, members=3), leave("crash"), join(), leave("graceful"), leave("crash")),
    _series("old-client", replace(USUAL, client=OLD_CLIENT), join(), leave("crash")),
    _series("orderly", replace(USUAL, orderly=True, service_s=0.02, settings=LOCKS), leave("crash")),
    _series("strategy", USUAL, switch("AVG_BY_CIRCLE", {}, interval_s=3.0), leave("crash")),
)
ALONE = _series("brokers", replace(USUAL, settings=QUICK), broker("down"), broker("up"), leave("crash"))
"""A broker that dies disturbs every group of the cluster."""


def group_name(series: Series) -> str:
    """Return what a group is called, and its topic."""
    return f"live-{series.kind}"


def names(series: Series) -> list[str]:
    """Return what the transitions of a group are called."""
    words = (" ".join((step["kind"], step.get("how", ""))).strip() for step in series.steps)
    return [f"{SYSTEM} {series.kind} {number}: {what}" for number, what in enumerate(words, start=1)]


def watch_rocketmq(cluster: RocketMQCluster, machine: Machine) -> Watch:
    """Change all groups and return what was seen; the one without its brokers is changed when the others are done."""
    loads = {client: cluster.load(client) for client in (NEW, OLD_CLIENT)}
    with ThreadPoolExecutor(len(AT_ONCE) + 1) as pool:
        others = [pool.submit(_watch, one, cluster, loads[one.config.client], machine, lambda: None) for one in AT_ONCE]
        alone = pool.submit(_watch, ALONE, cluster, loads[NEW], machine, lambda: wait(others))
        return together(done.result() for done in (*others, alone))


def _watch(
    series: Series,
    cluster: RocketMQCluster,
    load: RocketMQLoad,
    machine: Machine,
    my_turn: Callable[[], object],
) -> Watch:
    group = LiveGroup(series.config, cluster, load, group_name(series), random.Random(series.kind), patient=True)
    found: dict[str, Transition | Exception] = {}
    try:
        with machine.turn():
            group.start(group.flat_curves())
        rest = _await_whole(group)
        time.sleep(WARM_S)
        my_turn()
        for name, step in zip(names(series), series.steps, strict=True):
            with machine.turn(QUIET_S):
                change = perform(group, step, partial(_await_rest, group, rest, machine))
            found[name] = _seen(name, group, change, machine)
            rest = group.owners()
        return Watch(found, {group.name: _lost(group)})
    except (NotSettledError, StartFailedError, OSError) as error:
        return Watch({**dict.fromkeys(names(series), error), **found}, {})
    finally:
        group.stop()


def _await_rest(group: LiveGroup, rest: Mapping[Queue, set[str]], machine: Machine) -> None:
    """Return when the machine is calm and the group is as it was at rest: minutes may have passed since.

    A member whose answers came too late drops its connection, and is in nobody's list until it is heard of again.
    """
    machine.await_calm(MOST_CALM_S)
    deadline = time.monotonic() + WHOLE_S
    while group.owners() != rest:
        if time.monotonic() > deadline:
            raise StartFailedError(f"{group.name}: after {WHOLE_S:g} s it is not at rest: {group.owners()}, not {rest}")
        time.sleep(0.5)


def _await_whole(group: LiveGroup) -> Mapping[Queue, set[str]]:
    """Return the owners when every queue has one and every member a queue; raise StartFailedError after long."""
    deadline = time.monotonic() + WHOLE_S
    while True:
        owners = group.owners()
        is_whole = all(len(one) == 1 for one in owners.values()) and len(owners) == sum(group.queues.values())
        if is_whole and set().union(*owners.values()) == {life.client_id for life in group.members}:
            return owners
        if time.monotonic() > deadline:
            raise StartFailedError(f"{group.name}: after {WHOLE_S:g} s its queues belong to {owners}")
        time.sleep(0.5)


def _seen(name: str, group: LiveGroup, change: Change, machine: Machine) -> Transition:
    await_settled(group, change, owners_of(forecast(change.request)["after"]))
    observed = measure(group.log(change.at_ms, change.before_s))
    since = change.at_ms / 1000
    compared = compare(Record(name, SYSTEM, change.request, observed, {}))
    return Transition(name, compared, group.owners(), doubt(machine, since, since + LATEST_S))


def _lost(group: LiveGroup) -> Mapping[Queue, Sequence[int]]:
    """Stop sending and return what nobody was given."""
    assert group.producer is not None
    group.producer.stop()
    lanes = group.cluster.produced(group.name).items()
    produced: dict[Queue, int] = {(group.name, *lane): count for lane, count in lanes}
    deadline = time.monotonic() + DELIVERED_S
    while True:
        delivered = [one for life in group.lives for one in life.process.deliveries()]
        lost = undelivered(produced, (((one.topic, one.broker, one.queue), one.offset) for one in delivered))
        if not lost or time.monotonic() > deadline:
            return lost
        time.sleep(1.0)
