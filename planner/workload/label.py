"""``member_label``: the pod label whose values are the members' names, where there is one."""

from collections.abc import Sequence

from planner.model.pods import Pod
from planner.workload.clues import MemberClues

FEWEST = 2
"""Pods that must differ in a label: one pod alone cannot show whether all get the same value from the template."""


def member_label(pods: Sequence[Pod], members: Sequence[MemberClues]) -> str | None:
    """Return the label by which each member names a pod of its own; ``None`` where no label, or more than one, does."""
    live = [pod for pod in pods if not pod.has_finished and not pod.is_ending]
    if len(live) < FEWEST or len(live) != len(members):
        return None
    keys = {key for pod in live for key, _ in pod.labels}
    identifying = [key for key in sorted(keys) if _identifies_members(key, live, members)]
    return identifying[0] if len(identifying) == 1 else None


def _identifies_members(key: str, pods: Sequence[Pod], members: Sequence[MemberClues]) -> bool:
    values = [pod.label(key) for pod in pods]
    if len(set(values)) != len(values):
        return False
    matches = [[value for value in values if value in member.names] for member in members]
    return all(len(match) == 1 for match in matches) and len({match[0] for match in matches}) == len(values)
