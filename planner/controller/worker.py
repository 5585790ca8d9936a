"""``Worker``: one reconcile of one plan, and when the next is due. The engine decides; this only has it do so."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from planner.controller import auto_approval
from planner.controller.agenda import Key
from planner.controller.metrics import Metrics
from planner.deployments.api import RolloutApi
from planner.deployments.drive import PAUSE_S, give_back, open_ports
from planner.deployments.groups import Groups
from planner.deployments.plans import ClusterPlans
from planner.deployments.policies import cluster_policies
from planner.deployments.rights import CONTROL_PLANE, describe_rights, manifests_for, missing_rights
from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.reconcile import Outcome, Ports, ReconcileResult, run_reconcile
from planner.sources.kubernetes import ForbiddenError

log = logging.getLogger(__name__)

LONGEST_S: Final = 30.0
"""Between two reconciles of a plan that needs one: what sends no event (a change window, a right) is noticed then."""
_WAITS_S: Final[Mapping[Phase, float]] = {Phase.PENDING: LONGEST_S, Phase.APPROVED: 5.0, Phase.PAUSED: 5.0}
_LEASED_S: Final = 2.0
_DOUBTED: Final = 2
"""After so many failed reconciles in a row rights are asked for again: one may have been taken away."""


@dataclass
class _PlanState:
    """A plan that we reconcile: its ports, its last state, and the last sentence about it.

    ``driven`` is the uid of the plan that we may carry out: rights were asked for. ``failures`` counts failed
    reconciles in a row. ``noted`` is what we wrote into its status of a right that is missing.
    """

    ports: Ports
    plans: ClusterPlans
    stored: StoredPlan | None = None
    driven: str | None = None
    last_sentence: str = ""
    noted: str = ""
    failures: int = 0


class Worker:
    """Reconciles plans. Reconciles of different plans may go on at once, on several threads."""

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
        self._states: dict[Key, _PlanState] = {}

    def reconcile(self, key: Key) -> float | None:
        """Reconcile a plan; return seconds until the next is due, ``None`` when none is. Never raises."""
        state = self._states.get(key) or self._open(key)
        began = time.monotonic()
        try:
            turned = self._reconcile_once(key, state)
        except PlannerError as error:
            turned = ReconcileResult(Outcome.RETRY, str(error))
        except Exception as error:
            log.exception("a turn failed, which is a fault of the controller", extra=_log_fields(key))
            turned = ReconcileResult(Outcome.RETRY, f"a fault of the controller: {error}")
        self._metrics.count_reconcile(turned.outcome, time.monotonic() - began)
        return self._next(key, state, turned)

    def give_back(self, besides: Collection[Key]) -> None:
        """Give the leases of plans in progress back, so that the next executor need not wait.

        ``besides`` are plans whose reconcile still goes on: others must be kept out until their lease has run out.
        """
        for key, state in list(self._states.items()):
            if state.stored is None or not state.driven or key in besides:
                continue
            if not give_back(state.ports, state.stored, self._executor):
                log.warning("lease not given back", extra=_log_fields(key))

    def _open(self, key: Key) -> _PlanState:
        namespace, _ = key
        ports = open_ports(self._api, namespace, self._groups(), cluster_policies(self._api, namespace))
        self._states[key] = state = _PlanState(ports, ClusterPlans(self._api, namespace))
        return state

    def _reconcile_once(self, key: Key, state: _PlanState) -> ReconcileResult:
        namespace, name = key
        stored = state.stored = state.plans.read(name)
        if stored is not None:
            self._prepare(namespace, state, stored)
        turned = run_reconcile(state.ports, name, self._executor)
        if turned.outcome is Outcome.DONE and stored is not None:
            state.plans.remove_finalizer(stored)
        return turned

    def _prepare(self, namespace: str, state: _PlanState, stored: StoredPlan) -> None:
        """Approve what the policy lets us; before a first effect ask for our rights."""
        if auto_approval.is_open(stored):
            self._approve_by_rule(namespace, state, stored)
        phase, is_driven = stored.status.phase, state.driven == stored.uid
        if phase is Phase.PENDING or phase.is_final or (is_driven and state.failures < _DOUBTED):
            return
        if (why := self._why_forbidden(namespace, stored)) is not None:
            self._report(state, stored, "Forbidden", why)
            self._note(state, stored, why)
            if not is_driven:
                raise ForbiddenError(why)
        else:
            self._take_up(state, stored)

    def _why_forbidden(self, namespace: str, stored: StoredPlan) -> str | None:
        if namespace in CONTROL_PLANE:
            return f"the controller carries out no plan in namespace {namespace}: run the consumers in one of their own"
        try:
            missing = missing_rights(self._api, namespace, stored.plan)
        except UnknownNameError as error:  # the server does not serve the target's kind
            return str(error)
        if not missing:
            return None
        files = " and ".join(manifests_for(missing))
        return f"the controller may not {describe_rights(missing)} in namespace {namespace}: grant {files}"

    def _take_up(self, state: _PlanState, stored: StoredPlan) -> None:
        if state.noted:
            state.noted = state.last_sentence = ""
        state.driven = stored.uid

    def _note(self, state: _PlanState, stored: StoredPlan, why: str) -> None:
        """Write why nothing is done into the plan's status; once, as an executor with the right may write its own."""
        if why in (state.noted, stored.status.held):
            return
        try:
            now = state.ports.clock()
            state.plans.write_status(stored, replace(stored.status, held=why, last_look_at=now))
        except OutOfReachError as error:
            log.warning("status not written", extra={"plan": stored.name, "error": str(error)})
        else:
            state.noted = why

    def _approve_by_rule(self, namespace: str, state: _PlanState, stored: StoredPlan) -> None:
        try:
            policy = cluster_policies(self._api, namespace)(stored.plan.policy)
        except BadInputError as error:
            self._report(state, stored, "LeftToAPerson", f"for a person to approve: {error}")
            return
        reasons = auto_approval.why_for_a_person(stored, policy, state.ports.clock(), self._data, self._planners)
        if reasons is None:
            return
        if reasons:
            self._report(state, stored, "LeftToAPerson", f"for a person to approve: {'; '.join(reasons)}")
        elif not auto_approval.may_approve(self._api, namespace):
            sentence = "the policy's criteria approve it, but the controller has no role to: bind consumer-planner-auto"
            self._report(state, stored, "LeftToAPerson", sentence)
        else:
            state.plans.approve(stored.name, stored.digest)
            self._report(
                state, stored, "ApprovedByCriteria", f"policy {stored.plan.policy} approves it by its criteria"
            )

    def _report(self, state: _PlanState, stored: StoredPlan, reason: str, sentence: str) -> None:
        """Report a sentence once, not at every reconcile."""
        if sentence != state.last_sentence:
            state.last_sentence = sentence
            log.info("told", extra={"plan": stored.name, "reason": reason, "sentence": sentence})
            state.ports.events.record(stored, reason, sentence)

    def _next(self, key: Key, state: _PlanState, turned: ReconcileResult) -> float | None:
        if turned.outcome in (Outcome.DONE, Outcome.GONE):
            self._states.pop(key, None)
            return None
        if turned.outcome is Outcome.RETRY:
            return self._retry_later(key, state, turned)
        state.failures = 0
        if turned.outcome is Outcome.MOVED:
            return 0.0
        phase = state.stored.status.phase if state.stored else Phase.PENDING
        return _LEASED_S if turned.outcome is Outcome.LEASED else _WAITS_S.get(phase, PAUSE_S)

    def _retry_later(self, key: Key, state: _PlanState, turned: ReconcileResult) -> float:
        """Retry soon after a conflict, and ever more seldom while nothing answers."""
        state.failures += 1
        self._metrics.count_failure("turn")
        log.warning("turn to be tried again", extra={**_log_fields(key), "error": turned.why, "times": state.failures})
        return min(PAUSE_S * 2.0 ** min(state.failures - 1, 10), LONGEST_S)


def _log_fields(key: Key) -> dict[str, str]:
    namespace, name = key
    return {"namespace": namespace, "plan": name}
