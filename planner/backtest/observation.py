"""What a policy sees of a group at one moment, and how it answers."""

from dataclasses import dataclass
from typing import Protocol

from planner.backtest.scenario import Floats, Ints


@dataclass(frozen=True, slots=True)
class Observation:
    """What brokers and the cluster show at ``second`` of the played part; nothing later is in it.

    ``lag`` (end minus committed), ``arrived`` and ``consumed`` (both since the begin) count messages by queue;
    ``owners`` are ranks among the sorted names. ``running`` consumers of the ``ordered`` ones are ready. ``busy`` is
    the share of time in which each of them worked since the last observation or rebalance, for policies that read it.
    """

    second: float
    lag: Floats
    arrived: Floats
    consumed: Floats
    owners: Ints
    running: int
    ordered: int
    busy: Floats | None
    next_ready_s: float | None

    @property
    def total_lag(self) -> float:
        """Messages of all queues together."""
        return float(self.lag.sum())


class Policy(Protocol):
    """A rule that orders counts."""

    @property
    def name(self) -> str:
        """The rule's name, for people."""
        ...

    @property
    def tuning(self) -> str:
        """The settings of this run, for people."""
        ...

    @property
    def every_s(self) -> float:
        """Seconds between two observations."""
        ...

    @property
    def reads_busy(self) -> bool:
        """Whether it goes by how busy the consumers are."""
        ...

    def decide(self, observation: Observation) -> int | None:
        """Return the count to order, ``None`` to change nothing."""
        ...
