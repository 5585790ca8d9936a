"""Groups whose capacity another lever than their number of members decides: known by evidence, never by their name.

Kafka Streams has an assignor of its own, a Connect worker gives the consumers of its sink tasks ids of its own, and a
RocketMQ group may consume in order through a proxy. All look like groups of plain consumers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.text.words import counted

STREAMS_ASSIGNOR: Final = "stream"
"""``StreamsPartitionAssignor#name`` (Kafka 2.4 to 4.4), of no other client."""

_SINK_TASK: Final = re.compile(r"connector-consumer-(?P<connector>.+)-\d+")
"""Client id of a sink task's consumer (``Worker#baseConsumerConfigs``, Kafka 2.3 to 4.4)."""

_STREAMS: Final = (
    "its own assignor gives out tasks, moves those with state only once that is restored elsewhere, and a member that "
    "is closed stays in the group until its session is over (45 s)"
)


@dataclass(frozen=True, slots=True)
class OtherLever:
    """What a group is and by which evidence, why its number of members is not decided here, and which lever it has."""

    kind: str
    evidence: str
    reason: str
    lever: str

    @property
    def sentence(self) -> str:
        """All of it, as the sentence of a hold says it."""
        return f"{self.kind} ({self.evidence}): {self.reason}. Its lever: {self.lever}"


def kafka_lever(assignor: str | None, client_ids: Sequence[str]) -> OtherLever | None:
    """Return the lever of a Kafka group that is a Streams application or a Connect sink, ``None`` for any other."""
    if assignor == STREAMS_ASSIGNOR:
        return OtherLever(
            "a Kafka Streams application",
            f"assignor {STREAMS_ASSIGNOR}",
            _STREAMS,
            "num.stream.threads, and instances up to the number of tasks; let one change settle before the next",
        )
    tasks = [_SINK_TASK.fullmatch(client_id) for client_id in client_ids]
    if not tasks or None in tasks:
        return None
    connectors = sorted({task["connector"] for task in tasks if task is not None})
    return OtherLever(
        "tasks of a Kafka Connect sink",
        f"client ids connector-consumer-{connectors[0]}-N",
        "its workers decide where a task runs, and another number of pods changes no number of tasks",
        f"tasks.max of connector {', '.join(connectors)}",
    )


def in_order_lever(queues: int) -> OtherLever:
    """Return the lever of a group that gRPC clients consume in order, of so many queues.

    A queue's next batch is handed out when the last one is acknowledged, whichever member asks
    (``ConsumerOrderInfoManager``, 5.5.0); which message group is the busiest no broker shows.
    """
    return OtherLever(
        "gRPC clients that consume in order",
        "consumeMessageOrderly of the group",
        f"at most {counted(queues, 'queue')} are worked on at once, one message after the other of each, whichever "
        f"member asks: more than {counted(queues, 'member')} only idle, and whether fewer do depends on the busiest "
        "message group, which no broker shows",
        "more queues, or a faster listener",
    )
