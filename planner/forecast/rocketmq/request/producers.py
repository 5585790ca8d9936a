"""How a topic's producers choose the queue: what comes into the other queues when a broker dies follows from it.

``TopicPublishInfo#selectOneMessageQueue`` and ``MQFaultStrategy`` (4.9.8, 5.5.0), ``SelectMessageQueueByHash``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from planner.forecast.common.request_fields import Version

EVEN_AVOIDANCE_SINCE = Version(5, 1, 4)
"""Since then what an avoided broker would get goes to all others evenly, before to the one queue that follows it."""


class ProducerKind(StrEnum):
    """Who chooses the queue of a message."""

    ROUND_ROBIN = "round_robin"
    KEYED = "keyed"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Producers:
    """The producers of a group's topics.

    ``kind`` is ``None`` where it is unknown; ``by_topic`` says otherwise for some topics. ``processes`` renew their
    routes each at its own time. ``avoids_faults`` is ``sendLatencyFaultEnable`` of clients of ``version``.
    """

    kind: ProducerKind | None = None
    by_topic: Mapping[str, ProducerKind | None] = field(default_factory=dict)
    processes: int = 1
    avoids_faults: bool = False
    version: Version = EVEN_AVOIDANCE_SINCE

    def of(self, topic: str) -> ProducerKind | None:
        """Return how the producers of one topic choose, ``None`` where that is unknown."""
        return self.by_topic.get(topic, self.kind)

    @property
    def favours_next(self) -> bool:
        """True where one queue gets all that an avoided broker would get, until the route is renewed."""
        return self.avoids_faults and self.version < EVEN_AVOIDANCE_SINCE
