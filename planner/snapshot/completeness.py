"""How complete and how old each section of a snapshot is."""

from collections.abc import Sequence
from datetime import datetime

from planner.history.rates import QueueRates
from planner.model.queues import Queue
from planner.model.samples import GroupSample
from planner.model.snapshot import QueueState, SnapshotSection
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.unlisted import grpc_members, is_behind_proxy
from planner.text.words import counted, duration, queue_noun


def snapshot_sections(
    newest: GroupSample,
    queues: Sequence[QueueState],
    rates: dict[Queue, QueueRates],
    at: datetime,
    settings: SnapshotSettings,
    unlisted: str | None,
) -> tuple[SnapshotSection, ...]:
    """Return routes, members, ownership, offsets and rates, each with its age in seconds and its known share, 0 to 1.

    ``unlisted`` says what is known of consumers that no broker lists; ``None`` where there are none.
    """
    age_s = (at - newest.at).total_seconds()
    data = [state.queue for state in queues if not state.queue.is_retry]
    reported = {entry.queue for entry in newest.offsets}
    answered = [member for member in newest.members if member.owned is not None]
    covered = sum(min(rates[queue].covered_s, settings.window_s) for queue in data if queue in rates)
    topics = counted(len(newest.routes.topic_names), "topic")
    queues_read = counted(len(data), queue_noun(newest.system))
    return (
        SnapshotSection("routes", age_s, 1.0 if data else 0.0, f"{topics}, {queues_read}"),
        _members_section(newest, age_s, unlisted),
        SnapshotSection(
            "ownership",
            age_s,
            _share(len(answered), len(newest.members)),
            f"{len(answered)} of {len(newest.members)} members reported what they own{_sharing(newest)}",
        ),
        SnapshotSection("offsets", age_s, _share(sum(queue in reported for queue in data), len(data)), ""),
        SnapshotSection(
            "rates",
            age_s,
            share := _share(covered, settings.window_s * len(data)),
            _covering(share, settings.window_s),
        ),
    )


def _covering(share: float, window_s: float) -> str:
    window = f"the window of {duration(window_s)}"
    return f"samples cover {window}" if share == 1.0 else f"samples cover {duration(share * window_s)} of {window}"


def _members_section(newest: GroupSample, age_s: float, unlisted: str | None) -> SnapshotSection:
    listed = f"{len(newest.members)} members"
    if unlisted is None:
        return SnapshotSection("members", age_s, 1.0 if newest.members else 0.0, listed)
    behind = "behind a proxy" if is_behind_proxy(newest) else "no broker lists them"
    others = f"{listed} listed, others" if newest.members else "members"
    return SnapshotSection("members", age_s, 0.0, f"{others} unknown: {behind}")


def _sharing(newest: GroupSample) -> str:
    clients = len(grpc_members(newest))
    return f", of which {clients} are gRPC clients and own none" if clients else ""


def _share(amount: float, whole: float) -> float:
    return round(amount / whole, 4) if whole > 0 else 0.0
