"""Consumer groups through a Prometheus server, for those who have metrics only, or want their past.

From the wire up, each module knows only those before it: ``errors``, ``access`` (URL, account, TLS), ``answers`` (JSON
to series), ``client`` (``Prometheus``), ``families`` (which names mean what), ``choice`` (which family has the group),
``metric_table`` (one metric over time), ``figures`` (rates and levels), ``history`` and ``observe`` (what others call).
Needs the extra ``prometheus`` (httpx).
"""

from planner.sources.prometheus.access import Access
from planner.sources.prometheus.choice import GroupQuery, list_groups
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.errors import AmbiguousSeriesError, AnswerError, QueryError, RefusedError
from planner.sources.prometheus.history import group_history, history
from planner.sources.prometheus.observe import observe_group

__all__ = [
    "Access",
    "AmbiguousSeriesError",
    "AnswerError",
    "GroupQuery",
    "Prometheus",
    "QueryError",
    "RefusedError",
    "group_history",
    "history",
    "list_groups",
    "observe_group",
]
