"""What a standing sampler has read of each group, and whether that is enough for a run that reads only the past.

``planner sample`` keeps it in one file of the data folder, ``sampling.json``: samples themselves are no witness of it,
as the lag history packs and removes them.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from planner.documents.data import DataKind
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.history.intervals import GAP_FACTOR
from planner.history.rates import REACH_FACTOR
from planner.storage.files import write_atomically
from planner.storage.landing import GroupKey
from planner.storage.layout import sampling_record

log = logging.getLogger(__name__)

LEAST_PERIODS: Final = 2
"""So many periods have to fit into a window, or its mean would rest on a single figure."""

MOST_SPANS: Final = 64
"""Of one group that are kept: a group that fails more often than it answers has no coverage worth the room."""

KEPT: Final = timedelta(days=1) * REACH_FACTOR
"""The longest window is a day, and reaches back over gaps so many times its length."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a group was read once a period, without a gap: from the first read to the newest (UTC)."""

    first: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """The spans of one group, oldest first."""

    system: str
    cluster: str
    group: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a sampler with a period of ``every_s`` seconds has read of all its groups."""

    every_s: float
    groups: tuple[GroupCoverage, ...] = ()

    @property
    def longest_break(self) -> timedelta:
        """How far apart two reads may lie with no gap between them: 105 s for a period of a minute."""
        return timedelta(seconds=GAP_FACTOR * self.every_s)

    def add(self, reads: Mapping[GroupKey, datetime]) -> "Coverage":
        """Return the coverage with one more read of each of these groups, taken at the given times."""
        known = {(entry.system, entry.cluster, entry.group): entry.spans for entry in self.groups}
        spans = known | {key: self._extended(known.get(key, ()), at) for key, at in reads.items()}
        oldest = max(reads.values()) - KEPT if reads else None
        return replace(
            self,
            groups=tuple(
                GroupCoverage(*key, of_group)
                for key, of_group in sorted(spans.items())
                if oldest is None or of_group[-1].newest >= oldest
            ),
        )

    def _extended(self, spans: tuple[Span, ...], at: datetime) -> tuple[Span, ...]:
        if spans and at <= spans[-1].newest:  # a clock that was set back
            return spans
        if spans and at - spans[-1].newest <= self.longest_break:
            return (*spans[:-1], Span(spans[-1].first, at))
        return (*spans, Span(at, at))[-MOST_SPANS:]

    def is_fresh(self, policy: ConsumerScalingPolicy, at: datetime) -> bool:
        """Return whether a read at ``at`` follows the newest read of the policy's group without a gap."""
        spans = self._spans(policy)
        return bool(spans) and abs(at - spans[-1].newest) <= self.longest_break

    def is_enough(self, policy: ConsumerScalingPolicy, at: datetime) -> bool:
        """Return whether a run at ``at`` knows the policy's window by these reads and one of its own.

        The newest read is fresh; two periods fit into the window; and the reads cover as much of it as the policy asks
        for (``minCompleteness``). As for rates, a window that has gaps reaches back over them, ``REACH_FACTOR`` times
        its length at most.
        """
        window_s = float(policy.spec.window.seconds)
        if not self.is_fresh(policy, at) or LEAST_PERIODS * self.every_s > window_s:
            return False
        earliest = at - timedelta(seconds=REACH_FACTOR * window_s)
        *older, last = self._spans(policy)
        spans = (*older, Span(last.first, max(at, last.newest)))
        covered_s = sum(max(0.0, (span.newest - max(span.first, earliest)).total_seconds()) for span in spans)
        return covered_s >= policy.spec.freshness.min_completeness * window_s

    def _spans(self, policy: ConsumerScalingPolicy) -> tuple[Span, ...]:
        source = policy.spec.source
        key = source.system, source.cluster, source.group
        return next((entry.spans for entry in self.groups if (entry.system, entry.cluster, entry.group) == key), ())


COVERAGE: DataKind[Coverage] = DataKind("SamplingCoverage", TypeAdapter(Coverage))


def read_coverage(data: Path) -> Coverage | None:
    """Return what the data folder's sampler has read, ``None`` where none ever read for it.

    A file that cannot be read counts as none, with a warning: a run then watches the groups itself.
    """
    path = sampling_record(data)
    if not path.exists():
        return None
    try:
        return COVERAGE.read(path)
    except BadInputError as error:
        log.warning("%s: runs watch the groups themselves until planner sample has written it anew", error)
        return None


def write_coverage(data: Path, coverage: Coverage) -> None:
    """Write what the sampler has read. Raises ``StorageError`` where that fails."""
    write_atomically(sampling_record(data), COVERAGE.dump(coverage))


def needs_single_read(coverage: Coverage | None, policies: Collection[ConsumerScalingPolicy], at: datetime) -> bool:
    """Return whether a run at ``at`` reads these policies' groups once, as it knows the rest from the past.

    So it is where the sampler covers one of them at least, and lacks time for none of those that it reads. A group that
    the sampler cannot read, such as a misspelt one, keeps nobody else waiting: a watch would not read it either.
    """
    if coverage is None:
        return False
    covered = [policy for policy in policies if coverage.is_enough(policy, at)]
    return bool(covered) and not any(coverage.is_fresh(policy, at) for policy in policies if policy not in covered)


def gaps_judged_by(
    coverage: Coverage | None, policies: Iterable[ConsumerScalingPolicy], at: datetime, own_s: float
) -> float:
    """Return the period in seconds by which a run at ``at`` judges gaps in the samples of these policies' groups.

    ``own_s`` is that of its own reads. Where a sampler reads one of the groups, nothing is missing between two reads.
    """
    if coverage is None or not any(coverage.is_fresh(policy, at) for policy in policies):
        return own_s
    return max(own_s, coverage.every_s)
