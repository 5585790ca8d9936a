"""Where a plan can stand, and the one table of the moves that are legal between the phases.

::

    Pending <-> Approved --> Running <-> Paused
       |           |            |           |
       +--> Refused, Expired    +-> Verifying --> Succeeded     all steps are done: the new state
                                |
                                +-> Aborting ---> RolledBack    all steps are undone: the old state
                                |      |
                                +------+--------> Stuck         neither can be reached: a person must look

A plan that is paused may be aborted, too.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where a plan stands.

    Nothing was changed in ``PENDING``, ``APPROVED``, ``REFUSED`` and ``EXPIRED``. ``VERIFYING`` has done every step.
    ``SUCCEEDED`` is the new state, whether or not the forecast was met: that is the verdict's word. ``ROLLED_BACK`` is
    the old state.
    """

    PENDING = "Pending"
    APPROVED = "Approved"
    RUNNING = "Running"
    PAUSED = "Paused"
    VERIFYING = "Verifying"
    ABORTING = "Aborting"
    SUCCEEDED = "Succeeded"
    ROLLED_BACK = "RolledBack"
    REFUSED = "Refused"
    EXPIRED = "Expired"
    STUCK = "Stuck"

    @property
    def is_final(self) -> bool:
        """True when no move leads out of it."""
        return not LEGAL_MOVES[self]

    @property
    def is_in_progress(self) -> bool:
        """True while the plan may have changed something and is at neither end: no other plan may touch its group."""
        return self in (Phase.RUNNING, Phase.PAUSED, Phase.VERIFYING, Phase.ABORTING, Phase.STUCK)


LEGAL_MOVES: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.PENDING: frozenset({Phase.APPROVED, Phase.REFUSED, Phase.EXPIRED}),
    Phase.APPROVED: frozenset({Phase.PENDING, Phase.RUNNING, Phase.REFUSED, Phase.EXPIRED}),
    Phase.RUNNING: frozenset({Phase.PAUSED, Phase.VERIFYING, Phase.ABORTING, Phase.STUCK}),
    Phase.PAUSED: frozenset({Phase.RUNNING, Phase.ABORTING, Phase.STUCK}),
    Phase.VERIFYING: frozenset({Phase.SUCCEEDED}),
    Phase.ABORTING: frozenset({Phase.ROLLED_BACK, Phase.STUCK}),
    Phase.SUCCEEDED: frozenset(),
    Phase.ROLLED_BACK: frozenset(),
    Phase.REFUSED: frozenset(),
    Phase.EXPIRED: frozenset(),
    Phase.STUCK: frozenset(),
}
"""From each phase to those that may follow it. To stay is no move."""


class IllegalMoveError(ValueError):
    """A phase was to follow another that it may not follow: a fault of ours, never of the input."""


def check_move(now: Phase, then: Phase) -> None:
    """Raise ``IllegalMoveError``, which names both phases and the legal ones, unless ``then`` may follow ``now``."""
    if then != now and then not in LEGAL_MOVES[now]:
        legal = ", ".join(sorted(LEGAL_MOVES[now])) or "nothing, as it is an end"
        raise IllegalMoveError(f"{then} cannot follow {now}: {legal} can")
