"""``ClusterEvents``: Kubernetes Events about a plan, in sentences, for ``kubectl describe`` and whoever watches.

What is done to consumers is told of their Deployments, too: whoever looks at one need not know that there are plans.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from planner.deployments.api import RolloutApi
from planner.documents.format import API_VERSION
from planner.documents.plan import PLAN
from planner.errors import PlannerError
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.printable import one_line, without_passwords
from planner.rollout.steps import StartConsumers, StopConsumers

log = logging.getLogger(__name__)

SOURCE: Final = "consumer-planner"
BEGUN: Final = "StepBegun"
_LONGEST: Final = 1024
"""Characters that the server takes."""
_WARNINGS: Final = frozenset({Phase.REFUSED, Phase.EXPIRED, Phase.ABORTING, Phase.STUCK, "AbortTooLate"})


class ClusterEvents:
    """Events in the plan's namespace."""

    def __init__(self, api: RolloutApi, namespace: str, now: Callable[[], datetime]) -> None:
        self._api = api
        self._namespace = namespace
        self._now = now

    def tell(self, stored: StoredPlan, reason: str, sentence: str) -> None:
        """Tell one sentence about a plan, and once it acts of its Deployments, too.

        Never raises: a plan does not wait for what people read.
        """
        plan = {"apiVersion": API_VERSION, "kind": PLAN.kind, "name": stored.name, "uid": stored.uid}
        try:
            self._create(plan, reason, sentence)
            # The first step's begin is told of the plan as it stood before.
            if reason == BEGUN or stored.status.phase.is_under_way:
                for deployment in self._deployments(stored):
                    self._create(deployment, reason, f"plan {stored.name}: {sentence}")
        except PlannerError as error:
            log.warning("event not told", extra={"plan": stored.name, "reason": reason, "error": str(error)})

    def _deployments(self, stored: StoredPlan) -> Iterator[dict[str, str]]:
        """Yield the Deployments whose replicas the plan sets, those that are there."""
        scaling = [step for step in stored.plan.steps if isinstance(step, StartConsumers | StopConsumers)]
        for name in dict.fromkeys(step.deployment or stored.plan.deployment for step in scaling):
            found = self._api.find_deployment(self._namespace, name)
            if found is not None:
                yield {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": found["metadata"]["uid"]}

    def _create(self, about: dict[str, str], reason: str, sentence: str) -> None:
        self._api.create_event(self._namespace, self._body(about, reason, sentence))

    def _body(self, about: dict[str, str], reason: str, sentence: str) -> dict[str, object]:
        shown = one_line(without_passwords(sentence))
        at = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "metadata": {"generateName": f"{about['name'][:200]}."},
            "involvedObject": {**about, "namespace": self._namespace},
            "type": "Warning" if reason in _WARNINGS else "Normal",
            "reason": str(reason),
            "message": shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…",
            "source": {"component": SOURCE},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
