"""A group's past out of metrics, for policies that name a Prometheus server: history from before our first sample."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import PlannerError
from planner.model.points import MetricHistory

FIRST_TIME: Final = timedelta(days=14)
"""How far back a group is read that was never observed before: two weeks show what a weekday is like."""


def check_past(policy: ConsumerScalingPolicy) -> None:
    """Raise what keeps the server from being asked at all, without asking it: known before anybody waits for a watch.

    ``MissingExtraError`` without the extra ``prometheus``, ``BadInputError`` for settings that cannot be. Nothing where
    the policy names no server.
    """
    server = policy.spec.source.prometheus
    if server is None:
        return
    from planner.sources.prometheus import Access  # noqa: PLC0415  needs the extra

    access = Access(server.url, server.bearer_token_file, server.basic_auth_file, server.ca_file)
    access.headers()
    access.tls()


def past_or_problem(
    policy: ConsumerScalingPolicy, since: datetime, until: datetime
) -> tuple[MetricHistory | None, tuple[str, ...]]:
    """Return what ``read_past`` returns and no problem, or the sentence that says why there is no past.

    For after a watch, which is not lost because its past cannot be read.
    """
    try:
        return read_past(policy, since, until), ()
    except PlannerError as error:
        return None, (f"the past out of metrics was not read: {error}",)


def read_past(policy: ConsumerScalingPolicy, since: datetime, until: datetime) -> MetricHistory | None:
    """Return what metrics show of the policy's group, ``None`` where the policy names no server.

    The cluster is the policy's: exporters name it as they like, or not at all. Raises what
    ``planner.sources.prometheus.history`` raises, and ``MissingExtraError`` without the extra ``prometheus``.
    """
    source = policy.spec.source
    server = source.prometheus
    if server is None:
        return None
    from planner.sources.prometheus import Access, GroupQuery, Prometheus, history  # noqa: PLC0415  needs the extra

    query = GroupQuery(source.system, source.group, None, source.topics, server.labels, server.matchers)
    with Prometheus(Access(server.url, server.bearer_token_file, server.basic_auth_file, server.ca_file)) as prometheus:
        return replace(history(prometheus, query, since, until), cluster=source.cluster)
