"""The rolling update of a Deployment, whatever its pods consume: how many pods start and stop when.

``rolloutRolling`` of Kubernetes' Deployment controller: it starts new pods as long as there are fewer than replicas and
surge, stops old ones as long as more are available than replicas less unavailable, and looks again whenever a pod has
become available. A pod that is stopping counts no more, so that for its grace period there may be more processes.
"""

from dataclasses import dataclass

from planner.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Step:
    """At ``at_s`` seconds so many new pods are created, and after that so many old ones get their stop signal."""

    at_s: float
    starts: int
    stops: int


@dataclass(frozen=True, slots=True)
class Rolling:
    """A rolling update of ``replicas`` pods: ``surge`` and ``unavailable`` are pods, the others seconds.

    From a pod's creation: ``start_s`` to the start of its client, ``ready_s`` to its readiness, which has to last
    ``min_ready_s``; ``grace_s`` from the signal to the kill of a pod that stops.
    """

    replicas: int
    surge: int
    unavailable: int
    start_s: float
    ready_s: float
    min_ready_s: float
    grace_s: float

    @property
    def available_s(self) -> float:
        """Return how long after its creation a pod counts as available."""
        return self.ready_s + self.min_ready_s

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return what the controller does, in order; all old pods are available at the beginning."""
        created: list[float] = []
        steps: list[Step] = []
        now, old = 0.0, self.replicas
        while old or len(created) < self.replicas:
            available = sum(at + self.available_s <= now for at in created)
            # A stop makes room for a start at once, so both are done when neither is possible any more.
            starts, stops = self._possible(old, len(created), available)
            if starts or stops:
                steps.append(Step(now, starts, stops))
                created += [now] * starts
                old -= stops
            else:
                now = min(at + self.available_s for at in created if at + self.available_s > now)
        return tuple(steps)

    def _possible(self, old: int, new: int, available: int) -> tuple[int, int]:
        """Return how many pods may start, and how many old ones may stop, with so many old, new, and available ones."""
        starts = min(self.replicas + self.surge - old - new, self.replicas - new)
        return max(starts, 0), max(min(old, old + available - (self.replicas - self.unavailable)), 0)

    @property
    def clients_start_s(self) -> tuple[float, ...]:
        """Return when each new pod's client starts."""
        return tuple(step.at_s + self.start_s for step in self.steps for _ in range(step.starts))

    @property
    def pods_stop_s(self) -> tuple[float, ...]:
        """Return when old pods get their stop signal, the first one first; which pod that is, only the cluster
        knows."""
        return tuple(step.at_s for step in self.steps for _ in range(step.stops))


def roll(
    replicas: int, surge: int, unavailable: int, *, start_s: float, ready_s: float, min_ready_s: float, grace_s: float
) -> Rolling:
    """Return the rolling update of so many pods; where both bounds come to none one pod may be unavailable.

    That is how ``ResolveFenceposts`` has it. Raises ``BadInputError`` for a pod that is ready before its client starts.
    """
    if start_s > ready_s:
        raise BadInputError(
            f"change.start_s: found {start_s:g}, expected at most ready_s ({ready_s:g}): "
            "a pod is ready when its client has started"
        )
    unavailable = min(unavailable, replicas)
    return Rolling(replicas, surge, unavailable if surge or unavailable else 1, start_s, ready_s, min_ready_s, grace_s)
