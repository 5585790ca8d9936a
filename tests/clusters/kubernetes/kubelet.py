"""A stand-in for the kubelet: one node, and for each of its pods local processes or nothing but a status.

Real here: what the API server, the controllers and the scheduler do. Not real: images, volumes, the pod network,
init containers, startup and liveness probes. Readiness probes, ``preStop``, grace periods, restarts and back-off
are carried out on the processes.
"""

import contextlib
import threading
from datetime import UTC, datetime
from pathlib import Path

import urllib3

from tests.clusters.kubernetes.addresses import PodAddresses
from tests.clusters.kubernetes.container import timestamp
from tests.clusters.kubernetes.images import Image
from tests.clusters.kubernetes.pods import Exit, PodLife
from tests.clusters.kubernetes.rest import ApiError, Json, Rest

NODE = "node-1"
HEARTBEAT_S = 10.0
WATCH_S = 1
RETRY_S = 0.2
JOIN_S = 20.0

_GONE = 410


class Kubelet:
    """Runs what is bound to its node; pods get addresses 127.1.x.y of their own, with ``hostNetwork`` the node's.

    ``images`` are those that it knows: a container without a ``command`` then runs its image's entry point.
    """

    def __init__(self, api: Rest, directory: Path, address: str = "127.0.0.1", name: str = NODE) -> None:
        self.name = name
        self.address = address
        self.exits: list[Exit] = []
        self.images: dict[str, Image] = {}
        self._api = api
        self._directory = directory
        self._addresses = PodAddresses()
        self._lives: dict[str, PodLife] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat, name="heartbeat", daemon=True),
            threading.Thread(target=self._follow, name="pod watch", daemon=True),
        ]

    def start(self) -> None:
        """Register the node and serve it on threads of our own."""
        self._api.create("/api/v1/nodes", {"metadata": {"name": self.name, "labels": self._labels()}})
        self._api.patch(f"/api/v1/nodes/{self.name}/status", {"status": self._node_status()})
        self._api.create("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", self._lease())
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End every process at once; the API server is not told, as when a node loses power."""
        self._stopping.set()
        lives = self.lives()
        for life in lives:
            life.vanish()
        for life in lives:
            life.thread.join(JOIN_S)
        self._addresses.close()

    def join(self) -> None:
        """Wait for our own threads, after ``stop``: the watch ends at once when the API server does."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(WATCH_S + JOIN_S)

    def lives(self) -> list[PodLife]:
        """The pods that it runs now."""
        with self._lock:
            return list(self._lives.values())

    def log(self, namespace: str, pod: str, container: str) -> str:
        """Return what a container's processes have written, the pod being there or gone; empty when nothing."""
        texts = [
            path.read_text(errors="replace") for path in self._directory.glob(f"{namespace}_{pod}_*/{container}/*.log")
        ]
        return "".join(texts)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(urllib3.exceptions.HTTPError, ApiError):
                self._follow_once()
            self._stopping.wait(RETRY_S)

    def _follow_once(self) -> None:
        ours = {"fieldSelector": f"spec.nodeName={self.name}"}
        listed = self._api.get("/api/v1/pods", **ours)
        present = {pod["metadata"]["uid"] for pod in listed["items"]}
        for life in self.lives():
            if life.pod["metadata"]["uid"] not in present:
                life.vanish()
        for pod in listed["items"]:
            self._see(pod)
        version = listed["metadata"]["resourceVersion"]
        while not self._stopping.is_set():
            for event in self._api.watch("/api/v1/pods", version, WATCH_S, allowWatchBookmarks="true", **ours):
                if event["type"] == "ERROR":
                    return
                version = event["object"]["metadata"]["resourceVersion"]
                self._handle(event)
                if self._stopping.is_set():
                    return

    def _handle(self, event: Json) -> None:
        if event["type"] in ("ADDED", "MODIFIED"):
            self._see(event["object"])
        elif event["type"] == "DELETED":
            with self._lock:
                life = self._lives.get(event["object"]["metadata"]["uid"])
            if life is not None:
                life.vanish()

    def _see(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            life = self._lives.get(uid)
            if life is None and not self._stopping.is_set() and pod["status"]["phase"] == "Pending":
                life = self._lives[uid] = self._adopt(pod)
                life.thread.start()
        if life is not None and "deletionTimestamp" in pod["metadata"]:
            life.end(float(pod["metadata"].get("deletionGracePeriodSeconds", 0)))
        elif life is not None:
            life.reconcile(pod)

    def _adopt(self, pod: Json) -> PodLife:
        meta = pod["metadata"]
        address = self.address if pod["spec"].get("hostNetwork") else self._addresses.take()
        directory = self._directory / f"{meta['namespace']}_{meta['name']}_{meta['uid']}"
        return PodLife(self._api, pod, address, self.address, directory, self._buried, self.images)

    def _buried(self, life: PodLife, exits: list[Exit]) -> None:
        with self._lock:
            self._lives.pop(life.pod["metadata"]["uid"], None)
            self.exits.extend(exits)
            if life.address != self.address:
                self._addresses.give_back(life.address)

    def _beat(self) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{self.name}"
        while not self._stopping.wait(HEARTBEAT_S):
            with contextlib.suppress(urllib3.exceptions.HTTPError, ApiError):
                self._api.patch(path, {"spec": self._lease()["spec"]})
                # A node that the node controller has given up takes no pods until its kubelet says that it is ready.
                self._api.patch(f"/api/v1/nodes/{self.name}/status", {"status": self._node_status()})

    def _lease(self) -> Json:
        renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": 40, "renewTime": renewed}
        return {"metadata": {"name": self.name}, "spec": spec}

    def _labels(self) -> dict[str, str]:
        return {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}

    def _node_status(self) -> Json:
        room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "StandIn",
            "message": "pod status by a stand-in: no containers",
            "lastHeartbeatTime": timestamp(),
            "lastTransitionTime": timestamp(),
        }
        return {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": self.address}],
            "conditions": [ready],
        }
