"""Following a plan that others carry out: what goes on, how it ended, and whether anybody is at work at all."""

import time
from collections.abc import Callable
from typing import Any, Final, TypedDict

from planner.deployments.leases import ClusterLeases
from planner.deployments.plans import ClusterPlans
from planner.errors import OutOfReachError
from planner.execution.lease import lease_name
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan

SILENCE_S: Final = 300.0
"""After so long without a sign of an executor a follower says so: a controller that restarts is back sooner."""


class End(TypedDict):
    """How following ended, as plain values; ``phase`` is ``None`` where the plan could not be read any more.

    ``is_good``: the plan is carried out. ``ended`` is ``status.ended``. ``verdict`` has a sentence for each figure.
    """

    plan: str
    namespace: str
    phase: str | None
    is_good: bool
    sentence: str
    ended: str | None
    fit: str | None
    verdict: list[str]


class Follower:
    """Reads one plan repeatedly; it changes nothing.

    A sign of an executor is a change of the plan, or of its group's lease, which every executor renews at work.
    """

    def __init__(
        self,
        plans: ClusterPlans,
        leases: ClusterLeases,
        name: str,
        silence_s: float = SILENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plans, self._leases, self._name = plans, leases, name
        self._silence_s, self._clock = silence_s, clock
        self._sign: tuple[Any, ...] | None = None
        self._sign_at = clock()
        self.progress = "not looked at yet"

    def check(self) -> End | None:
        """Return the end, ``None`` while the plan goes on; ``progress`` is then what goes on, in a sentence.

        Raises ``OutOfReachError`` for a right that is missing; a server that is away counts as silence.
        """
        try:
            stored = self._plans.read(self._name)
            if stored is None:
                return self._end(None, f"{self._plan_name} is gone: it was deleted")
            if stored.status.phase.is_final:
                return self._end(stored, _last_words(stored))
            self._listen(stored)
        except OutOfReachError as error:
            if not error.can_retry:
                raise
            stored, self.progress = None, str(error)
        if self._clock() - self._sign_at < self._silence_s:
            return None
        return self._end(stored, self._silent(stored))

    def _listen(self, stored: StoredPlan) -> None:
        lease = self._leases.read(lease_name(stored.plan.group))
        sign = (stored.resource_version, lease.renewed_at if lease else None)
        if sign != self._sign:
            self._sign, self._sign_at = sign, self._clock()
        status = stored.status
        self.progress = f"{status.phase}: {status.held or status.message}"

    def _silent(self, stored: StoredPlan | None) -> str:
        waited = f"for {self._silence_s:.0f} s"
        if stored is None:
            return f"{self._plan_name} could not be read {waited}: {self.progress}"
        if stored.status.approval is None and stored.requests.approval is None:
            return (
                f"nobody has approved {self._plan_name} {waited}: kubectl describe crp {self._name} -n "
                f"{self._plans.namespace} shows why the policy's criteria did not; planner approve {self._name} -n "
                f"{self._plans.namespace} does, and this task follows again once it is cleared"
            )
        return (
            f"nobody has worked on {self._plan_name} {waited} ({self.progress}): is planner-controller running for "
            "this namespace? It, or planner apply, goes on with the plan, and this task follows again once it is "
            "cleared"
        )

    @property
    def _plan_name(self) -> str:
        return f"plan {self._plans.namespace}/{self._name}"

    def _end(self, stored: StoredPlan | None, sentence: str) -> End:
        status = stored.status if stored else None
        verdict = status.verdict if status else None
        return End(
            plan=self._name,
            namespace=self._plans.namespace,
            phase=str(status.phase) if status else None,
            is_good=bool(status and status.phase is Phase.SUCCEEDED),
            sentence=sentence,
            ended=status.ended if status else None,
            fit=str(verdict.fit) if verdict else None,
            verdict=list(verdict.sentences) if verdict else [],
        )


def _last_words(stored: StoredPlan) -> str:
    status = stored.status
    refused = "; ".join(f"{refusal.code}: {refusal.sentence}" for refusal in status.refusals)
    return f"plan {stored.name} is {status.phase}: {status.message}{f' ({refused})' if refused else ''}"
