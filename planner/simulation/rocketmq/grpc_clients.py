"""What a change of the member count costs a group of gRPC clients, by the rules of proxy and client.

No queue moves and no member pauses, so that nothing of it is a trial of chance. What a stop costs rests on what the
stopped member holds, which nobody reports: 0 to its whole cache. Where only bounds are known they stand in
``unknowns``, and ``transition`` stays ``None``.
"""

from collections.abc import Iterator
from dataclasses import replace

from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import NO_TRANSITION, CandidateOutcome
from planner.simulation.rocketmq.sharing import MOST_CACHED
from planner.text.words import counted, duration

CLOSES_S = (1.0, 21.0)
"""A member that closes waits for its running receives, up to 20 s of long polling, and 1 s more
(``PushConsumerImpl#shutDown``, rocketmq-client-java 5.0.8 on; observed: 42 s for 1 000 messages at 20/s)."""

CRASH_S = (125.0, 135.0)
"""The proxy drops a client after 120 s without a heartbeat, by a scan each 10 s (``channelExpiredTimeout``), and makes
its messages visible 1 s later; the broker's revive takes 3 to 5 s (observed: 124.7 to 131 s)."""


def with_grpc_cost(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> CandidateOutcome:
    """Return the outcome with what the change costs; of a stop only bounds are known, as sentences."""
    stopped = len(snapshot.clients) - outcome.members
    if stopped <= 0:
        return replace(outcome, transition=NO_TRANSITION)  # it takes messages from its first pop on
    return replace(outcome, unknowns=(*outcome.unknowns, *_of_stops(snapshot, stopped)))


def _of_stops(snapshot: GroupSnapshot, stopped: int) -> Iterator[str]:
    clients, cached = counted(stopped, "client"), f"{stopped * MOST_CACHED:,}"
    yield (
        f"what the stop of {clients} costs: up to {cached} messages are in their caches. A client that shuts down in "
        f"order works them off first ({_closing(snapshot)}), and nothing comes twice (rocketmq-client-java 5.0.8 on; "
        "older and other clients drop their cache, which comes again later)"
    )
    low, high = CRASH_S
    yield (
        "whether they are killed before that: what they hold then comes again "
        f"{low:.0f} to {high:.0f} s later, and what their listeners had in work is done twice"
    )


def _closing(snapshot: GroupSnapshot) -> str:
    """Return how long a client with a full cache takes to shut down, and what a pod is given."""
    grace = f"; its pod is given {snapshot.deployment.grace_s} s" if snapshot.deployment else ""
    capacity = snapshot.consumer_capacity
    if capacity is None or capacity.is_lower_bound or capacity.sure_messages_per_s <= 0:
        return f"how long that takes is unknown{grace}"
    least, most = CLOSES_S
    longest = MOST_CACHED / capacity.sure_messages_per_s + most
    return f"{duration(least)} to {duration(longest)}{grace}"
