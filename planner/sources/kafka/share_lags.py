"""How many records share groups have not done, read over our own connections: they commit no offsets."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.errors import PlannerError
from planner.model.queues import TopicPartition
from planner.sources.kafka import requests
from planner.sources.kafka.answers import Commits
from planner.sources.kafka.broker_connections import BrokerConnections
from planner.sources.kafka.connection import Connection
from planner.sources.kafka.coordinators import ask_coordinators
from planner.sources.kafka.errors import ProtocolError, answer_error
from planner.sources.kafka.requests import WireSharedOffsets


def share_lags(connections: BrokerConnections, groups: Sequence[str]) -> dict[str, Commits | PlannerError]:
    """Return each share group's lags, or the error that stands in its way."""
    return ask_coordinators(connections, groups, _by_coordinator)


def _by_coordinator(link: Connection, _: int, groups: Sequence[str]) -> Mapping[str, Commits | PlannerError]:
    answers = link.ask(requests.DESCRIBE_SHARE_GROUP_OFFSETS, requests.share_offsets_request(tuple(groups)))
    return {answer.group: _lags(answer) for answer in answers}


def _lags(answer: WireSharedOffsets) -> Commits | PlannerError:
    """A lag is -1 while nothing of the partition has been done, and after state that a broker before 4.2 wrote."""
    if answer.code:
        return answer_error(f"offsets of share group {answer.group}", answer.code, answer.remark)
    repeated = _repeated(answer)
    entries = [entry for entry in answer.offsets if entry.partition not in repeated]
    refused = {
        entry.partition: answer_error(f"lag of {entry.partition}", entry.code, entry.remark)
        for entry in entries
        if entry.code
    }
    return Commits(
        offsets={entry.partition: entry.start for entry in entries if not entry.code and entry.start >= 0},
        errors={**refused, **repeated},
        lags={entry.partition: entry.lag if entry.lag >= 0 else None for entry in entries if not entry.code},
    )


def _repeated(answer: WireSharedOffsets) -> Mapping[TopicPartition, PlannerError]:
    """Return the partitions that an answer states more than once: nobody knows which of their lags is true."""
    counts = Counter(entry.partition for entry in answer.offsets)
    return {
        partition: ProtocolError(f"lag of {partition}: the broker states it {count} times: see its log")
        for partition, count in counts.items()
        if count > 1
    }


def _possible(commits: Commits, ends: Mapping[TopicPartition, int | PlannerError]) -> Commits:
    """Return the commits without partitions of which more is not done, or was, than their ends hold; these are errors.

    Without this a lag of any size would count as all that the partition ever had.
    """
    impossible: dict[TopicPartition, PlannerError] = {}
    for partition, lag in commits.lags.items():
        end, oldest = ends.get(partition), commits.offsets.get(partition, 0)
        if isinstance(end, int) and not max(lag or 0, oldest) <= end:
            impossible[partition] = ProtocolError(
                f"lag of {partition}: the broker states {lag} records from offset {oldest} on, but the partition "
                f"ends at {end}: was it made anew? See the broker's log"
            )
    return Commits(
        {partition: offset for partition, offset in commits.offsets.items() if partition not in impossible},
        {**commits.errors, **impossible},
        {partition: lag for partition, lag in commits.lags.items() if partition not in impossible},
    )


class SharePositions:
    """The offsets at which share groups would be if all that is done were at the front.

    A coordinator counts a lag at some moment between two readings of the partition's end, so that a position is known
    to what came in meanwhile. It keeps its former value while that can be true: a position that wavers would look like
    an offset that was reset.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, TopicPartition], int] = {}

    def locate(
        self,
        group: str,
        commits: Commits | PlannerError,
        ends_before: Mapping[TopicPartition, int | PlannerError],
        ends_after: Mapping[TopicPartition, int | PlannerError],
    ) -> Commits | PlannerError:
        """Return the group's ``commits`` with positions as offsets, of partitions whose lag and ends are known.

        Ends are read before and after the lags. Without a former value that can be true the offset of the oldest record
        that is not done is taken where it can be, and else the least possible: no lag comes out too small.
        """
        if isinstance(commits, PlannerError):
            return commits
        commits = _possible(commits, ends_after)
        offsets: dict[TopicPartition, int] = {}
        for partition, lag in commits.lags.items():
            before, after = ends_before.get(partition), ends_after.get(partition)
            if lag is None or not isinstance(before, int) or not isinstance(after, int):
                continue
            oldest = commits.offsets.get(partition, 0)
            least, most = max(oldest, before - lag), max(oldest, after - lag)
            last = self._last.get((group, partition), oldest)
            offsets[partition] = self._last[group, partition] = last if least <= last <= most else least
        return replace(commits, offsets=offsets)
