"""``PlanCache``: the newest known state of each plan. It triggers plans that need a reconcile, and reports changes."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from planner.controller.agenda import Agenda, Key
from planner.deployments.plans import FINALIZER, stored_plan
from planner.documents.status import parse_status
from planner.errors import BadInputError
from planner.execution.ports import StoredPlan
from planner.execution.progress import RolloutStatus

log = logging.getLogger(__name__)

Json = Mapping[str, Any]
Changed = Callable[[StoredPlan, RolloutStatus], None]
"""Called with a plan whose status has changed, and with the status before."""

UNREADABLE: Final = "Unreadable"
"""Instead of the phase of a plan that is none of ours to read: made by a newer planner, or damaged."""


@dataclass(frozen=True, slots=True)
class _KnownPlan:
    uid: str
    version: int
    status: RolloutStatus | None


class PlanCache:
    """Plans in their newest known state. Safe to share between threads."""

    def __init__(self, agenda: Agenda, changed: Changed) -> None:
        self._agenda, self._changed = agenda, changed
        self._known: dict[Key, _KnownPlan] = {}
        self._lock = threading.Lock()

    def note(self, manifest: Json) -> None:
        """Note a plan object. One that is older than the known one is left out."""
        key, known = key_of(manifest), _known_plan(manifest)
        with self._lock:
            before = self._known.get(key)
            if before is not None and before.uid == known.uid and before.version >= known.version:
                return
            self._known[key] = known
        if _needs_reconcile(manifest, known.status):
            self._agenda.trigger(key)
        if before is not None and before.uid == known.uid and before.status and known.status != before.status:
            self._report_change(manifest, before.status)

    def note_all(self, manifests: Iterable[Json]) -> None:
        """Note all plan objects that exist; the others are gone."""
        present = {key_of(manifest): manifest for manifest in manifests}
        for manifest in present.values():
            self.note(manifest)
        with self._lock:
            gone = self._known.keys() - present.keys()
        for key in gone:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Note that a plan is gone; a reconcile of it will find that out, too."""
        with self._lock:
            self._known.pop(key, None)
        self._agenda.trigger(key)

    def counts(self) -> Mapping[tuple[str, str], int]:
        """Return (namespace, phase) -> the number of plans."""
        with self._lock:
            known = list(self._known.items())
        return Counter((namespace, plan.status.phase if plan.status else UNREADABLE) for (namespace, _), plan in known)

    def _report_change(self, manifest: Json, before: RolloutStatus) -> None:
        try:
            self._changed(stored_plan(manifest), before)
        except BadInputError as error:
            log.warning("plan cannot be read", extra={"plan": key_of(manifest), "error": str(error)})


def key_of(manifest: Json) -> Key:
    """Return namespace and name of an object."""
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def _known_plan(manifest: Json) -> _KnownPlan:
    meta = manifest["metadata"]
    try:
        status = parse_status(manifest.get("status"), f"plan {meta['namespace']}/{meta['name']}")
    except BadInputError as error:
        log.warning("plan cannot be read", extra={"plan": key_of(manifest), "error": str(error)})
        status = None
    # Versions of one kind can be compared as numbers: documented from Kubernetes 1.35 on, and true of etcd always.
    return _KnownPlan(meta["uid"], int(meta["resourceVersion"]), status)


def _needs_reconcile(manifest: Json, status: RolloutStatus | None) -> bool:
    """True unless the plan is at its end and nothing of ours holds it."""
    return status is None or not status.phase.is_final or FINALIZER in (manifest["metadata"].get("finalizers") or [])
