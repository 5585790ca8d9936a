"""Which family of metrics describes a group, what else does, and which selectors read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from planner.errors import UnknownNameError
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.errors import AmbiguousSeriesError
from planner.sources.prometheus.families import Family, Metric, families_of, selector

_SIDE_TOPICS: Final = ("%RETRY%", "%DLQ%")
_TOPICS_AT_ONCE: Final = 10
_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """Which group to read, and by which labels.

    ``cluster`` picks one cluster where the family names it truly, ``topics`` some of the group's topics. ``labels``
    renames roles (``cluster``, ``group``, ``topic``, ``partition``, ``broker``) for servers that relabel; a cluster
    label that is named here is taken to be true. ``matchers`` are labels that every series must have.
    """

    system: str
    group: str
    cluster: str | None = None
    topics: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    matchers: Mapping[str, str] = field(default_factory=dict)

    def equal(self, family: Family, dimensions: Sequence[str]) -> dict[str, str]:
        """Return the labels that a metric with these dimensions must carry."""
        has_cluster = family.has_real_cluster or "cluster" in self.labels
        equal = dict(self.matchers)
        if self.cluster is not None and has_cluster and "cluster" in dimensions:
            equal[family.label("cluster")] = self.cluster
        if "group" in dimensions:
            equal[family.label("group")] = self.group
        return equal


@dataclass(frozen=True, slots=True)
class Choice:
    """The family that is read, its label sets, those that were there too, and what follows from the label sets."""

    query: GroupQuery
    family: Family
    also: tuple[str, ...]
    topics: tuple[str, ...]
    cluster: str

    @property
    def problems(self) -> tuple[str, ...]:
        """What a reader should know of the choice."""
        if not self.also:
            return ()
        return (f"metrics of {self.family.name} are read; those of {', '.join(self.also)} are there, too",)

    def selectors(self, metric: Metric) -> tuple[str, ...]:
        """Return the selectors that read a metric: one, or one for every few topics where it has no group."""
        equal = {**dict(metric.only), **self.query.equal(self.family, metric.dimensions)}
        if "group" in metric.dimensions:
            return (selector(metric.names, equal, {}),)
        return tuple(
            selector(metric.names, equal, {self.family.label("topic"): self.topics[start : start + _TOPICS_AT_ONCE]})
            for start in range(0, len(self.topics), _TOPICS_AT_ONCE)
        )


def choose(prometheus: Prometheus, query: GroupQuery, since: datetime, until: datetime) -> Choice:
    """Return the best family that has the group in the span.

    Raises ``UnknownNameError`` for a group or topic that no family knows, ``AmbiguousSeriesError`` when the group is
    in several clusters.
    """
    asked = [
        (family, _series_of_group(prometheus, family, query, since, until))
        for family in families_of(query.system, query.labels)
    ]
    known = [(family, label_sets) for family, label_sets in asked if label_sets]
    if not known:
        raise _unknown_group(prometheus, query, since, until)
    (family, label_sets), *others = known
    return Choice(
        query=query,
        family=family,
        also=tuple(another.name for another, _ in others),
        topics=_topics(family, query, label_sets),
        cluster=_cluster(family, query, label_sets),
    )


def list_groups(
    prometheus: Prometheus, query: GroupQuery, since: datetime, until: datetime
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the groups that each family of ``query.system`` knows in the span, as (family, names in order).

    ``query.group`` is not used. Families without any group are left out.
    """
    groups = []
    for family in families_of(query.system, query.labels):
        asked = [selector(metric.names, dict(query.matchers), {}) for metric in family.group_metrics]
        names = {label_set.get(family.label("group"), "") for label_set in prometheus.series(asked, since, until)}
        if names - {""}:
            groups.append((family.name, tuple(sorted(names - {""}))))
    return tuple(groups)


def _series_of_group(
    prometheus: Prometheus, family: Family, query: GroupQuery, since: datetime, until: datetime
) -> tuple[Mapping[str, str], ...]:
    asked = [
        selector((name,), query.equal(family, metric.dimensions), {})
        for metric in family.group_metrics
        for name in metric.names
    ]
    return prometheus.series(asked, since, until)


def _topics(family: Family, query: GroupQuery, label_sets: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    names = {label_set.get(family.label("topic"), "") for label_set in label_sets}
    topics = {name for name in names if name and not name.startswith(_SIDE_TOPICS)}
    if query.topics is None:
        return tuple(sorted(topics))
    for topic in query.topics:
        if topic not in topics:
            raise UnknownNameError(
                f"metrics of {family.name} know no topic {topic} of group {query.group}, but "
                f"{_some(sorted(topics))}: correct the name"
            )
    return tuple(sorted(query.topics))


def _cluster(family: Family, query: GroupQuery, label_sets: Sequence[Mapping[str, str]]) -> str:
    label = family.roles.get("cluster")
    names = sorted({label_set[label] for label_set in label_sets if label_set.get(label)}) if label is not None else []
    if len(names) > 1:
        raise AmbiguousSeriesError(
            f"group {query.group} is in {len(names)} clusters ({_some(names)}): name one of them by a matcher, "
            f"for example {label}={names[0]!r}"
        )
    return query.cluster or "".join(names)


def _unknown_group(prometheus: Prometheus, query: GroupQuery, since: datetime, until: datetime) -> UnknownNameError:
    known = list_groups(prometheus, query, since, until)
    span = f"between {since:%Y-%m-%d %H:%M} and {until:%Y-%m-%d %H:%M} UTC"
    if not known:
        names = ", ".join(family.name for family in families_of(query.system, query.labels))
        return UnknownNameError(
            f"Prometheus {prometheus.url} has no metrics of {query.system} groups {span} (looked for {names}): see "
            f"whether it scrapes one of these, and whether labels are renamed"
        )
    hint = "; ".join(f"{family} knows {_some(groups)}" for family, groups in known)
    return UnknownNameError(
        f"Prometheus {prometheus.url} knows no {query.system} group {query.group} {span}; {hint}: check the spelling"
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED]) or "none"
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
