"""What a group needs of its consumers: the question that more pods answer, and another lever may."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Need:
    """The members have to do ``factor`` times what they do now.

    ``instead`` begins a sentence on it: ``Instead of 2 more pods``. ``members`` are those that the pods in question
    would run, ``None`` where no more pods are asked for; ``used`` is how much the busiest member is (1 is all it can
    do), ``None`` where that is unknown.
    """

    instead: str
    factor: float
    members: int | None
    used: float | None
