"""``ClusterEvents``: Kubernetes Events about a plan, in sentences, for ``kubectl describe`` and whoever watches.

What is done to consumers is recorded of their Deployments, too: their readers need not know that plans exist.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from planner.deployments.api import RolloutApi
from planner.documents.format import API_VERSION
from planner.documents.plan import PLAN
from planner.errors import PlannerError
from planner.execution.phases import Phase
from planner.execution.plan_targets import api_version_of, kind_of
from planner.execution.ports import StoredPlan
from planner.rollout.steps import StartConsumers, StopConsumers
from planner.text.printable import one_line, without_passwords

log = logging.getLogger(__name__)

_K = TypeVar("_K")
_V = TypeVar("_V")

SOURCE: Final = "consumer-planner"
BEGUN: Final = "StepBegun"
_LONGEST: Final = 1024
"""Characters that the server takes."""
_KEPT: Final = 256
"""Series that are remembered; one that is forgotten begins anew."""
_ALIKE: Final = 10
"""So many sentences for one reason within ``_TOGETHER`` are events of their own; later ones make one series."""
_TOGETHER: Final = timedelta(minutes=10)
_COMBINED: Final = "combined from similar events"
_WARNINGS: Final = frozenset({Phase.REFUSED, Phase.EXPIRED, Phase.ABORTING, Phase.STUCK, "AbortTooLate"})


@dataclass(frozen=True, slots=True)
class _Series:
    """One event object that stands for all its occurrences."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class _Sentences:
    """How many different sentences were recorded for one reason, since ``began_at``."""

    began_at: datetime
    count: int


class ClusterEvents:
    """Events in the plan's namespace: what occurs again is counted at the event that is there.

    As Kubernetes' own components do it, a repeated sentence raises its event's ``count``, and where an object
    gets ever new sentences for one reason, the latest of them stand in one event.
    """

    def __init__(self, api: RolloutApi, namespace: str, now: Callable[[], datetime]) -> None:
        self._api = api
        self._namespace = namespace
        self._now = now
        self._series: OrderedDict[tuple[str, str, str], _Series] = OrderedDict()
        self._sentences: OrderedDict[tuple[str, str], _Sentences] = OrderedDict()

    def record(self, stored: StoredPlan, reason: str, sentence: str) -> None:
        """Record one sentence about a plan, and once it acts of its Deployments, too.

        Never raises: a plan does not wait for what people read.
        """
        plan = {"apiVersion": API_VERSION, "kind": PLAN.kind, "name": stored.name, "uid": stored.uid}
        try:
            self._record(plan, reason, sentence)
            # The first step's begin is recorded of the plan as it stood before.
            if reason == BEGUN or stored.status.phase.is_in_progress:
                for deployment in self._deployments(stored):
                    self._record(deployment, reason, f"plan {stored.name}: {sentence}")
        except PlannerError as error:
            log.warning("event not told", extra={"plan": stored.name, "reason": reason, "error": str(error)})

    def _deployments(self, stored: StoredPlan) -> Iterator[dict[str, str]]:
        """Yield the Deployments whose replicas the plan sets, those that are there."""
        scaling = [step for step in stored.plan.steps if isinstance(step, StartConsumers | StopConsumers)]
        for name in dict.fromkeys(step.deployment or stored.plan.deployment for step in scaling):
            kind, api_version = kind_of(stored.plan, name), api_version_of(stored.plan, name)
            manifest = self._api.find_deployment(self._namespace, name, kind, api_version)
            if manifest is not None:
                yield {"apiVersion": api_version, "kind": kind, "name": name, "uid": manifest["metadata"]["uid"]}

    def _record(self, about: Mapping[str, str], reason: str, sentence: str) -> None:
        """Count an occurrence at its event, or create the event."""
        message, now = _shorten(sentence), self._now()
        combined = (about["uid"], reason, _COMBINED)
        key = (about["uid"], reason, message)
        if key not in self._series and self._are_many(about["uid"], reason, now):
            key, message = combined, _shorten(f"{_COMBINED}: {message}")
        known = self._series.pop(key, None)
        if known is not None and self._has_counted(known, message, now):
            _remember(self._series, key, replace(known, count=known.count + 1))
            return
        created = self._api.create_event(self._namespace, self._body(about, reason, message, now))
        _remember(self._series, key, _Series(created["metadata"]["name"], 1))

    def _has_counted(self, known: _Series, message: str, now: datetime) -> bool:
        """Return whether the occurrence was counted; not where the server keeps the event no longer."""
        body = {"count": known.count + 1, "lastTimestamp": _time(now), "message": message}
        return self._api.patch_event(self._namespace, known.name, body) is not None

    def _are_many(self, uid: str, reason: str, now: datetime) -> bool:
        """Note one more sentence for the reason; return whether they are more than events of their own."""
        before = self._sentences.pop((uid, reason), None)
        if before is None or now - before.began_at > _TOGETHER:
            before = _Sentences(now, 0)
        after = replace(before, count=before.count + 1)
        _remember(self._sentences, (uid, reason), after)
        return after.count > _ALIKE

    def _body(self, about: Mapping[str, str], reason: str, message: str, now: datetime) -> dict[str, object]:
        return {
            "metadata": {"generateName": f"{about['name'][:200]}."},
            "involvedObject": {**about, "namespace": self._namespace},
            "type": "Warning" if reason in _WARNINGS else "Normal",
            "reason": str(reason),
            "message": message,
            "source": {"component": SOURCE},
            "firstTimestamp": _time(now),
            "lastTimestamp": _time(now),
            "count": 1,
        }


def _shorten(sentence: str) -> str:
    line = one_line(without_passwords(sentence))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _remember(kept: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    """Add the newest, and forget the one that was not used for longest where there are too many."""
    kept[key] = value
    if len(kept) > _KEPT:
        kept.popitem(last=False)
