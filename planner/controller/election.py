"""``Election``: of several replicas one leads, by a lease as the groups' own; the others stand by.

No replica is notified of its loss: one that could not renew stops before the lease runs out, by a clock that no one
sets.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from planner.deployments.clock import passed_s
from planner.errors import OutOfReachError
from planner.execution.lease import MARGIN, is_free, needs_renewal
from planner.execution.ports import ConflictError, Lease, Leases

log = logging.getLogger(__name__)

_NEVER: Final = float("-inf")


class Election:
    """One replica's part in it. ``attempt`` must be called every few seconds, far more often than the lease is long."""

    def __init__(
        self,
        leases: Leases,
        name: str,
        holder: str,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = passed_s,
    ) -> None:
        self._leases, self._name, self._holder = leases, name, holder
        self._clock, self._monotonic = clock, monotonic
        self._until = _NEVER
        self._answered_at = _NEVER

    def leads(self) -> bool:
        """True while this replica may act."""
        return self._monotonic() < self._until

    @property
    def silent_s(self) -> float:
        """Seconds since the API server last answered; infinite before it first did."""
        return self._monotonic() - self._answered_at

    def attempt(self) -> None:
        """Take or renew the lease, or see that another has it. Raises ``OutOfReachError`` when the server is away."""
        led = self.leads()
        try:
            self._attempt()
        except ConflictError:
            self._until = _NEVER  # somebody was faster
        self._answered_at = self._monotonic()
        if led != self.leads():
            log.info("this replica leads" if self.leads() else "this replica stands by", extra={"lease": self._name})

    def give_back(self) -> None:
        """Stop leading, and let another begin at once. Never raises: the lease runs out by itself."""
        self._until = _NEVER
        try:
            lease = self._leases.read(self._name)
            if lease is not None and lease.holder == self._holder:
                self._leases.write(self._name, lease, None, self._clock())
        except OutOfReachError as error:
            log.warning("lease not given back", extra={"lease": self._name, "error": str(error)})

    def _attempt(self) -> None:
        asked = self._monotonic()
        lease, now = self._leases.read(self._name), self._clock()
        if not is_free(lease, self._holder, now):
            self._until = _NEVER
        elif lease is None or needs_renewal(lease, self._holder, now) or not self.leads():
            written = self._leases.write(self._name, lease, self._holder, now)
            self._until = asked + _leads_for(written)


def _leads_for(lease: Lease) -> float:
    """Return for how many seconds after its renewal one may act: no reconcile that begins then is late."""
    return lease.duration_s - MARGIN.total_seconds()
