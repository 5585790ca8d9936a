"""``Worker``: one turn of one plan, and when the next is due. The engine decides; this only has it do so."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from planner.controller import consent
from planner.controller.agenda import Key
from planner.controller.metrics import Metrics
from planner.deployments.api import RolloutApi
from planner.deployments.drive import PAUSE_S, give_back, open_ports
from planner.deployments.groups import Groups
from planner.deployments.plans import ClusterPlans
from planner.deployments.policies import cluster_policies
from planner.deployments.rights import CONTROL_PLANE, manifests_for, missing_rights, tell_rights
from planner.errors import BadInputError, OutOfReachError, PlannerError
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.reconcile import Outcome, Ports, ReconcileResult, run_reconcile
from planner.sources.kubernetes import ForbiddenError

log = logging.getLogger(__name__)

LONGEST_S: Final = 30.0
"""Between two turns of a plan that needs one: what nobody tells us of (a change window, a right) is seen by then."""
_WAITS_S: Final[Mapping[Phase, float]] = {Phase.PENDING: LONGEST_S, Phase.APPROVED: 5.0, Phase.PAUSED: 5.0}
_LEASED_S: Final = 2.0
_DOUBTED: Final = 2
"""After so many failed turns in a row rights are asked for again: one may have been taken away."""


@dataclass
class _Held:
    """A plan that we have turns of: its ports, how it stood last, and what was said of it last.

    ``driven`` is the uid of the plan that we may carry out: rights were asked for. ``failures`` counts failed turns in
    a row. ``noted`` is what we wrote into its status of a right that is missing.
    """

    ports: Ports
    plans: ClusterPlans
    stored: StoredPlan | None = None
    driven: str | None = None
    told: str = ""
    noted: str = ""
    failures: int = 0


class Worker:
    """Has turns of plans. Turns of different plans may go on at once, on several threads."""

    def __init__(
        self,
        api: RolloutApi,
        groups: Callable[[], Groups],
        executor: str,
        metrics: Metrics,
        data: Path | None = None,
        planners: Collection[str] = (),
    ) -> None:
        self._api, self._groups, self._executor, self._metrics = api, groups, executor, metrics
        self._data, self._planners = data, planners
        self._held: dict[Key, _Held] = {}

    def turn(self, key: Key) -> float | None:
        """Have one turn of a plan; return seconds until the next is due, ``None`` when none is. Never raises."""
        held = self._held.get(key) or self._open(key)
        began = time.monotonic()
        try:
            turned = self._turned(key, held)
        except PlannerError as error:
            turned = ReconcileResult(Outcome.RETRY, str(error))
        except Exception as error:
            log.exception("a turn failed, which is a fault of the controller", extra=_named(key))
            turned = ReconcileResult(Outcome.RETRY, f"a fault of the controller: {error}")
        self._metrics.turned(turned.outcome, time.monotonic() - began)
        return self._next(key, held, turned)

    def give_back(self, besides: Collection[Key]) -> None:
        """Give the leases of plans that are under way back, so that who goes on need not wait.

        ``besides`` are plans whose turn still goes on: others must be kept out until their lease has run out.
        """
        for key, held in list(self._held.items()):
            if held.stored is None or not held.driven or key in besides:
                continue
            if not give_back(held.ports, held.stored, self._executor):
                log.warning("lease not given back", extra=_named(key))

    def _open(self, key: Key) -> _Held:
        namespace, _ = key
        ports = open_ports(self._api, namespace, self._groups(), cluster_policies(self._api, namespace))
        self._held[key] = held = _Held(ports, ClusterPlans(self._api, namespace))
        return held

    def _turned(self, key: Key, held: _Held) -> ReconcileResult:
        namespace, name = key
        stored = held.stored = held.plans.read(name)
        if stored is not None:
            self._prepare(namespace, held, stored)
        turned = run_reconcile(held.ports, name, self._executor)
        if turned.outcome is Outcome.DONE and stored is not None:
            held.plans.remove_finalizer(stored)
        return turned

    def _prepare(self, namespace: str, held: _Held, stored: StoredPlan) -> None:
        """Approve what the policy lets us; before a first effect ask for our rights."""
        if consent.is_open(stored):
            self._consent(namespace, held, stored)
        phase, is_driven = stored.status.phase, held.driven == stored.uid
        if phase is Phase.PENDING or phase.is_final or (is_driven and held.failures < _DOUBTED):
            return
        if (why := self._why_forbidden(namespace, stored)) is not None:
            self._tell(held, stored, "Forbidden", why)
            self._note(held, stored, why)
            if not is_driven:
                raise ForbiddenError(why)
        else:
            self._take_up(held, stored)

    def _why_forbidden(self, namespace: str, stored: StoredPlan) -> str | None:
        if namespace in CONTROL_PLANE:
            return f"the controller carries out no plan in namespace {namespace}: run the consumers in one of their own"
        missing = missing_rights(self._api, namespace, stored.plan)
        if not missing:
            return None
        files = " and ".join(manifests_for(missing))
        return f"the controller may not {tell_rights(missing)} in namespace {namespace}: grant {files}"

    def _take_up(self, held: _Held, stored: StoredPlan) -> None:
        if held.noted:
            held.noted = held.told = ""
        held.driven = stored.uid

    def _note(self, held: _Held, stored: StoredPlan, why: str) -> None:
        """Write why nothing is done into the plan's status; once, as an executor with the right may write its own."""
        if why in (held.noted, stored.status.held):
            return
        try:
            now = held.ports.clock()
            held.plans.write_status(stored, replace(stored.status, held=why, last_look_at=now))
        except OutOfReachError as error:
            log.warning("status not written", extra={"plan": stored.name, "error": str(error)})
        else:
            held.noted = why

    def _consent(self, namespace: str, held: _Held, stored: StoredPlan) -> None:
        try:
            policy = cluster_policies(self._api, namespace)(stored.plan.policy)
        except BadInputError as error:
            self._tell(held, stored, "LeftToAPerson", f"for a person to approve: {error}")
            return
        reasons = consent.why_for_a_person(stored, policy, held.ports.clock(), self._data, self._planners)
        if reasons is None:
            return
        if reasons:
            self._tell(held, stored, "LeftToAPerson", f"for a person to approve: {'; '.join(reasons)}")
        elif not consent.may_approve(self._api, namespace):
            told = "the policy's criteria approve it, but the controller has no role to: bind consumer-planner-auto"
            self._tell(held, stored, "LeftToAPerson", told)
        else:
            held.plans.approve(stored.name, stored.digest)
            self._tell(held, stored, "ApprovedByCriteria", f"policy {stored.plan.policy} approves it by its criteria")

    def _tell(self, held: _Held, stored: StoredPlan, reason: str, sentence: str) -> None:
        """Tell a sentence once, not at every turn."""
        if sentence != held.told:
            held.told = sentence
            log.info("told", extra={"plan": stored.name, "reason": reason, "sentence": sentence})
            held.ports.events.record(stored, reason, sentence)

    def _next(self, key: Key, held: _Held, turned: ReconcileResult) -> float | None:
        if turned.outcome in (Outcome.DONE, Outcome.GONE):
            self._held.pop(key, None)
            return None
        if turned.outcome is Outcome.RETRY:
            return self._again(key, held, turned)
        held.failures = 0
        if turned.outcome is Outcome.MOVED:
            return 0.0
        phase = held.stored.status.phase if held.stored else Phase.PENDING
        return _LEASED_S if turned.outcome is Outcome.LEASED else _WAITS_S.get(phase, PAUSE_S)

    def _again(self, key: Key, held: _Held, turned: ReconcileResult) -> float:
        """Try again soon after a conflict, and ever more seldom while nothing answers."""
        held.failures += 1
        self._metrics.failed("turn")
        log.warning("turn to be tried again", extra={**_named(key), "error": turned.why, "times": held.failures})
        return min(PAUSE_S * 2.0 ** min(held.failures - 1, 10), LONGEST_S)


def _named(key: Key) -> dict[str, str]:
    namespace, name = key
    return {"namespace": namespace, "plan": name}
