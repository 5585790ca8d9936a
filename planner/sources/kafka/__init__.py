"""What Kafka brokers report of consumer groups, read only.

Each module knows only those before it: ``errors``, ``wire`` (fields), ``subscription`` (what classic members declare),
``requests`` (the only ones that we can send), ``settings`` (properties), ``sasl``, ``connection``,
``broker_connections``, ``answers``, ``library`` (``confluent-kafka``), ``describe`` (groups), ``client``
(``KafkaAdmin``), ``observe``.
"""

from planner.errors import MissingExtraError

try:
    import confluent_kafka  # noqa: F401
except ImportError as error:
    raise MissingExtraError("reading Kafka", "kafka") from error

from planner.sources.kafka.client import KafkaAdmin, TimeLimits
from planner.sources.kafka.errors import AnswerError, ProtocolError, RefusedError
from planner.sources.kafka.observe import observe_group, observe_groups
from planner.sources.kafka.settings import KafkaSettings

__all__ = [
    "AnswerError",
    "KafkaAdmin",
    "KafkaSettings",
    "ProtocolError",
    "RefusedError",
    "TimeLimits",
    "observe_group",
    "observe_groups",
]
