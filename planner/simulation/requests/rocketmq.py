"""A RocketMQ group: its clients report how they are set up."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from planner.errors import BadInputError
from planner.forecast.common.request_fields import version
from planner.forecast.rocketmq.request.reader import POLLING_THREADS
from planner.forecast.rocketmq.request.settings import KNOWN, LACKS, Consumer
from planner.forecast.rocketmq.timing import generation
from planner.forecast.trials import Document
from planner.model.queues import MessageQueue
from planner.model.snapshot import ClientSetup, GroupSnapshot, QueueState
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.requests.ends import at, fastest_and_slowest, leaving, rate_and_lag, refuse_two_changes

_BATCH = "consumeMessageBatchMaxSize"
_CONSUMES, _BY_PUSH, _BY_POLLS = "PROP_CONSUME_TYPE", "CONSUME_PASSIVELY", "CONSUME_ACTIVELY"


def request(outcome: CandidateOutcome, snapshot: GroupSnapshot, end: int) -> Document:
    """Return the request at one end of everything that is known as an interval only.

    Raises ``BadInputError`` with what is not known and has no interval either.
    """
    setups = snapshot.setups
    if not setups:
        raise BadInputError("the snapshot does not tell how its clients are set up: take a new one")
    change = _change(outcome, snapshot)
    release = _release(setups)
    consumer = _consumer(setups)
    threads = _threads(setups, consumer)
    if not threads:
        raise BadInputError("no member tells its threads")
    usual = at(end, [float(count) for count in threads.values()])
    orderly = _orderly(snapshot)
    if change["kind"] == "join":
        newcomer = {"id": None, "threads": int(usual), "orderly": orderly}
        change = {**change, "clients": [newcomer for _ in change["clients"]]}
    settings = _settings(snapshot, consumer, end)
    options = {} if consumer == Consumer.PUSH else {"consumer": str(consumer)}
    return {
        "system": snapshot.system,
        # The broker's release decides which settings it has; none that only some releases have is given here.
        "versions": {"client": release, "broker": release},
        "group": snapshot.group,
        "strategy": snapshot.strategy,
        "options": {**snapshot.strategy_options, **options},
        "queues": [_queue(state, end) for state in snapshot.data_queues],
        "clients": [
            {"id": client, "threads": threads.get(client, int(usual)), "orderly": orderly}
            for client in snapshot.clients
        ],
        "service_time_s": _call_s(snapshot, threads, end, int(settings.get(_BATCH, KNOWN[_BATCH].default))),
        "settings": settings,
        "change": change,
    }


def assumed(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Iterator[str]:
    """Yield in sentences what the forecast of the change takes for granted."""
    polls = _consumer(snapshot.setups) == Consumer.LITE_PULL
    silent = Counter(not setup.settings if polls else setup.threads is None for setup in snapshot.setups)[True]
    if polls:
        yield (
            "how the applications poll: taken to be by one thread each that works on every message before it polls "
            "again, and that shut down without a commit of their own"
        )
    if silent:
        yield f"how {silent} of {len(snapshot.setups)} members are set up: taken to be like the others"
    if snapshot.notifies_changes is None:
        yield "whether the brokers tell members of a change at once: taken to be so, which is the default"
    if outcome.members < len(snapshot.clients):
        yield "whether stopped consumers shut down in order when they get SIGTERM: taken to be so"
    if outcome.strategy != snapshot.strategy:
        yield "how fast a rollout switches the strategy: taken to be all at once; a slower one tears the group longer"


def _change(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Document:
    """Return the change: newcomers with unknown ids, a graceful leave of those that would go, or a switch at once."""
    present, count = snapshot.clients, outcome.members
    refuse_two_changes(outcome, snapshot)
    if outcome.strategy != snapshot.strategy:
        return {"kind": "strategy", "to": outcome.strategy, "clients": list(present), "interval_s": 0}
    if count > len(present):
        return {"kind": "join", "clients": [{"id": None}] * (count - len(present))}
    return {"kind": "leave", "how": "graceful", "clients": leaving(outcome, snapshot)}


def _queue(state: QueueState, end: int) -> Document:
    queue = state.queue
    if not isinstance(queue, MessageQueue):
        raise BadInputError(f"queue {queue} is a Kafka partition")
    return {"topic": queue.topic, "broker": queue.broker, "queue_id": queue.queue_id, **rate_and_lag(state, end)}


def _release(setups: Sequence[ClientSetup]) -> str:
    """Return the oldest client release; all must be of a kind that one model stands for."""
    others = sorted({setup.language for setup in setups} - {"JAVA"})
    if others:
        raise BadInputError(f"members are written in {', '.join(others)}: the forecast knows Java clients")
    if any(setup.version is None for setup in setups):
        raise BadInputError("a member's version is older than 4.9 or unknown")
    releases = sorted({version(setup.version, "version") for setup in setups})
    kinds = {generation(release).name for release in releases}
    if len(kinds) > 1:
        raise BadInputError(f"members run clients of several kinds ({', '.join(sorted(kinds))}): forecast them apart")
    return str(releases[0])


def _orderly(snapshot: GroupSnapshot) -> bool:
    reported = {setup.orderly for setup in snapshot.setups if setup.orderly is not None}
    if len(reported) != 1:
        raise BadInputError(
            "some members consume in order and others do not" if reported else "no member tells its order"
        )
    return reported.pop()


def _consumer(setups: Sequence[ClientSetup]) -> Consumer:
    """Return the members' class, by what they report of themselves; all must be alike.

    Only ``DefaultLitePullConsumer`` has a property ``autoCommit``.
    """
    reported = {text for setup in setups for name, text in setup.settings if name == _CONSUMES} or {_BY_PUSH}
    if reported == {_BY_PUSH}:
        return Consumer.PUSH
    if reported != {_BY_POLLS}:
        raise BadInputError(f"members consume by {', '.join(sorted(reported))}: the forecast knows push and lite pull")
    commits = {text for setup in setups for name, text in setup.settings if name == "autoCommit"}
    if not commits:
        raise BadInputError(
            "members pull and tell no autoCommit: they are of DefaultMQPullConsumer, whose application decides when it "
            "pulls and what it stores, or the snapshot is of an older planner"
        )
    if commits != {"true"}:
        raise BadInputError(
            "members commit by themselves (autoCommit false): what comes twice rests on when, which nobody tells"
        )
    return Consumer.LITE_PULL


def _threads(setups: Sequence[ClientSetup], consumer: Consumer) -> dict[str, int]:
    """Return how many messages each member works on at once, of those that report it."""
    if consumer != Consumer.PUSH:
        return {setup.client: POLLING_THREADS for setup in setups}
    return {setup.client: setup.threads for setup in setups if setup.threads is not None}


def _settings(snapshot: GroupSnapshot, consumer: Consumer, end: int) -> Document:
    """Return what the members reported of the settings that a forecast knows; where they differ, that bound."""
    reported: dict[str, set[str]] = {}
    for setup in snapshot.setups:
        for name, text in setup.settings:
            if name in KNOWN and name not in LACKS[consumer]:
                reported.setdefault(name, set()).add(text)
    settings = {name: _value(name, sorted(texts), end) for name, texts in reported.items()}
    if snapshot.notifies_changes is False:
        settings["notifyConsumerIdsChangedEnable"] = False
    return settings


def _value(name: str, texts: Sequence[str], end: int) -> int | bool | str:
    default = KNOWN[name].default
    if isinstance(default, int) and not isinstance(default, bool):
        if not all(text.lstrip("-").isdecimal() for text in texts):
            raise BadInputError(f"members tell {name} {', '.join(texts)}, expected a whole number")
        return int(at(end, [int(text) for text in texts]))
    if len(texts) > 1:
        raise BadInputError(f"members differ in {name}: {', '.join(texts)}")
    return texts[0] == "true" if isinstance(default, bool) else texts[0]


def _call_s(snapshot: GroupSnapshot, threads: Mapping[str, int], end: int, batch: int) -> float:
    """Return the time of one listener call: by the members' own figures, else what the capacity leaves a thread."""
    reported = [setup.call_s for setup in snapshot.setups if setup.call_s is not None]
    if reported:
        return at(end, reported)
    capacity, counts = snapshot.capacity, [count for count in threads.values() if count]
    if capacity is None or capacity.is_lower_bound or not counts:
        raise BadInputError("how long one message takes is unknown: no member consumed anything lately")
    fastest, slowest = fastest_and_slowest(capacity)
    bounds = (min(counts) * batch / fastest, max(counts) * batch / slowest)
    return at(end, bounds)
