"""A snapshot under the policy of today: what the policy states now counts, also where the snapshot was taken before."""

from collections.abc import Iterator
from dataclasses import replace

from planner.model.machine_rooms import with_rooms
from planner.model.snapshot import Capacity, GroupSnapshot, SnapshotSection
from planner.snapshot.capacity import with_measured
from planner.snapshot.pod_capacity import STATED, with_stated_pod
from planner.snapshot.pods import pod_size_of
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.unlisted import GRPC_CLIENTS
from planner.text import words

CONTRADICTED = "the policy s"
"""How a source begins that refuses the earlier policy's strategy (says, states)."""

RATES = "rates"


def under_policy(snapshot: GroupSnapshot, settings: SnapshotSettings) -> GroupSnapshot:
    """Return the snapshot as the policy of today would have it; the same one where nothing differs.

    Capacity, strategy, its options, timing and members a pod are those that the policy states. What the snapshot lacks
    is *unknown*, and says so: a capacity or strategy that only an earlier policy stated, rates of a longer window than
    the snapshot's, and upper rates of another percentile. Rates of a shorter window cannot be cut out of means.
    """
    adapted = _with_strategy(
        _with_percentile(_with_window(_with_pods(snapshot, settings), settings), settings), settings
    )
    return replace(adapted, capacity=_capacity(adapted, settings), timing=settings.timing, new_pods=settings.new_pods)


def differences(snapshot: GroupSnapshot, adapted: GroupSnapshot) -> Iterator[str]:
    """Yield a sentence for each thing in which ``adapted`` (by ``under_policy``) differs from its snapshot."""
    if snapshot.capacity != adapted.capacity:
        yield f"capacity: {_of_capacity(adapted.capacity)}, the snapshot had {_of_capacity(snapshot.capacity)}"
    if (snapshot.strategy, snapshot.strategy_options) != (adapted.strategy, adapted.strategy_options):
        yield f"strategy: {adapted.strategy or 'unknown'} ({adapted.strategy_source}), the snapshot had " + (
            snapshot.strategy or "none"
        )
    if (snapshot.members_per_pod, snapshot.uneven_pods) != (adapted.members_per_pod, adapted.uneven_pods):
        had = snapshot.members_per_pod or "no known number"
        yield f"members a pod: {adapted.members_per_pod or 'unknown'} ({adapted.members_per_pod_source}), " + (
            f"the snapshot had {had}"
        )
    if snapshot.timing != adapted.timing:
        yield "timing: the policy's of today"
    if snapshot.new_pods != adapted.new_pods:
        yield "new pods and the percentile of their ids: the policy's of today"
    if snapshot.window_s != adapted.window_s:
        stated, had = words.duration(adapted.window_s), words.duration(snapshot.window_s)
        yield f"window: {stated}, the snapshot has rates of {had}"
    if snapshot.percentile != adapted.percentile:
        yield f"percentile: {adapted.percentile:g}, the snapshot has upper rates of percentile {snapshot.percentile:g}"


def unknown_settings(snapshot: GroupSnapshot, settings: SnapshotSettings) -> Iterator[str]:
    """Yield a sentence for each setting that the snapshot does not state, so that it cannot be compared."""
    if snapshot.percentile is None:
        yield "percentile: the snapshot does not state whose upper rates it has, so they are taken as they are"
    if snapshot.deployment is not None and snapshot.member_label is None and settings.member_label is not None:
        yield f"label {settings.member_label}: the snapshot does not state by which label its pods were matched"


def _of_capacity(capacity: Capacity | None) -> str:
    return "none" if capacity is None else f"{words.rate(capacity.messages_per_s)} a consumer"


def _capacity(snapshot: GroupSnapshot, settings: SnapshotSettings) -> Capacity | None:
    stated, had = settings.capacity_messages_per_s, snapshot.capacity
    of_pod = settings.pod_capacity_messages_per_s
    if had is not None and had.pod_source == STATED and of_pod is None:
        had = replace(had, pod_messages_per_s=None, pod_low=None, pod_source="")
    if stated is not None:
        had = _restated(stated, had)
    elif had is not None and had.source == STATED:
        had = None
    return with_stated_pod(had, of_pod, snapshot.members_per_pod)


def _restated(stated: float, had: Capacity | None) -> Capacity:
    """Return the figure of today; what was observed, of pods and of busy consumers, stays."""
    if had is None:
        return Capacity(stated, STATED)
    if had.source == STATED:
        return replace(had, messages_per_s=stated)
    of_pod = (had.pod_messages_per_s, had.pod_low, had.pod_source)
    now = Capacity(stated, STATED, pod_messages_per_s=of_pod[0], pod_low=of_pod[1], pod_source=of_pod[2])
    return with_measured(now, had)


def _with_strategy(snapshot: GroupSnapshot, settings: SnapshotSettings) -> GroupSnapshot:
    stated, had, source = settings.strategy, snapshot.strategy, snapshot.strategy_source
    if stated is None:
        if source != STATED and not source.startswith(CONTRADICTED):
            return snapshot
        lacks = "the snapshot holds no strategy but one that an earlier policy stated: take a new snapshot"
        return replace(snapshot, strategy=None, strategy_options={}, strategy_source=lacks)
    if stated == had:
        # Options that ownership showed stay where the policy of today states none.
        options = settings.strategy_options or snapshot.strategy_options
        return replace(snapshot, strategy_options=with_rooms(options, snapshot.clients, settings.new_pods.room))
    # No statement makes a proxy's clients own queues, and one that was contradicted stays so.
    is_contradicted = source.startswith(CONTRADICTED) and f" {stated}, but " in source
    if had is None and (GRPC_CLIENTS in source or is_contradicted):
        return snapshot
    if had is not None and source != STATED and not settings.states(had):
        wrong = settings.contradicted_by(source, had)
        return replace(snapshot, strategy=None, strategy_options={}, strategy_source=wrong)
    options = with_rooms(settings.strategy_options, snapshot.clients, settings.new_pods.room)
    return replace(snapshot, strategy=stated, strategy_options=options, strategy_source=STATED)


def _with_pods(snapshot: GroupSnapshot, settings: SnapshotSettings) -> GroupSnapshot:
    """Return the snapshot with the members a pod that it shows under the statement of today."""
    size = pod_size_of(snapshot, settings.members_per_pod)
    if (size.members, size.uneven) == (snapshot.members_per_pod, snapshot.uneven_pods):
        return snapshot
    return replace(snapshot, members_per_pod=size.members, members_per_pod_source=size.source, uneven_pods=size.uneven)


def _with_percentile(snapshot: GroupSnapshot, settings: SnapshotSettings) -> GroupSnapshot:
    if snapshot.percentile in (None, settings.percentile):
        return snapshot
    lacks = (
        f"upper rates of percentile {snapshot.percentile:g}, out of which no percentile {settings.percentile:g} can be "
        "computed"
    )
    parts = tuple(
        replace(section, completeness=0.0, note=lacks) if section.name == RATES else section
        for section in snapshot.parts
    )
    return replace(snapshot, percentile=settings.percentile, parts=parts)


def _with_window(snapshot: GroupSnapshot, settings: SnapshotSettings) -> GroupSnapshot:
    if settings.window_s == snapshot.window_s:
        return snapshot
    parts = tuple(_of_window(section, snapshot.window_s, settings.window_s) for section in snapshot.parts)
    return replace(snapshot, window_s=settings.window_s, parts=parts)


def _of_window(section: SnapshotSection, had_s: float, stated_s: float) -> SnapshotSection:
    if section.name != RATES:
        return section
    had, stated = words.duration(had_s), words.duration(stated_s)
    if stated_s > had_s:
        covered = round(section.completeness * had_s / stated_s, 4)
        return replace(section, completeness=covered, note=f"samples of {had} for a window of {stated}")
    lacks = f"means of {had}, out of which no window of {stated} can be cut"
    return replace(section, completeness=0.0, note=lacks)
