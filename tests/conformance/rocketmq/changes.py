"""Changes done to a living group: what was done, when, and who was there before."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.clusters.rocketmq import QueueCounts
from tests.clusters.rocketmq_load import QueueCurve
from tests.conformance.rocketmq.cells import Step
from tests.conformance.rocketmq.group import MOST_SECONDS, Document, Life, LiveGroup

BEFORE_S = 6.0
FIRST_QUEUES_S, NEXT_QUEUES_S = 25.0, 80.0
"""When the queues of a topic change, in seconds after the producer's start: its curves must know that beforehand."""
CREATED_S = 0.6
"""A new queue gets its first message so much later than the command."""


@dataclass(frozen=True, slots=True)
class Change:
    """``at_ms``: the epoch milliseconds from which everything counts; ``request``: the forecast request of it.

    ``starts_s``: when processes called ``start()``, in seconds since the change. What was delivered as early as
    ``before_s`` before the change is looked at.
    """

    at_ms: float
    request: Document
    starts_s: tuple[float, ...] = ()
    before_s: float = BEFORE_S


Calm = Callable[[], None]
"""Returns when the machine has little else to do; called when all processes are up and only the command is missing."""


def join(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """Newcomers start."""
    before = ids(group)
    lives = [group.spawn(group.new_id()) for _ in range(step["count"])]
    calm()
    starts = [float(group.begin(lives[0]))]
    for order, life in enumerate(lives[1:], start=1):
        sleep_until(starts[0] + order * step["stagger_s"] * 1000)
        starts.append(float(group.begin(life)))
    change: Document = {"kind": "join", "clients": [{"id": life.client_id} for life in lives]}
    if len(lives) > 1:
        change["stagger_s"] = round((starts[-1] - starts[0]) / 1000 / (len(lives) - 1), 3)
    return changed(group, starts[0], change, before, starts)


def leave(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """Members end."""
    before = ids(group)
    victims = group.random.sample(group.members, step["count"])
    calm()
    ends = [group.end(life, step["how"]) for life in victims]
    change = {"kind": "leave", "clients": [life.client_id for life in victims], "how": step["how"]}
    return changed(group, ends[0], change, before)


def restart(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """One member ends and starts again."""
    before = ids(group)
    old = group.random.choice(group.members)
    new = group.spawn(instance(old))
    calm()
    ended = end_wholly(group, old, step["how"])
    sleep_until(ended + step["interval_s"] * 1000)
    started = group.begin(new)
    change = {
        "kind": "restart",
        "clients": [old.client_id],
        "how": step["how"],
        "interval_s": round((started - ended) / 1000, 3),
    }
    return changed(group, ended, change, before, [started])


def switch(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """Each member in turn ends and starts again with another strategy."""
    before, strategy, options = ids(group), group.strategy, group.options
    order = group.random.sample(group.members, len(group.members))
    successors = [group.spawn(instance(old), step["to"], step["options"]) for old in order]
    calm()
    at_ms, starts = in_turn(group, order, successors, step["interval_s"])
    group.strategy, group.options = step["to"], step["options"]
    change = {
        "kind": "strategy",
        "to": step["to"],
        "options": step["options"],
        "clients": [life.client_id for life in order],
        "interval_s": step["interval_s"],
    }
    return Change(at_ms, group.request(change, strategy, options, before, {}), starts)


def broker_down(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """A broker is killed."""
    broker = group.random.choice(group.cluster.brokers)
    calm()
    at_ms = time.time() * 1000
    broker.kill()
    return changed(group, at_ms, {"kind": step["kind"], "broker": broker.name}, ids(group))


def broker_up(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """What the broker forgot of the offsets as it died comes again now: all deliveries are looked at."""
    (broker,) = (one for one in group.cluster.brokers if not one.process.running)
    calm()
    at_ms = time.time() * 1000
    broker.process.start()
    found = changed(group, at_ms, {"kind": step["kind"], "broker": broker.name}, ids(group), [at_ms])
    return replace(found, before_s=(at_ms - group.began_ms) / 1000)


@dataclass(frozen=True, slots=True)
class Resize:
    """At ``at_s`` of the producer's time a broker has ``counts`` queues of each broker from now on."""

    at_s: float
    broker: str
    counts: Mapping[str, int]


def resizes(group: LiveGroup, steps: tuple[Step, ...]) -> list[Resize]:
    """Return when and where the queues of a topic change."""
    counts = {broker.name: group.config.queues for broker in group.cluster.brokers}
    found = []
    for number, step in enumerate(steps):
        broker = group.random.choice(sorted(counts))
        counts = {**counts, broker: max(counts[broker] + step["by"], 1)}
        at_s = FIRST_QUEUES_S + number * NEXT_QUEUES_S + group.random.uniform(0, 20)
        found.append(Resize(at_s, broker, counts))
    return found


def resized_curves(group: LiveGroup, plan: list[Resize]) -> list[QueueCurve]:
    """Return curves that spread the same messages over whatever queues there are, as producers do."""
    counts = [{broker.name: group.config.queues for broker in group.cluster.brokers}, *(one.counts for one in plan)]
    times = [0.0, *(one.at_s for one in plan), MOST_SECONDS]
    total = group.config.rate * sum(counts[0].values())
    points: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for phase, there in enumerate(counts):
        rate = total / sum(there.values())
        for lane in _lanes(there):
            is_new = phase > 0 and lane not in set(_lanes(counts[phase - 1]))
            begin = times[phase] + (CREATED_S if is_new else 0.0)
            lead = [(begin, 0.0)] if is_new and lane in points else []
            points.setdefault(lane, []).extend([*lead, (begin, rate), (times[phase + 1], rate)])
            if phase + 1 < len(counts) and lane not in set(_lanes(counts[phase + 1])):
                points[lane].append((times[phase + 1], 0.0))
    return [QueueCurve(group.name, *lane, tuple(found)) for lane, found in points.items()]


def resize(group: LiveGroup, plan: Resize) -> Change:
    """Wait for the moment of the plan and change the topic's queues on one broker."""
    request_before = ids(group)
    count = plan.counts[plan.broker]
    change = {
        "kind": "queues",
        "topic": group.name,
        "broker": plan.broker,
        "read_queues": count,
        "write_queues": count,
    }
    request = group.request(change, group.strategy, group.options, request_before, {})
    at_ms = group.began_ms + plan.at_s * 1000
    sleep_until(at_ms)
    at_ms = time.time() * 1000
    counts = QueueCounts(count, count)
    group.cluster.create_topic(group.name, per_broker={plan.broker: counts})
    group.rate *= sum(group.queues.values()) / sum(plan.counts.values())
    group.queues = dict(plan.counts)
    return Change(at_ms, request)


def _lanes(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    return ((broker, queue) for broker, count in counts.items() for queue in range(count))


def in_turn(
    group: LiveGroup, old: Sequence[Life], new: Sequence[Life], interval_s: float
) -> tuple[float, tuple[float, ...]]:
    """Shut members down one after the other, each one's successor starting at once.

    Return the epoch milliseconds of the first end, and when they started, in seconds since then.
    """
    at_ms = time.time() * 1000
    starts = []
    for number, (ends, begins) in enumerate(zip(old, new, strict=True)):
        sleep_until(at_ms + number * interval_s * 1000)
        end_wholly(group, ends, "graceful")
        starts.append(group.begin(begins))
    return at_ms, since(at_ms, starts)


def end_wholly(group: LiveGroup, life: Life, how: str) -> float:
    """End it, wait until its process has ended too, and return the epoch milliseconds of the signal."""
    at_ms = group.end(life, how)
    life.process.process.wait_stopped(30)
    return at_ms


def instance(life: Life) -> str:
    """Return the part of a member's client id that it keeps when it starts again."""
    return life.client_id.rpartition("@")[2]


def ids(group: LiveGroup) -> list[str]:
    """Return the client ids of the members."""
    return [life.client_id for life in group.members]


def changed(
    group: LiveGroup, at_ms: float, change: Document, before: list[str], starts: Sequence[float] = ()
) -> Change:
    """Return a change that was done to these members, as the group is now."""
    request = group.request(change, group.strategy, group.options, before, group.lags(at_ms))
    return Change(at_ms, request, since(at_ms, starts))


def since(at_ms: float, starts: Sequence[float]) -> tuple[float, ...]:
    """Return moments in seconds since the change."""
    return tuple(round((start - at_ms) / 1000, 3) for start in starts)


def sleep_until(epoch_ms: float) -> None:
    """Return at this moment, or at once when it is over."""
    time.sleep(max(epoch_ms / 1000 - time.time(), 0.0))
