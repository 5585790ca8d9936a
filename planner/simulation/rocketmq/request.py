"""A RocketMQ group: its clients report how they are set up."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from planner.allocation import fields
from planner.allocation.registry import find_strategy
from planner.errors import BadInputError
from planner.forecast.common.changes import GRACEFUL
from planner.forecast.common.request_fields import Version, version
from planner.forecast.rocketmq.request.changes import Change, Client, Join, Leave, RollingUpdate, StrategyChange
from planner.forecast.rocketmq.request.completion import checked
from planner.forecast.rocketmq.request.producers import ProducerKind, Producers
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.request.settings import KNOWN, LACKS, POLLING_THREADS, Consumer, read_settings
from planner.forecast.rocketmq.timing import generation
from planner.model.queues import MessageQueue
from planner.model.snapshot import ClientSetup, GroupSnapshot, QueueState
from planner.simulation.bounds import at, fastest_and_slowest, leaving, rate_and_lag, refuse_two_changes
from planner.simulation.newcomers import known_newcomers
from planner.simulation.outcome import CandidateOutcome

SUPPOSED_RELEASES = ("4.9.8", "5.5.0")
"""Of the first clients of a group that has none: one at each end, with the settings that they have by default."""

_BATCH, _THREADS = "consumeMessageBatchMaxSize", "consumeThreadMin"
_CONSUMES, _BY_PUSH, _BY_POLLS = "PROP_CONSUME_TYPE", "CONSUME_PASSIVELY", "CONSUME_ACTIVELY"


def request(
    outcome: CandidateOutcome,
    snapshot: GroupSnapshot,
    end: int,
    change: Change | None = None,
    producers: Mapping[str, str] | None = None,
) -> ForecastRequest:
    """Return the request at one end of everything that is known as an interval only.

    ``change`` is what happens, if not the change to ``outcome``; ``producers`` how each topic's choose the queue.
    Raises ``BadInputError`` with what is not known and has no interval either.
    """
    snapshot = snapshot if snapshot.setups else replace(snapshot, setups=_supposed(snapshot, end))
    setups = snapshot.setups
    if change is None:
        refuse_two_changes(outcome, snapshot)
    release = _release(setups)
    consumer = _consumer(setups)
    threads = _threads(setups, consumer)
    if not threads:
        raise BadInputError("no member reports its threads")
    usual, orderly = int(at(end, [float(count) for count in threads.values()])), _orderly(snapshot)
    given = _settings(snapshot, consumer, end)
    # The broker's release decides which settings it has; none that only some releases have is given here.
    settings = read_settings(given, release, release, consumer)
    batch = int(given.get(_BATCH, KNOWN[_BATCH].default))
    queues = [(_queue(state), *rate_and_lag(state, end)) for state in snapshot.data_queues]
    clients = tuple(Client(client, threads.get(client, usual), orderly) for client in snapshot.clients)
    kinds = {topic: ProducerKind(kind) for topic, kind in (producers or {}).items()}
    return checked(
        ForecastRequest(
            release,
            release,
            snapshot.group,
            find_strategy(fields.text(snapshot.strategy, "strategy"), snapshot.strategy_options),
            tuple(queue for queue, _, _ in queues),
            tuple(rate for _, rate, _ in queues),
            tuple(lag for _, _, lag in queues),
            clients,
            _call_s(snapshot, threads, end, batch),
            settings,
            _change(outcome, snapshot, usual, orderly) if change is None else _with_newcomers(change, clients),
            consumer=consumer,
            producers=Producers(by_topic=kinds, version=release),
        )
    )


def _supposed(snapshot: GroupSnapshot, end: int) -> tuple[ClientSetup, ...]:
    """Return how the first client is taken to be set up; raises ``BadInputError`` where clients run."""
    if snapshot.clients:
        raise BadInputError("the snapshot does not have how its clients are set up: take a new one")
    threads = int(KNOWN[_THREADS].default)
    return (ClientSetup("the first one", "JAVA", SUPPOSED_RELEASES[end], snapshot.orderly or False, threads, None),)


def assumed(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Iterator[str]:
    """Yield in sentences what the forecast of the change takes for granted."""
    polls = _consumer(snapshot.setups) == Consumer.LITE_PULL
    silent = Counter(not setup.settings if polls else setup.threads is None for setup in snapshot.setups)[True]
    if polls:
        yield (
            "how the applications poll: taken to be by one thread each that works on every message before it polls "
            "again, and that shut down without a commit of their own"
        )
    if not snapshot.clients:
        first, last = SUPPOSED_RELEASES
        yield (
            "how the consumers are set up, as none runs: taken to be Java's push consumers of a release from "
            f"{first} to {last} with default settings"
        )
    if silent:
        yield f"how {silent} of {len(snapshot.setups)} members are set up: taken to be like the others"
    if snapshot.notifies_changes is None:
        yield "whether the brokers notify members of a change at once: assumed, it is the default"
    if outcome.members < len(snapshot.clients):
        yield "whether stopped consumers shut down in order when they get SIGTERM: taken to be so"
    if outcome.strategy != snapshot.strategy:
        yield "how fast a rollout switches the strategy: taken to be all at once; a slower one tears the group longer"


def _change(outcome: CandidateOutcome, snapshot: GroupSnapshot, threads: int, orderly: bool) -> Change:
    """Return the change: newcomers, by id where it is known, a graceful leave of those that would go, or a switch."""
    present, count = snapshot.clients, outcome.members
    if outcome.strategy != snapshot.strategy:
        return StrategyChange(find_strategy(outcome.strategy), tuple(present), 0.0)
    if count > len(present):
        known = known_newcomers(snapshot, outcome.count)
        ids = [new.client for new in known] if known else [None] * (count - len(present))
        return Join(tuple(Client(client, threads, orderly) for client in ids))
    return Leave(tuple(leaving(outcome, snapshot)), GRACEFUL)


def _with_newcomers(change: Change, clients: Sequence[Client]) -> Change:
    """Return the change; pods that replace others have clients as these are, with ids that nobody knows yet."""
    if not isinstance(change, RollingUpdate):
        return change
    return replace(change, clients=tuple(replace(client, id=None) for client in clients))


def _queue(state: QueueState) -> MessageQueue:
    queue = state.queue
    if not isinstance(queue, MessageQueue):
        raise BadInputError(f"queue {queue} is a Kafka partition")
    return queue


def _release(setups: Sequence[ClientSetup]) -> Version:
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
    return releases[0]


def _orderly(snapshot: GroupSnapshot) -> bool:
    reported = {setup.orderly for setup in snapshot.setups if setup.orderly is not None}
    if len(reported) != 1:
        raise BadInputError(
            "some members consume in order and others do not" if reported else "no member reports its order"
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
            "members pull and report no autoCommit: they are of DefaultMQPullConsumer, whose application decides "
            "when it pulls and what it stores, or the snapshot is of an older planner"
        )
    if commits != {"true"}:
        raise BadInputError(
            "members commit by themselves (autoCommit false): what comes twice depends on when, which no member reports"
        )
    return Consumer.LITE_PULL


def _threads(setups: Sequence[ClientSetup], consumer: Consumer) -> dict[str, int]:
    """Return how many messages each member works on at once, of those that report it."""
    if consumer != Consumer.PUSH:
        return {setup.client: POLLING_THREADS for setup in setups}
    return {setup.client: setup.threads for setup in setups if setup.threads is not None}


def _settings(snapshot: GroupSnapshot, consumer: Consumer, end: int) -> dict[str, int | bool | str]:
    """Return what the members reported of the settings that a forecast knows; where they differ, that bound."""
    reported: dict[str, set[str]] = {}
    for setup in snapshot.setups:
        for name, text in setup.settings:
            if name in KNOWN and name not in LACKS[consumer]:
                reported.setdefault(name, set()).add(text)
    settings: dict[str, int | bool | str] = {name: _value(name, sorted(texts), end) for name, texts in reported.items()}
    if snapshot.notifies_changes is False:
        settings["notifyConsumerIdsChangedEnable"] = False
    return settings


def _value(name: str, texts: Sequence[str], end: int) -> int | bool | str:
    default = KNOWN[name].default
    if isinstance(default, int) and not isinstance(default, bool):
        if not all(text.lstrip("-").isdecimal() for text in texts):
            raise BadInputError(f"members report {name} {', '.join(texts)}, expected a whole number")
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
