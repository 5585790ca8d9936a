"""``member_label``: the pod label whose values are the members' names, where there is one."""

from collections.abc import Sequence

from planner.model.deployments import Pod
from planner.workload.clues import MemberClues

FEWEST = 2
"""Pods that must differ in a label: one pod alone cannot show whether all get the same value from the template."""


def member_label(pods: Sequence[Pod], members: Sequence[MemberClues]) -> str | None:
    """Return the label by which each member names a pod of its own; ``None`` where no label, or more than one, does."""
    live = [pod for pod in pods if not pod.has_finished and not pod.is_ending]
    if len(live) < FEWEST or len(live) != len(members):
        return None
    keys = {key for pod in live for key, _ in pod.labels}
    telling = [key for key in sorted(keys) if _tells(key, live, members)]
    return telling[0] if len(telling) == 1 else None


def _tells(key: str, pods: Sequence[Pod], members: Sequence[MemberClues]) -> bool:
    values = [pod.label(key) for pod in pods]
    if len(set(values)) != len(values):
        return False
    named = [[value for value in values if value in member.names] for member in members]
    return all(len(one) == 1 for one in named) and len({one[0] for one in named}) == len(values)
