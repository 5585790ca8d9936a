"""``ClusterEvents``: Kubernetes Events about a plan, in sentences, for ``kubectl describe`` and whoever watches."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from planner.deployments.api import RolloutApi
from planner.documents.format import API_VERSION
from planner.documents.plan import PLAN
from planner.errors import PlannerError
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.printable import one_line, without_passwords

log = logging.getLogger(__name__)

SOURCE: Final = "consumer-planner"
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
        """Tell one sentence about a plan. Never raises: a plan does not wait for what people read."""
        try:
            self._api.create_event(self._namespace, self._body(stored, reason, sentence))
        except PlannerError as error:
            log.warning("event not told", extra={"plan": stored.name, "reason": reason, "error": str(error)})

    def _body(self, stored: StoredPlan, reason: str, sentence: str) -> dict[str, object]:
        shown = one_line(without_passwords(sentence))
        at = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "metadata": {"generateName": f"{stored.name[:200]}."},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": PLAN.kind,
                "name": stored.name,
                "namespace": self._namespace,
                "uid": stored.uid,
            },
            "type": "Warning" if reason in _WARNINGS else "Normal",
            "reason": str(reason),
            "message": shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…",
            "source": {"component": SOURCE},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
