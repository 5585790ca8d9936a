"""Which family of metrics tells of a group, what else does, and which selectors read it."""

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
class Wanted:
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

    wanted: Wanted
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
        equal = {**dict(metric.only), **self.wanted.equal(self.family, metric.dimensions)}
        if "group" in metric.dimensions:
            return (selector(metric.names, equal, {}),)
        return tuple(
            selector(metric.names, equal, {self.family.label("topic"): self.topics[start : start + _TOPICS_AT_ONCE]})
            for start in range(0, len(self.topics), _TOPICS_AT_ONCE)
        )


def choose(prometheus: Prometheus, wanted: Wanted, since: datetime, until: datetime) -> Choice:
    """Return the best family that has the group in the span.

    Raises ``UnknownNameError`` for a group or topic that no family knows, ``AmbiguousSeriesError`` when the group is
    in several clusters.
    """
    asked = [
        (family, _sightings(prometheus, family, wanted, since, until))
        for family in families_of(wanted.system, wanted.labels)
    ]
    found = [(family, label_sets) for family, label_sets in asked if label_sets]
    if not found:
        raise _unknown_group(prometheus, wanted, since, until)
    (family, label_sets), *others = found
    return Choice(
        wanted=wanted,
        family=family,
        also=tuple(one.name for one, _ in others),
        topics=_topics(family, wanted, label_sets),
        cluster=_cluster(family, wanted, label_sets),
    )


def list_groups(
    prometheus: Prometheus, wanted: Wanted, since: datetime, until: datetime
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the groups that each family of ``wanted.system`` knows in the span, as (family, names in order).

    ``wanted.group`` is not looked at. Families without any group are left out.
    """
    found = []
    for family in families_of(wanted.system, wanted.labels):
        asked = [selector(metric.names, dict(wanted.matchers), {}) for metric in family.sightings]
        names = {one.get(family.label("group"), "") for one in prometheus.series(asked, since, until)}
        if names - {""}:
            found.append((family.name, tuple(sorted(names - {""}))))
    return tuple(found)


def _sightings(
    prometheus: Prometheus, family: Family, wanted: Wanted, since: datetime, until: datetime
) -> tuple[Mapping[str, str], ...]:
    asked = [
        selector((name,), wanted.equal(family, metric.dimensions), {})
        for metric in family.sightings
        for name in metric.names
    ]
    return prometheus.series(asked, since, until)


def _topics(family: Family, wanted: Wanted, label_sets: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    seen = {one.get(family.label("topic"), "") for one in label_sets}
    topics = {one for one in seen if one and not one.startswith(_SIDE_TOPICS)}
    if wanted.topics is None:
        return tuple(sorted(topics))
    for topic in wanted.topics:
        if topic not in topics:
            raise UnknownNameError(
                f"metrics of {family.name} know no topic {topic} of group {wanted.group}, but "
                f"{_some(sorted(topics))}: correct the name"
            )
    return tuple(sorted(wanted.topics))


def _cluster(family: Family, wanted: Wanted, label_sets: Sequence[Mapping[str, str]]) -> str:
    label = family.roles.get("cluster")
    names = sorted({one[label] for one in label_sets if one.get(label)}) if label is not None else []
    if len(names) > 1:
        raise AmbiguousSeriesError(
            f"group {wanted.group} is in {len(names)} clusters ({_some(names)}): name one of them by a matcher, "
            f"for example {label}={names[0]!r}"
        )
    return wanted.cluster or "".join(names)


def _unknown_group(prometheus: Prometheus, wanted: Wanted, since: datetime, until: datetime) -> UnknownNameError:
    known = list_groups(prometheus, wanted, since, until)
    span = f"between {since:%Y-%m-%d %H:%M} and {until:%Y-%m-%d %H:%M} UTC"
    if not known:
        names = ", ".join(one.name for one in families_of(wanted.system, wanted.labels))
        return UnknownNameError(
            f"Prometheus {prometheus.url} has no metrics of {wanted.system} groups {span} (looked for {names}): see "
            f"whether it scrapes one of these, and whether labels are renamed"
        )
    told = "; ".join(f"{family} knows {_some(groups)}" for family, groups in known)
    return UnknownNameError(
        f"Prometheus {prometheus.url} knows no {wanted.system} group {wanted.group} {span}; {told}: check the spelling"
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED]) or "none"
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
