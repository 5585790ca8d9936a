"""A group's past out of metrics, for policies that name a Prometheus server: history from before our first sample."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import PlannerError
from planner.model.points import GroupPoint, MetricHistory

if TYPE_CHECKING:
    from planner.sources.prometheus import GroupQuery, Prometheus

T = TypeVar("T")

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


def group_past_or_problem(
    policy: ConsumerScalingPolicy, since: datetime, until: datetime
) -> tuple[tuple[GroupPoint, ...], tuple[str, ...]]:
    """Return the whole group's points that metrics show and no problem, or none and the sentence that says why."""
    try:
        return read_group_past(policy, since, until) or (), ()
    except PlannerError as error:
        return (), (f"the load of the last days out of metrics was not read: {error}",)


def read_past(policy: ConsumerScalingPolicy, since: datetime, until: datetime) -> MetricHistory | None:
    """Return what metrics show of the policy's group, ``None`` where the policy names no server.

    The cluster is the policy's: exporters name it as they like, or not at all. Raises what
    ``planner.sources.prometheus.history`` raises, and ``MissingExtraError`` without the extra ``prometheus``.
    """

    def read(prometheus: "Prometheus", query: "GroupQuery") -> MetricHistory:
        from planner.sources.prometheus import history  # noqa: PLC0415  needs the extra

        return replace(history(prometheus, query, since, until), cluster=policy.spec.source.cluster)

    return _asked(policy, read)


def read_group_past(policy: ConsumerScalingPolicy, since: datetime, until: datetime) -> tuple[GroupPoint, ...] | None:
    """Return the points of the whole group that metrics show, ``None`` where the policy names no server.

    Raises as ``read_past`` does.
    """

    def read(prometheus: "Prometheus", query: "GroupQuery") -> tuple[GroupPoint, ...]:
        from planner.sources.prometheus import group_history  # noqa: PLC0415  needs the extra

        return group_history(prometheus, query, since, until)

    return _asked(policy, read)


def _asked(policy: ConsumerScalingPolicy, read: "Callable[[Prometheus, GroupQuery], T]") -> T | None:
    """Return what ``read`` makes of the policy's server and of the query for its group; ``None`` without a server."""
    source = policy.spec.source
    server = source.prometheus
    if server is None:
        return None
    from planner.sources.prometheus import Access, GroupQuery, Prometheus  # noqa: PLC0415  needs the extra

    query = GroupQuery(source.system, source.group, None, source.topics, server.labels, server.matchers)
    with Prometheus(Access(server.url, server.bearer_token_file, server.basic_auth_file, server.ca_file)) as prometheus:
        return read(prometheus, query)
