"""How the pods of one group are split over the Deployments that run them: by weights, within each one's bounds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from planner.model.snapshot import GroupSnapshot
from planner.rollout.refusals import Refusal, refused
from planner.text.words import and_list


@dataclass(frozen=True, slots=True)
class Target:
    """One Deployment of a group: its share of the pods goes by ``weight``, within ``lowest`` and ``highest``.

    ``highest`` is ``None`` where the policy states no bound of its own for it.
    """

    name: str
    weight: int = 1
    lowest: int = 0
    highest: int | None = None

    def may_grow(self, count: int) -> bool:
        """Return whether it may have one pod more than ``count``."""
        return self.highest is None or count < self.highest


@dataclass(frozen=True, slots=True)
class Share:
    """How many pods a Deployment of the group has before and after a change."""

    name: str
    before: int
    after: int


def split(targets: Sequence[Target], present: Sequence[int], total: int) -> tuple[int, ...]:
    """Return how many pods each Deployment has when all have ``total`` together, ``present`` being those of now.

    Pods are added, or taken away, one by one; none goes from one Deployment to another. A pod is added where the
    Deployment is furthest below its weight, which is where (pods + ½) / weight is least: Sainte-Laguë's method, the one
    whose shares are nearest to the weights of all that never take a pod from one because the total grew (largest
    remainders do). It is taken where (pods - ½) / weight is greatest. Of equals the first gets it and the last gives
    it. A Deployment below its minimum gets pods first, one above its maximum gives them first, and none leaves its
    bounds.

    Weights 2 and 1, 3 pods and 1: 6 pods are 4 and 2, 7 are 5 and 2. Back at 4 they are 3 and 1.

    Raises ``ValueError`` where the bounds leave no such split.
    """
    counts = list(present)
    while sum(counts) != total:
        is_growing = sum(counts) < total
        index = _next_to_grow(targets, counts) if is_growing else _next_to_shrink(targets, counts)
        if index is None:
            raise ValueError(f"the bounds of {', '.join(target.name for target in targets)} to allow {total} pods")
        counts[index] += 1 if is_growing else -1
    return tuple(counts)


def split_shares(targets: Sequence[Target], present: Sequence[int], total: int) -> tuple[Share, ...]:
    """Return the ``split`` with the names. Raises ``ValueError`` as it does."""
    after = split(targets, present, total)
    return tuple(
        Share(target.name, before, count) for target, before, count in zip(targets, present, after, strict=True)
    )


def split_over_targets(snapshot: GroupSnapshot, targets: Sequence[Target], total: int) -> tuple[Share, ...]:
    """Return how many of ``total`` pods each Deployment has, nothing where one runs all.

    Raises ``RefusedError`` where the snapshot is not of these Deployments, or their bounds allow no such split.
    """
    if not targets:
        return ()
    present = snapshot.deployment.targets if snapshot.deployment else ()
    names = [target.name for target in targets]
    if [each.name for each in present] != names:
        sentence = f"Deployments {and_list(names)} were not all read: see the snapshot's problems, and take a new one"
        raise refused(Refusal.NOT_AT_REST, sentence)
    try:
        return split_shares(targets, [each.replicas for each in present], total)
    except ValueError as error:
        raise refused(Refusal.OUTSIDE_POLICY, f"found no split: expected {error}") from error


def _next_to_grow(targets: Sequence[Target], counts: Sequence[int]) -> int | None:
    may = [index for index, target in enumerate(targets) if target.may_grow(counts[index])]
    below = [index for index in may if counts[index] < targets[index].lowest]
    return _first(below or may, lambda index: (counts[index] + 0.5) / targets[index].weight)


def _next_to_shrink(targets: Sequence[Target], counts: Sequence[int]) -> int | None:
    may = [index for index, target in enumerate(targets) if counts[index] > target.lowest]
    above = [index for index in may if not targets[index].may_grow(counts[index] - 1)]
    return _first(reversed(above or may), lambda index: -(counts[index] - 0.5) / targets[index].weight)


def _first(indices: Iterable[int], key: Callable[[int], float]) -> int | None:
    return min(indices, key=key, default=None)
