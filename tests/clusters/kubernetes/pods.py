"""One pod's life on the stand-in: started, kept running, reported, and ended as its deletion asks."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3

from tests.clusters.kubernetes.container import Container, Simulation, container_of, timestamp
from tests.clusters.kubernetes.environment import ConfigError, environment
from tests.clusters.kubernetes.images import Image, credentials
from tests.clusters.kubernetes.rest import ApiError, Json, Rest
from tests.clusters.processes import POLL_S, stop_together

# Below this a container is not even told to stop; the kubelet grants it after a long preStop hook too.
LEAST_GRACE_S = 2.0
# What an API server answers that has too much to do, or has not all of its parts yet: it must hear of it later.
_NOT_NOW = (403, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Exit:
    """How one container of one pod ended; ``code`` is 128 + n after signal n."""

    namespace: str
    pod: str
    container: str
    code: int


@dataclass
class PodLife:
    """Runs one pod to its end on a thread of its own; ``end`` and ``vanish`` tell it what the API server said."""

    api: Rest
    pod: Json
    address: str
    host: str
    directory: Path
    ended: Callable[["PodLife", list[Exit]], None]
    images: Mapping[str, Image]

    def __post_init__(self) -> None:
        self.containers: list[Container] = []
        self._wake = threading.Event()
        self._grace_s: float | None = None
        self._vanished = False
        self._started_at = timestamp()
        self._changed_at: dict[str, tuple[bool, str]] = {}
        self._account: dict[str, str] = {}
        self.thread = threading.Thread(target=self._run, name=f"pod {self.name}", daemon=True)

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return str(self.pod["metadata"]["namespace"])

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    def end(self, grace_s: float) -> None:
        """Its deletion was asked for: stop it within ``grace_s`` and then delete it."""
        self._grace_s = grace_s
        self._wake.set()

    def vanish(self) -> None:
        """It is gone from the API server, or we are: stop it without grace and report nothing."""
        self._vanished = True
        self.end(0.0)
        for one in self.containers:  # it may be in the middle of a long grace period
            if one.process is not None and one.process.running:
                one.process.kill()

    def reconcile(self, pod: Json) -> None:
        """Say again that it is ready where the node controller says that it is not, as kubelets do.

        That controller does so of all pods of a node that it has not heard of for a while, and leaves the containers'
        readiness as it is (``MarkPodsNotReady``).
        """
        told = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
        is_ready, _ = self._changed_at.get("Ready", (False, ""))
        is_given_up = (told.get("Ready"), told.get("ContainersReady")) == ("False", "True")
        if is_ready and is_given_up and not self._wake.is_set():
            self._changed_at["Ready"] = (True, timestamp())
            self._patch_status(self._status())

    def _run(self) -> None:
        try:
            if self._create() and not self._wake.wait(Simulation.of(self.pod).start_delay_s):
                self._live()
            self._wake.wait()
            self._stop()
        finally:
            exits = [
                Exit(self.namespace, self.name, one.name, one.exit_code)
                for one in self.containers
                if one.exit_code is not None
            ]
            self.ended(self, exits)
        if not self._vanished:
            self._delete()

    def _create(self) -> bool:
        if self.pod["spec"].get("initContainers"):
            self._refuse("NotSimulated", "the stand-in runs no init containers")
            return False
        while not self._wake.is_set():
            try:
                self._account = credentials(self.api, self.pod, self.directory)
                self.containers = [self._container(spec) for spec in self.pod["spec"]["containers"]]
            except (ConfigError, ApiError) as error:
                asked = error.__cause__ if isinstance(error, ConfigError) else error
                if not (isinstance(asked, ApiError) and asked.status in _NOT_NOW):
                    self._refuse("CreateContainerConfigError", str(error))
                    return False
            except urllib3.exceptions.HTTPError:
                pass
            else:
                return True
            self._wake.wait(POLL_S)  # the API server is away, or busy
        return False

    def _container(self, spec: Json) -> Container:
        directory = self.directory / spec["name"]
        directory.mkdir(parents=True, exist_ok=True)
        namespace = f"/api/v1/namespaces/{self.namespace}"
        if (image := self.images.get(spec.get("image", ""))) is not None:
            spec = image.completed(spec)
        values = environment(spec, self.pod, self.address, self.host, lambda path: self.api.get(f"{namespace}/{path}"))
        return container_of(spec, self.pod, self.address, self._account | values, directory)

    def _live(self) -> None:
        unreported = False
        while not self._wake.is_set():
            now = time.monotonic()
            changes = [one.step(now) for one in self.containers]
            unreported = (any(changes) or unreported) and not self._report()
            # A pod without processes and delays changes no more, until it is deleted.
            self._wake.wait(POLL_S if unreported or self._may_change() else None)

    def _may_change(self) -> bool:
        return any(one.process is not None or not one.ready for one in self.containers)

    def _stop(self) -> None:
        assert self._grace_s is not None
        deadline = time.monotonic() + self._grace_s
        running = [one for one in self.containers if one.process is not None and "running" in one.state]
        if self._grace_s > 0:
            for one in running:
                one.stop_hook(max(0.0, deadline - time.monotonic()))
        left_s = 0.0 if self._grace_s == 0 else max(LEAST_GRACE_S, deadline - time.monotonic())
        stop_together([one.process for one in running if one.process], left_s)
        for one in self.containers:
            one.finish()
        if not self._vanished:
            self._report()

    def _delete(self) -> None:
        uid = self.pod["metadata"]["uid"]
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        while True:
            try:
                self.api.delete(self.path, body)
            except ApiError as error:
                if error.status not in _NOT_NOW:
                    assert error.status in (404, 409), error  # somebody else was quicker
                    return
            except urllib3.exceptions.HTTPError:
                pass
            else:
                return
            if self._vanished:
                return
            time.sleep(POLL_S)  # the API server is away, or busy: it must hear of it later

    def _report(self) -> bool:
        """Send the status; False when the API server could not be reached, or was busy, and has to hear it again."""
        return self._send(self._status())

    def _send(self, status: Json) -> bool:
        try:
            self._patch_status(status)
        except ApiError as error:
            if error.status in _NOT_NOW:
                return False
            # Gone, or gone and replaced by one of the same name: no news of this one is wanted.
            assert error.status in (404, 409), error
        except urllib3.exceptions.HTTPError:
            return False
        return True

    def _patch_status(self, status: Json) -> None:
        self.api.patch(f"{self.path}/status", {"metadata": {"uid": self.pod["metadata"]["uid"]}, "status": status})

    def _refuse(self, reason: str, message: str) -> None:
        waiting = [
            {
                "name": spec["name"],
                "image": spec.get("image", ""),
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": message}},
            }
            for spec in self.pod["spec"]["containers"]
        ]
        self._send({"phase": "Pending", "startTime": self._started_at, "containerStatuses": waiting})

    def _status(self) -> Json:
        ready = all(one.ready for one in self.containers)
        facts = {"PodReadyToStartContainers": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
        return {
            "phase": self._phase(),
            "startTime": self._started_at,
            "hostIP": self.host,
            "hostIPs": [{"ip": self.host}],
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [self._condition(kind, true) for kind, true in facts.items()],
            "containerStatuses": [one.status() for one in self.containers],
        }

    def _phase(self) -> str:
        codes = [one.exit_code for one in self.containers]
        if None in codes:
            return "Running"
        return "Failed" if any(codes) else "Succeeded"

    def _condition(self, kind: str, true: bool) -> Json:
        if kind not in self._changed_at or self._changed_at[kind][0] != true:
            self._changed_at[kind] = (true, timestamp())
        return {"type": kind, "status": str(true), "lastTransitionTime": self._changed_at[kind][1]}
