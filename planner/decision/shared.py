"""Several groups that the same pods serve: the smallest count that suits all of them, and whose plan it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.decision.decision import Decision, HoldCause
from planner.text.words import counted, pods

KEEPS_THE_COUNT: Final = frozenset(
    {
        HoldCause.RIGHT_ALREADY,
        HoldCause.NO_COUNT_MEETS,
        HoldCause.GROWTH_DID_NOT_HELP,
        HoldCause.BLOCKED_QUEUES,
        HoldCause.SLOW_MEMBERS,
        HoldCause.UNKNOWN_CAPACITY,
        HoldCause.REFUTED_CAPACITY,
        HoldCause.UNKNOWN_RATES,
        HoldCause.UNKNOWN_LAG,
        HoldCause.RECENTLY_CHANGED,
        HoldCause.UNKNOWN_CHANGES,
    }
)
"""Holds that speak against fewer pods and not against more: what is unknown of a group's load, more pods do not worsen.

All others forbid any change: who runs where, by which strategy and how old that is nobody knows well enough.
"""


@dataclass(frozen=True, slots=True)
class Wish:
    """What one group would get alone; ``highest`` is the most pods that its policy allows."""

    policy: str
    decision: Decision
    highest: int

    @property
    def count(self) -> int:
        """The pods that it would get: those that run, where it is held."""
        return self.decision.target

    @property
    def group(self) -> str:
        """The group with its policy, for people."""
        return f"group {self.decision.group} (policy {self.policy})"

    @property
    def is_doubtful(self) -> bool:
        """True where it is held for a reason that forbids any change."""
        cause = self.decision.hold_cause
        return cause is not None and cause not in KEEPS_THE_COUNT


def decide_together(wishes: Sequence[Wish]) -> Mapping[str, Decision]:
    """Return the decision of each policy of one target, by its name: at most one of them scales, for all groups.

    The count is the largest that any group would get alone: none of them is given fewer pods than suit it. It is
    refused where another policy does not allow it. One group of which too little is known for any change holds all.
    """
    if (why := _first_obstacle(wishes)) is not None:
        return keep_counts(wishes, why)
    count, current = max(wish.count for wish in wishes), wishes[0].decision.current
    lead = leading(wishes)
    if count == current:
        keeper = next((wish for wish in wishes if wish.count == count), wishes[0])
        return keep_counts(wishes, f"{keeper.group} needs {_pods(count)}: {_reason(keeper)}")
    decisions = keep_counts(
        wishes, f"the plan of policy {lead.policy} scales the same pods to {count} for all their groups"
    )
    return {**decisions, lead.policy: replace(lead.decision, reason=_lead_reason(lead, wishes))}


def leading(wishes: Sequence[Wish]) -> Wish:
    """Return the wish for most pods, of equals the first one by its policy's name: its policy makes the plan."""
    return min(wishes, key=lambda wish: (-wish.count, wish.policy))


def keep_counts(wishes: Sequence[Wish], why: str) -> Mapping[str, Decision]:
    """Return holds for all groups: those that are held already keep their reason, ``why`` is that of the others."""
    return {wish.policy: wish.decision if wish.decision.is_hold else _keep_count(wish.decision, why) for wish in wishes}


def _keep_count(decision: Decision, why: str) -> Decision:
    present = pods(decision.current, decision.current * decision.members_per_pod)
    reason = f"Hold at {present}: {decision.target} would be right for this group alone, but {why}."
    return replace(decision, target=decision.current, reason=reason, hold_cause=HoldCause.SHARED_TARGET)


def _first_obstacle(wishes: Sequence[Wish]) -> str | None:
    """Return why no group of these may get another count, as half a sentence; ``None`` where one may."""
    return next(_obstacles(wishes), None)


def _obstacles(wishes: Sequence[Wish]) -> Iterator[str]:
    if len({wish.decision.current for wish in wishes}) > 1:
        counts = ", ".join(f"{wish.decision.current} for {wish.group}" for wish in wishes)
        yield f"the groups of these pods show different counts of pods ({counts}): take new snapshots"
    for wish in wishes:
        if wish.is_doubtful:
            yield f"{wish.group} in the same pods is held: {_reason(wish)}"
    lead = leading(wishes)
    for wish in wishes:
        if lead.count > max(wish.highest, wish.decision.current):
            yield (
                f"{lead.group} needs {_pods(lead.count)}, and {wish.group} in the same pods allows {wish.highest} at "
                "most: raise its maxReplicas"
            )


def _reason(wish: Wish) -> str:
    """Return the reason of a decision without its first words and its stop."""
    return wish.decision.reason.partition(": ")[2].rstrip(".")


def _lead_reason(lead: Wish, wishes: Sequence[Wish]) -> str:
    others = ", ".join(f"{wish.count} for {wish.group}" for wish in wishes if wish is not lead)
    why = lead.decision.reason.rstrip(".")
    return f"{why}; {lead.group} asks for it, and the same pods serve other groups, which alone would get {others}."


def _pods(count: int) -> str:
    return counted(count, "pod")
