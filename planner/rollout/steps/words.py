"""The words that several steps share."""

from typing import Protocol


class _Scales(Protocol):
    @property
    def from_replicas(self) -> int: ...
    @property
    def to_replicas(self) -> int: ...


def named(deployment: str | None) -> str:
    """Return the Deployment by its name, or as the plan's own."""
    return f"Deployment {deployment}" if deployment else "the Deployment"


def of(deployment: str | None) -> str:
    """Return `` of Deployment x`` where it is not the plan's own."""
    return f" of Deployment {deployment}" if deployment else ""


def grouped(group: str | None) -> str:
    """Return the consumer group by its name, or as the plan's own."""
    return f"group {group}" if group else "the group"


def pods(count: int) -> str:
    """Return a number of pods with the noun in the right form."""
    return "1 pod" if count == 1 else f"{count} pods"


def replicas(step: _Scales) -> str:
    """Return from how many to how many."""
    return f"{step.from_replicas} to {step.to_replicas} replicas"
