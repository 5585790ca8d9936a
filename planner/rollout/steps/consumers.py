"""Steps that start and stop consumers of a Deployment, and say which pods stop first."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from planner.rollout.steps.moves import MovedQueues
from planner.rollout.steps.sense import check_limit, check_names
from planner.rollout.steps.words import named, of, pods, replicas

LOWEST_DELETION_COST = -2_147_483_648
"""``controller.kubernetes.io/pod-deletion-cost`` is a 32 bit number, 0 where it is absent: the lowest goes first."""


@dataclass(frozen=True, slots=True)
class StartConsumers:
    """Raise the Deployment's replicas; undo sets them back. Moves queues as soon as the new consumers join."""

    is_final: ClassVar[bool] = False

    from_replicas: int
    to_replicas: int
    time_limit_seconds: int
    forecast: MovedQueues
    undo: str
    kind: Literal["startConsumers"] = "startConsumers"
    deployment: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        if not 0 <= self.from_replicas < self.to_replicas:
            raise ValueError(f"{self.kind} to go up, not from {self.from_replicas} to {self.to_replicas} replicas")

    @property
    def action(self) -> str:
        """What it does."""
        return f"start {pods(self.to_replicas - self.from_replicas)}{of(self.deployment)}, {replicas(self)}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"{named(self.deployment)} has {self.from_replicas} replicas"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"{named(self.deployment)} asks for {self.to_replicas} replicas"


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that is to go, and the group's members in it: they go together."""

    pod: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StopConsumers:
    """Lower the Deployment's replicas; ``preferred_victims`` are those whose stop moves the fewest queues.

    ``stopping`` are the pods that a StatefulSet stops, those with its highest numbers, and their members, the last
    first (``processCondemned``, Kubernetes 1.36); ``None`` where the pods of a Deployment stop.
    """

    is_final: ClassVar[bool] = False

    from_replicas: int
    to_replicas: int
    preferred_victims: tuple[str, ...]
    time_limit_seconds: int
    forecast: MovedQueues
    undo: str
    kind: Literal["stopConsumers"] = "stopConsumers"
    deployment: str | None = None
    stopping: tuple[Victim, ...] | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        if self.stopping is not None:
            self._check_stopping(self.stopping)
        if not 0 <= self.to_replicas < self.from_replicas:
            raise ValueError(f"{self.kind} to go down, not from {self.from_replicas} to {self.to_replicas} replicas")
        if len(set(self.preferred_victims)) < len(self.preferred_victims):
            raise ValueError(f"{self.kind} to name each victim once, not {', '.join(self.preferred_victims)}")

    def _check_stopping(self, stopping: tuple[Victim, ...]) -> None:
        check_names(self.kind, "pods that stop", [victim.pod for victim in stopping])
        check_names(self.kind, "members of pods that stop", [name for victim in stopping for name in victim.members])
        if len(stopping) != self.from_replicas - self.to_replicas:
            raise ValueError(
                f"{self.kind} to name {pods(self.from_replicas - self.to_replicas)} that stop, not {len(stopping)}"
            )

    @property
    def action(self) -> str:
        """What it does."""
        best = f", best {', '.join(self.preferred_victims)}" if self.preferred_victims else ""
        which = f" ({', '.join(victim.pod for victim in self.stopping)})" if self.stopping is not None else best
        return f"stop {pods(self.from_replicas - self.to_replicas)}{of(self.deployment)}, {replicas(self)}{which}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"{named(self.deployment)} has {self.from_replicas} replicas"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"{named(self.deployment)} asks for {self.to_replicas} replicas"


@dataclass(frozen=True, slots=True)
class MarkVictims:
    """Give these pods the deletion cost that makes the ReplicaSet stop them first, and nothing else.

    The ReplicaSet looks at the cost only among pods that are equally far: unassigned, pending and unready ones go
    first all the same (``ActivePodsWithRanks``, Kubernetes 1.36). So who really died is looked at after the stop.
    """

    is_final: ClassVar[bool] = False

    victims: tuple[Victim, ...]
    time_limit_seconds: int
    deletion_cost: int = LOWEST_DELETION_COST
    kind: Literal["markVictims"] = "markVictims"
    deployment: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "victims", self.pods)
        check_names(self.kind, "members of victims", [name for victim in self.victims for name in victim.members])
        if not LOWEST_DELETION_COST <= self.deletion_cost < 0:
            raise ValueError(
                f"{self.kind} to take a deletion cost below 0, what other pods have, down to {LOWEST_DELETION_COST}, "
                f"not {self.deletion_cost}"
            )

    @property
    def pods(self) -> tuple[str, ...]:
        """The names of the pods that are to go."""
        return tuple(victim.pod for victim in self.victims)

    @property
    def action(self) -> str:
        """What it does."""
        return f"mark {', '.join(self.pods)}{of(self.deployment)} so that they stop first"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"{', '.join(self.pods)} run in {named(self.deployment)} with the members that the plan names"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"{', '.join(self.pods)} have deletion cost {self.deletion_cost}"

    @property
    def undo(self) -> str:
        """What takes it back."""
        return f"give {', '.join(self.pods)} the deletion cost back that they had"
