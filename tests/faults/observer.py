"""``Observer``: all pods and Deployments of a cluster by two watches of its own, whoever carries plans out."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import urllib3

from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import ApiError, Json, Rest
from tests.faults.group import is_ready
from tests.faults.place import CLAIM, DELETION_COST

_WATCH_S: Final = 5
_RETRY_S: Final = 0.1
_GONE: Final = 410
_PODS, _DEPLOYMENTS = "/api/v1/pods", "/apis/apps/v1/deployments"


@dataclass
class Record:
    """What was seen of one namespace since it is followed.

    ``lowest`` is the fewest pods that were ready at any event. ``done`` has every change of replicas, template, update
    strategy and deletion cost, every creation and deletion, with the claim that was written in the same request;
    ``unclaimed`` those changes that came without one. ``claims`` has each Deployment's claims in their order. ``gaps``
    counts the times that the server could not tell what had happened meanwhile.
    """

    lowest: int
    done: list[str] = field(default_factory=list)
    unclaimed: list[str] = field(default_factory=list)
    claims: dict[str, list[str]] = field(default_factory=dict)
    gaps: int = 0

    @property
    def twice(self) -> list[str]:
        """What happened more than once; a claim that was written again after another one was done twice, too."""
        claims = [f"{name} claimed by {claim}" for name, told in self.claims.items() for claim in told]
        every = [*self.done, *claims]
        return sorted({what for what in every if every.count(what) > 1})


class Observer:
    """Watches until it is closed. A context manager."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._rest: Rest = cluster.rest
        self._lock = threading.Condition()
        self._stopping = threading.Event()
        self._objects: dict[str, dict[str, Json]] = {_PODS: {}, _DEPLOYMENTS: {}}
        self._records: dict[str, Record] = {}
        ways: tuple[tuple[str, Callable[[Json | None, Json | None], None]], ...] = (
            (_PODS, self._see_pod),
            (_DEPLOYMENTS, self._see_deployment),
        )
        self._threads = [threading.Thread(target=self._follow, args=way, daemon=True) for way in ways]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def follow(self, namespace: str, ready: int, timeout_s: float = 300.0) -> Record:
        """Return the record of a namespace from the moment at which so many of its pods are seen ready."""
        with self._lock:
            seen = self._lock.wait_for(lambda: self._ready(namespace) == ready, timeout_s)
            assert seen, f"{self._ready(namespace)} of {ready} pods of {namespace} were seen ready"
            record = self._records[namespace] = Record(ready)
            return record

    def leave(self, namespace: str) -> None:
        """Follow a namespace no longer; its record stays as it is."""
        with self._lock:
            self._records.pop(namespace, None)

    def _ready(self, namespace: str) -> int:
        pods = self._objects[_PODS].values()
        return sum(one["metadata"]["namespace"] == namespace and is_ready(one) for one in pods)

    def _follow(self, path: str, see: Callable[[Json | None, Json | None], None]) -> None:
        since: str | None = None
        while not self._stopping.is_set():
            with contextlib.suppress(urllib3.exceptions.HTTPError, OSError):
                try:
                    since = self._listed(path, see) if since is None else self._watched(path, since, see)
                    continue
                except ApiError as error:
                    if error.status != _GONE:  # a server that has just come up says much
                        self._stopping.wait(_RETRY_S)
                        continue
                    since = None
                    self._note_gap()
            self._stopping.wait(_RETRY_S)

    def _note_gap(self) -> None:
        with self._lock:
            for record in self._records.values():
                record.gaps += 1

    def _listed(self, path: str, see: Callable[[Json | None, Json | None], None]) -> str:
        found = self._rest.get(path)
        now = {one["metadata"]["uid"]: one for one in found["items"]}
        with self._lock:
            for uid in {*now, *self._objects[path]}:
                self._replace(path, uid, now.get(uid), see)
        return str(found["metadata"]["resourceVersion"])

    def _watched(self, path: str, since: str, see: Callable[[Json | None, Json | None], None]) -> str:
        for event in self._rest.watch(path, since, _WATCH_S):
            found = event["object"]
            if event["type"] == "ERROR":
                raise ApiError(f"WATCH {path}", int(found.get("code", 0)), str(found))
            since = str(found["metadata"]["resourceVersion"])
            with self._lock:
                self._replace(path, found["metadata"]["uid"], None if event["type"] == "DELETED" else found, see)
        return since

    def _replace(self, path: str, uid: str, now: Json | None, see: Callable[[Json | None, Json | None], None]) -> None:
        before = self._objects[path].pop(uid, None)
        if now is not None:
            self._objects[path][uid] = now
        see(before, now)
        self._lock.notify_all()

    def _record_of(self, before: Json | None, now: Json | None) -> Record | None:
        found = now or before
        return None if found is None else self._records.get(found["metadata"]["namespace"])

    def _see_pod(self, before: Json | None, now: Json | None) -> None:
        record = self._record_of(before, now)
        if record is None:
            return
        namespace = (now or before or {})["metadata"]["namespace"]
        record.lowest = min(record.lowest, self._ready(namespace))
        if now is not None and _cost(before) != _cost(now) and "deletionTimestamp" not in now["metadata"]:
            record.done.append(f"pod {now['metadata']['name']}: deletion cost {_cost(now)}")

    def _see_deployment(self, before: Json | None, now: Json | None) -> None:
        record = self._record_of(before, now)
        if record is None or before == now:
            return
        name = (now or before or {})["metadata"]["name"]
        if before is None or now is None:
            record.done.append(f"{name} {'deleted' if now is None else 'created'}")
        claim = _claim(now)
        if claim is not None and claim != _claim(before):
            record.claims.setdefault(name, []).append(claim)
        if before is not None and now is not None and _wanted(before) != _wanted(now):
            changed = ", ".join(key for key in _wanted(now) if _wanted(before)[key] != _wanted(now)[key])
            if claim == _claim(before):
                record.unclaimed.append(f"{name}: {changed} changed")
            else:
                record.done.append(f"{name}: {changed} changed with claim {claim}")


def _cost(pod: Json | None) -> str | None:
    return ((pod or {}).get("metadata", {}).get("annotations") or {}).get(DELETION_COST)


def _claim(deployment: Json | None) -> str | None:
    return ((deployment or {}).get("metadata", {}).get("annotations") or {}).get(CLAIM)


def _wanted(deployment: Json) -> Json:
    return {key: deployment["spec"][key] for key in ("replicas", "template", "strategy")}
