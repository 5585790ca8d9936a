"""A group's past out of metrics, for policies that name a Prometheus server: history from before we first looked."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from planner.documents.policy import ConsumerScalingPolicy
from planner.model.points import MetricHistory

FIRST_TIME: Final = timedelta(days=14)
"""How far back a group is read that was never observed before: two weeks show what a weekday is like."""


def read_past(policy: ConsumerScalingPolicy, since: datetime, until: datetime) -> MetricHistory | None:
    """Return what metrics tell of the policy's group, ``None`` where the policy names no server.

    The cluster is the policy's: exporters name it as they like, or not at all. Raises what
    ``planner.sources.prometheus.history`` raises, and ``MissingExtraError`` without the extra ``prometheus``.
    """
    source = policy.spec.source
    server = source.prometheus
    if server is None:
        return None
    from planner.sources.prometheus import Access, Prometheus, Wanted, history  # noqa: PLC0415  needs the extra

    wanted = Wanted(source.system, source.group, None, source.topics, server.labels, server.matchers)
    with Prometheus(Access(server.url, server.bearer_token_file, server.basic_auth_file, server.ca_file)) as prometheus:
        return replace(history(prometheus, wanted, since, until), cluster=source.cluster)
