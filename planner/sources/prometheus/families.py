"""The families of metrics that describe consumer groups: their names, labels and habits, one value for each family.

Sources: RocketMQ 5.5.0 ``BrokerMetricsConstant`` and what a real broker shows; rocketmq-exporter 0.0.3
``RMQMetricsCollector``; kafka_exporter 1.9 ``kafka_exporter.go``; kafka-lag-exporter 0.8 README and ``Metrics.scala``.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from planner.errors import BadInputError, UnknownNameError

ROLES: Final = ("cluster", "group", "topic", "partition", "broker")
"""What a label may stand for; settings that rename labels go by these words."""


class Total(Enum):
    """How the series of one metric make one figure of the group."""

    SUM = "sum"
    """Each series counts something else."""
    LARGEST = "largest"
    """The worst one speaks for the group."""
    LARGEST_BROKER = "largest broker"
    """A member is connected to every broker of its topics, so the broker that sees most sees all (or most)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: the names it goes by, the labels that distinguish its series, and how to sum them.

    ``dimensions`` are roles or label names; two series that agree in all of them give the same figure twice.
    ``unit`` times a value is messages, seconds or members. ``only`` are matchers that always apply.
    ``only_grows``: a counter, or an offset. ``zero_is_unknown``: the exporter also shows 0 for what it cannot read.
    """

    names: tuple[str, ...]
    dimensions: tuple[str, ...]
    unit: float = 1.0
    total: Total = Total.SUM
    only: tuple[tuple[str, str], ...] = ()
    only_grows: bool = False
    zero_is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """What one exporter shows of a group.

    ``arrived`` and ``consumed`` only grow between resets: counters, or offsets. With ``is_by_queue`` they are offsets
    of single partitions. ``consumed`` is ``None`` where no metric counts what the group is done with: that is then what
    arrived less what the lag has grown by. ``handed_out`` only proves that the group is there: it counts what consumers
    fetched, which runs ahead of their work by all that they buffer. ``refresh_s`` is how old a value may be already
    when it is scraped. ``churning`` labels change their value while the figure stays the same. ``roles`` gives each
    role the label it goes by here.
    """

    name: str
    system: str
    roles: Mapping[str, str]
    arrived: Metric
    lag: Metric
    consumed: Metric | None = None
    handed_out: Metric | None = None
    lag_time: Metric | None = None
    members: Metric | None = None
    leader: Metric | None = None
    refresh_s: float = 0.0
    is_by_queue: bool = False
    has_real_cluster: bool = False
    churning: frozenset[str] = field(default_factory=frozenset)

    @property
    def group_metrics(self) -> tuple[Metric, ...]:
        """The metrics whose series prove that the group exists, or did."""
        return tuple(metric for metric in (self.lag, self.consumed, self.handed_out) if metric is not None)

    def with_labels(self, labels: Mapping[str, str]) -> "Family":
        """Return the family with other labels for some roles. Raises ``BadInputError`` for an unknown role."""
        for role in labels.keys() - set(ROLES):
            raise BadInputError(f"label setting {role!r} is none of {', '.join(ROLES)}: correct it")
        return replace(self, roles={**self.roles, **labels})

    def label(self, dimension: str) -> str:
        """Return the label of a role, or the label itself."""
        return self.roles.get(dimension, dimension)


_BROKER_LAG: Final = ("cluster", "broker", "group", "topic")
_NO_RETRY: Final = (("is_retry", "false"),)

ROCKETMQ_BROKER: Final = Family(
    name="rocketmq-broker",
    system="rocketmq",
    roles={"cluster": "cluster", "group": "consumer_group", "topic": "topic", "broker": "node_id"},
    arrived=Metric(("rocketmq_messages_in_total",), ("cluster", "broker", "topic", "message_type"), only_grows=True),
    handed_out=Metric(("rocketmq_messages_out_total",), _BROKER_LAG),
    lag=Metric(("rocketmq_consumer_lag_messages",), _BROKER_LAG, only=_NO_RETRY),
    lag_time=Metric(
        ("rocketmq_consumer_lag_latency_milliseconds", "rocketmq_consumer_lag_latency"),
        _BROKER_LAG,
        unit=0.001,
        total=Total.LARGEST,
        only=_NO_RETRY,
    ),
    members=Metric(
        ("rocketmq_consumer_connections",),
        ("cluster", "broker", "group", "language", "version", "consume_mode", "protocol_type"),
        total=Total.LARGEST_BROKER,
    ),
    has_real_cluster=True,
)

ROCKETMQ_EXPORTER: Final = Family(
    name="rocketmq-exporter",
    system="rocketmq",
    roles={"cluster": "cluster", "group": "group", "topic": "topic", "broker": "broker"},
    arrived=Metric(("rocketmq_producer_offset",), ("cluster", "broker", "topic"), only_grows=True),
    consumed=Metric(("rocketmq_consumer_offset",), _BROKER_LAG, only_grows=True),
    lag=Metric(("rocketmq_group_diff",), ("group", "topic")),
    lag_time=Metric(("rocketmq_group_get_latency_by_storetime",), _BROKER_LAG, unit=0.001, total=Total.LARGEST),
    members=Metric(("rocketmq_group_count",), ("group",), total=Total.LARGEST),
    refresh_s=60.0,
    has_real_cluster=True,
    churning=frozenset({"countOfOnlineConsumers", "msgModel", "caddr", "localaddr"}),
)

_PARTITION: Final = ("cluster", "topic", "partition")
_GROUP_PARTITION: Final = ("cluster", "group", "topic", "partition")

KAFKA_EXPORTER: Final = Family(
    name="kafka-exporter",
    system="kafka",
    roles={"group": "consumergroup", "topic": "topic", "partition": "partition"},
    arrived=Metric(("kafka_topic_partition_current_offset",), _PARTITION, only_grows=True),
    consumed=Metric(("kafka_consumergroup_current_offset",), _GROUP_PARTITION, only_grows=True),
    lag=Metric(("kafka_consumergroup_lag",), _GROUP_PARTITION),
    # It asks by the classic protocol only, to which brokers answer that a KIP-848 group has no members.
    members=Metric(("kafka_consumergroup_members",), ("cluster", "group"), total=Total.LARGEST, zero_is_unknown=True),
    leader=Metric(("kafka_topic_partition_leader",), _PARTITION),
    is_by_queue=True,
)

KAFKA_LAG_EXPORTER: Final = Family(
    name="kafka-lag-exporter",
    system="kafka",
    roles={"cluster": "cluster_name", "group": "group", "topic": "topic", "partition": "partition"},
    arrived=Metric(("kafka_partition_latest_offset",), _PARTITION, only_grows=True),
    consumed=Metric(("kafka_consumergroup_group_offset",), _GROUP_PARTITION, only_grows=True),
    lag=Metric(("kafka_consumergroup_group_lag",), _GROUP_PARTITION),
    lag_time=Metric(("kafka_consumergroup_group_lag_seconds",), _GROUP_PARTITION, total=Total.LARGEST),
    refresh_s=30.0,
    is_by_queue=True,
    churning=frozenset({"member_host", "consumer_id", "client_id"}),
)

FAMILIES: Final = (ROCKETMQ_BROKER, ROCKETMQ_EXPORTER, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER)
"""Of each system the best one first: read at the moment of the scrape before read in advance."""


def families_of(system: str, labels: Mapping[str, str]) -> tuple[Family, ...]:
    """Return the system's families, best first, with renamed labels. Raises ``BadInputError``, ``UnknownNameError``."""
    families = tuple(family.with_labels(labels) for family in FAMILIES if family.system == system)
    if not families:
        known = ", ".join(dict.fromkeys(family.system for family in FAMILIES))
        raise UnknownNameError(f"no metrics are known of system {system!r}, but of {known}: correct the name")
    return families


def selector(names: Sequence[str], equal: Mapping[str, str], allowed: Mapping[str, Collection[str]]) -> str:
    """Return a PromQL selector for series with one of ``names``, equal labels, and labels that are one of several."""
    by_name = names[0] if len(names) == 1 else ""
    among = {} if by_name else {"__name__": names}
    matchers = [f"{label}={_quote(value)}" for label, value in sorted(equal.items())]
    matchers += [f"{label}=~{_quote(_pattern(values))}" for label, values in sorted({**among, **allowed}.items())]
    return f"{by_name}{{{','.join(matchers)}}}"


def _pattern(values: Collection[str]) -> str:
    return "|".join(re.sub(r"([^\w%/:@ -])", r"\\\1", value, flags=re.ASCII) for value in sorted(values))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
