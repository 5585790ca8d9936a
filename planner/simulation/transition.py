"""What going from a snapshot's group to a candidate costs: the snapshot as a request of ``planner forecast``, pooled.

What the snapshot knows only as an interval (rates, time of a call, threads, settings that members do not share) is
sampled at both ends: one half of the trials takes all lower ends, the other all upper ones.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import BadInputError, PlannerError
from planner.model.queues import MessageQueue
from planner.model.snapshot import ClientSetup, GroupSnapshot, QueueState
from planner.simulation.dynamics.answers import run_totals
from planner.simulation.dynamics.reading import version
from planner.simulation.dynamics.rocketmq.settings import KNOWN
from planner.simulation.dynamics.rocketmq.timing import generation
from planner.simulation.dynamics.trials import pooled
from planner.simulation.outcome import NO_TRANSITION, CandidateOutcome, Messages, Seconds, Transition

TRIALS = 200
"""Trials of each candidate, the same from the command line and on Spark."""

LOWER, UPPER = 0, 1
ENDS = (LOWER, UPPER)

Document = dict[str, Any]
Ends = tuple[float, float]

_BATCH = "consumeMessageBatchMaxSize"


def with_transition(
    outcome: CandidateOutcome, snapshot: GroupSnapshot, digest: str, trials: int = TRIALS
) -> CandidateOutcome:
    """Return the outcome with what the change to it costs, ``digest`` being the snapshot's.

    Where it cannot be told, ``transition`` stays ``None`` and ``unknowns`` says why. Equal digest, group, strategy and
    count draw the same numbers, whoever asks and in whatever order.
    """
    if outcome.is_current:
        return replace(outcome, transition=NO_TRANSITION)
    try:
        requests = transition_requests(outcome, snapshot, digest, trials)
        found = pooled([run_totals(request) for request in requests]).document()
    except PlannerError as error:
        why = f"what the change itself costs in pauses and duplicates: {str(error).rstrip('.')}"
        return replace(outcome, unknowns=(*outcome.unknowns, why))
    return replace(outcome, transition=_transition(found), unknowns=(*outcome.unknowns, *_assumed(outcome, snapshot)))


def transition_requests(
    outcome: CandidateOutcome, snapshot: GroupSnapshot, digest: str, trials: int = TRIALS
) -> tuple[Document, ...]:
    """Return the forecasts to run: one where every input is known, else one for each end of what is not.

    Raises ``BadInputError`` with what is not known and has no interval either.
    """
    if snapshot.system != "rocketmq":
        raise BadInputError("a Kafka broker tells neither version, settings nor time per message of its clients")
    if not snapshot.setups:
        raise BadInputError("the snapshot does not tell how its clients are set up: take a new one")
    change = _change(outcome, snapshot)
    lower, upper = (_request(snapshot, change, end) for end in ENDS)
    seed = seed_of(digest, snapshot.group, outcome.strategy, outcome.count)
    if lower == upper:
        return ({**lower, "trials": trials, "seed": seed},)
    half = trials // 2
    return {**lower, "trials": trials - half, "seed": seed}, {**upper, "trials": max(half, 1), "seed": seed + 1}


def seed_of(digest: str, group: str, strategy: str, count: int) -> int:
    """Return the seed of a candidate's trials: even, below 2**63, the same on every machine."""
    named = "\n".join((digest, group, strategy, str(count)))
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big") >> 2 << 1


def _change(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Document:
    """Return the change: newcomers with unknown ids, a graceful leave of those that would go, or a switch at once."""
    present, count = snapshot.clients, outcome.count
    if outcome.strategy != snapshot.strategy:
        if count != len(present):
            raise BadInputError("strategy and count change together: switch the strategy first, then scale")
        return {"kind": "strategy", "to": outcome.strategy, "clients": list(present), "interval_s": 0}
    if count > len(present):
        return {"kind": "join", "clients": [{"id": None}] * (count - len(present))}
    staying = {load.client for load in outcome.loads}
    leaving = [client for client in present if client not in staying]
    return {"kind": "leave", "how": "graceful", "clients": leaving}


def _request(snapshot: GroupSnapshot, change: Document, end: int) -> Document:
    """Return the request at one end of everything that is known as an interval only."""
    setups = snapshot.setups
    release = _release(setups)
    threads = {setup.client: setup.threads for setup in setups if setup.threads is not None}
    if not threads:
        raise BadInputError("no member tells its threads")
    usual = _at(end, [float(count) for count in threads.values()])
    orderly = _orderly(snapshot)
    if change["kind"] == "join":
        newcomer = {"id": None, "threads": int(usual), "orderly": orderly}
        change = {**change, "clients": [newcomer for _ in change["clients"]]}
    settings = _settings(snapshot, end)
    return {
        "system": snapshot.system,
        # The broker's release decides which settings it has; none that only some releases have is given here.
        "versions": {"client": release, "broker": release},
        "group": snapshot.group,
        "strategy": snapshot.strategy,
        "options": snapshot.strategy_options,
        "queues": [_queue(state, end) for state in snapshot.data_queues],
        "clients": [
            {"id": client, "threads": threads.get(client, int(usual)), "orderly": orderly}
            for client in snapshot.clients
        ],
        "service_time_s": _call_s(snapshot, end, int(settings.get(_BATCH, KNOWN[_BATCH].default))),
        "settings": settings,
        "change": change,
    }


def _at(end: int, values: Sequence[float]) -> float:
    return min(values) if end == LOWER else max(values)


def _queue(state: QueueState, end: int) -> Document:
    queue = state.queue
    if not isinstance(queue, MessageQueue):
        raise BadInputError(f"queue {queue} is a Kafka partition")
    rates = [rate for rate in (state.arrival_rate, state.upper_arrival_rate) if rate is not None]
    if not rates:
        raise BadInputError(f"the arrival rate of queue {queue} is unknown")
    if state.lag is None:
        raise BadInputError(f"the lag of queue {queue} is unknown")
    return {
        "topic": queue.topic,
        "broker": queue.broker,
        "queue_id": queue.queue_id,
        "rate": _at(end, rates),
        "lag": max(state.lag, 0),
    }


def _release(setups: Sequence[ClientSetup]) -> str:
    """Return the oldest client release; all must be of a kind that one model stands for."""
    others = sorted({setup.language for setup in setups} - {"JAVA"})
    if others:
        raise BadInputError(f"members are written in {', '.join(others)}: the forecast knows Java clients")
    if any(setup.version is None for setup in setups):
        raise BadInputError("a member's version is older than 4.9 or unknown")
    found = sorted({version(setup.version, "version") for setup in setups})
    kinds = {generation(one).name for one in found}
    if len(kinds) > 1:
        raise BadInputError(f"members run clients of several kinds ({', '.join(sorted(kinds))}): forecast them apart")
    return str(found[0])


def _orderly(snapshot: GroupSnapshot) -> bool:
    told = {setup.orderly for setup in snapshot.setups if setup.orderly is not None}
    if len(told) != 1:
        raise BadInputError("some members consume in order and others do not" if told else "no member tells its order")
    return told.pop()


def _settings(snapshot: GroupSnapshot, end: int) -> Document:
    """Return what the members told of the settings that a forecast knows; where they differ, that end of it."""
    told: dict[str, set[str]] = {}
    for setup in snapshot.setups:
        for name, text in setup.settings:
            if name == "PROP_CONSUME_TYPE" and text != "CONSUME_PASSIVELY":
                raise BadInputError(f"members consume by {text}: the forecast knows push consumers")
            if name in KNOWN:
                told.setdefault(name, set()).add(text)
    found = {name: _value(name, sorted(texts), end) for name, texts in told.items()}
    if snapshot.notifies_changes is False:
        found["notifyConsumerIdsChangedEnable"] = False
    return found


def _value(name: str, texts: Sequence[str], end: int) -> int | bool | str:
    default = KNOWN[name].default
    if isinstance(default, int) and not isinstance(default, bool):
        if not all(text.lstrip("-").isdecimal() for text in texts):
            raise BadInputError(f"members tell {name} {', '.join(texts)}, expected a whole number")
        return int(_at(end, [int(text) for text in texts]))
    if len(texts) > 1:
        raise BadInputError(f"members differ in {name}: {', '.join(texts)}")
    return texts[0] == "true" if isinstance(default, bool) else texts[0]


def _call_s(snapshot: GroupSnapshot, end: int, batch: int) -> float:
    """Return the time of one listener call: by the members' own figures, else what the capacity leaves a thread."""
    told = [setup.call_s for setup in snapshot.setups if setup.call_s is not None]
    if told:
        return _at(end, told)
    capacity, threads = snapshot.capacity, [s.threads for s in snapshot.setups if s.threads]
    if capacity is None or capacity.is_lower_bound or not threads:
        raise BadInputError("how long one message takes is unknown: no member consumed anything lately")
    fastest, slowest = capacity.high or capacity.messages_per_s, capacity.low or capacity.messages_per_s
    ends: Ends = (min(threads) * batch / fastest, max(threads) * batch / slowest)
    return _at(end, ends)


def _transition(found: Mapping[str, Any]) -> Transition:
    def seconds(name: str) -> Seconds | None:
        return Seconds(**found[name]) if found[name] else None

    return Transition(
        seconds("pause_s"),
        seconds("stall_s"),
        Messages(**found["duplicates"]),
        Messages(**found["burst_messages"]),
        seconds("settle_s"),
        seconds("drained_s"),
    )


def _assumed(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Iterator[str]:
    """Yield in sentences what the forecast of the change takes for granted."""
    silent = Counter(setup.threads is None for setup in snapshot.setups)[True]
    if silent:
        yield f"how {silent} of {len(snapshot.setups)} members are set up: taken to be like the others"
    if snapshot.notifies_changes is None:
        yield "whether the brokers tell members of a change at once: taken to be so, which is the default"
    if outcome.count < len(snapshot.clients):
        yield "whether stopped consumers shut down in order when they get SIGTERM: taken to be so"
    if outcome.strategy != snapshot.strategy:
        yield "how fast a rollout switches the strategy: taken to be all at once; a slower one tears the group longer"
