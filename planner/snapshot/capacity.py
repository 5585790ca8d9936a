"""What one consumer can do, as far as its own figures tell."""

from collections.abc import Sequence

from planner.model.membership import ClientTuning, GroupMember
from planner.model.snapshot import Capacity


def observed_capacity(members: Sequence[GroupMember]) -> Capacity | None:
    """Return the mean capacity of the members in messages per second, ``None`` when no figure tells it.

    One listener call at a time and thread: threads / mean time of a call (``consumeRT`` of the last minute,
    topics weighted by their rate). Batches count as one message a call, so the figure is a lower bound there;
    it does not see a limit outside the listener (processor, network).
    """
    figures = [figure for m in members if m.tuning for figure in [_of_member(m.tuning)] if figure is not None]
    if not figures:
        return None
    mean = sum(figures) / len(figures)
    spread = f"{min(figures):.0f} to {max(figures):.0f}" if len(figures) > 1 else f"{mean:.0f}"
    return Capacity(
        messages_per_s=round(mean, 3),
        source=f"threads / consume time as {len(figures)} of {len(members)} members report it: {spread} messages/s",
    )


def _of_member(tuning: ClientTuning) -> float | None:
    busy = [figure for figure in tuning.figures if figure.consume_rt_ms > 0 and figure.ok_per_s > 0]
    handled = sum(figure.ok_per_s for figure in busy)
    if not busy or not tuning.threads:
        return None
    mean_rt_ms = sum(figure.consume_rt_ms * figure.ok_per_s for figure in busy) / handled
    return tuning.threads * 1000.0 / mean_rt_ms
