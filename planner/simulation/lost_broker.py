"""A group without one of its brokers: what comes into the queues that are left, who carries it, what the loss costs.

Producers send all that they have to send to the brokers that are left (see ``forecast/rocketmq/membership/inflow.py``),
so the load of the group stays what it is, and lies on fewer queues.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from planner.errors import BadInputError, PlannerError
from planner.history.inflow_shares import are_shares_even
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.simulation.group_model import group_model
from planner.simulation.outcome import CandidateOutcome, Transition
from planner.simulation.transition import TRIALS, transition_of

KEYED, ROUND_ROBIN = "keyed", "round_robin"


@dataclass(frozen=True, slots=True)
class BrokerLoss:
    """The loss of one broker: the group ``without`` it, once producers and members know.

    ``waiting`` messages cannot be read until it is back, ``None`` where a lag is unknown. ``unknowns`` are sentences.
    """

    broker: str
    without: GroupSnapshot
    waiting: int | None
    unknowns: tuple[str, ...]


def lose_broker(snapshot: GroupSnapshot, broker: str) -> BrokerLoss:
    """Return what is left of the group when this broker is gone.

    Raises ``BadInputError`` for a Kafka group, an unknown broker, and one that has all queues.
    """
    if not all(state.queue.broker for state in snapshot.data_queues):
        raise BadInputError(
            f"broker {broker} of Kafka group {snapshot.group}: found a Kafka broker, expected a RocketMQ one: "
            "another replica leads its partitions within seconds and their load stays; where a partition has no other "
            "replica the snapshot does not show. planner forecast shows the stall (change broker_down)"
        )
    brokers = sorted({state.queue.place[-1] for state in snapshot.data_queues})
    if broker not in brokers:
        raise BadInputError(f"broker {broker}: not found, expected one of {', '.join(brokers)}")
    lost = [state for state in snapshot.data_queues if state.queue.place[-1] == broker]
    left = [state for state in snapshot.data_queues if state.queue.place[-1] != broker]
    if not left:
        raise BadInputError(
            f"broker {broker}: it has all {len(lost)} queues of group {snapshot.group}: nothing is consumed without it"
        )
    carried = carried_inflow(snapshot.data_queues, broker, producer_kinds(snapshot))
    lags = [state.lag for state in lost]
    return BrokerLoss(
        broker,
        replace(snapshot, queues=tuple(sorted(carried, key=lambda state: state.queue))),
        None if None in lags else sum(lag or 0 for lag in lags),
        tuple(_unknowns(snapshot, left, lost, broker)),
    )


def carried_inflow(states: Sequence[QueueState], broker: str, kinds: Mapping[str, str]) -> list[QueueState]:
    """Return the queues that are left with what came into those of the broker, each topic by itself.

    Where producers go round, and where it is unknown, every queue keeps its part. ``SelectMessageQueueByHash``
    keeps keys together that have one remainder by the greatest common divisor of both counts of queues.
    """
    carried: list[QueueState] = []
    for topic, of_topic in _by_topic(states).items():
        ordered = sorted(of_topic, key=lambda state: state.queue)
        left = [state for state in ordered if state.queue.place[-1] != broker]
        divisor = gcd(len(ordered), len(left)) if kinds.get(topic) == KEYED else 1
        for remainder in range(divisor if left else 0):
            carried += _carried(left[remainder::divisor], ordered[remainder::divisor])
    return carried


def _carried(left: Sequence[QueueState], everything: Sequence[QueueState]) -> Iterator[QueueState]:
    """Return the queues that are left with all that came into ``everything``, which they need not be part of."""
    means = _carried_rates([state.arrival_rate for state in left], [state.arrival_rate for state in everything])
    uppers = _carried_rates(
        [state.upper_arrival_rate for state in left], [state.upper_arrival_rate for state in everything]
    )
    for state, mean, upper in zip(left, means, uppers, strict=True):
        yield replace(state, arrival_rate=mean, upper_arrival_rate=upper)


def _carried_rates(left: Sequence[float | None], everything: Sequence[float | None]) -> list[float | None]:
    """Return what comes into each queue that is left, by its part of them; ``None`` where a rate is unknown."""
    stays, total = (sum(rates) if None not in rates else None for rates in (left, everything))  # type: ignore[arg-type]
    if stays is None or total is None:
        return [None] * len(left)
    return [total * (rate or 0.0) / stays if stays else total / len(left) for rate in left]


def loss_transition(
    current: CandidateOutcome, snapshot: GroupSnapshot, broker: str, digest: str, trials: int = TRIALS
) -> tuple[Transition | None, str | None]:
    """Return what the broker's death costs the present group, or why that is unknown.

    ``current`` is the outcome of the group as it is, with all of its brokers; ``digest`` the snapshot's.
    """
    try:
        change = group_model(snapshot).broker_loss(broker)
        return transition_of(current, snapshot, digest, (change, change), trials, producer_kinds(snapshot)), None
    except PlannerError as error:
        return None, f"what the death of {broker} itself costs: {str(error).rstrip('.')}"


def producer_kinds(snapshot: GroupSnapshot) -> dict[str, str]:
    """Return how each topic's producers choose the queue, as a forecast takes it, of those whose shares show it."""
    return {
        topic: ROUND_ROBIN if is_even else KEYED
        for topic, states in _by_topic(snapshot.data_queues).items()
        if (is_even := _are_even(states, snapshot.window_s)) is not None
    }


def _are_even(states: Sequence[QueueState], window_s: float) -> bool | None:
    rates = [state.arrival_rate for state in states if state.arrival_rate is not None]
    return are_shares_even([rate * window_s for rate in rates]) if len(rates) == len(states) else None


def _unknowns(
    snapshot: GroupSnapshot, left: Sequence[QueueState], lost: Sequence[QueueState], broker: str
) -> Iterator[str]:
    kinds, stay = producer_kinds(snapshot), {state.queue.topic for state in left}
    alone = sorted({state.queue.topic for state in lost} - stay)
    if alone:
        yield f"what producers of {', '.join(alone)} do: all of its queues are on {broker}, so they can send nothing"
    for topic in sorted({state.queue.topic for state in lost} & stay):
        if kinds.get(topic) == KEYED and not _is_exact(snapshot, topic, left):
            yield f"how the keys of {topic} spread over fewer queues: each queue is taken to keep its part"
        elif topic not in kinds:
            yield (
                f"how the producers of {topic} choose the queue: the shares of the window do not show it; half of the "
                "trials of the loss take it that they go round, half that keys choose"
            )


def _is_exact(snapshot: GroupSnapshot, topic: str, left: Sequence[QueueState]) -> bool:
    """Return whether each queue's keys after the loss follow from the hash: the new count of queues divides the old."""
    before, after = (sum(state.queue.topic == topic for state in states) for states in (snapshot.data_queues, left))
    return before % after == 0


def _by_topic(states: Sequence[QueueState]) -> Mapping[str, list[QueueState]]:
    by_topic: dict[str, list[QueueState]] = defaultdict(list)
    for state in states:
        by_topic[state.queue.topic].append(state)
    return by_topic
