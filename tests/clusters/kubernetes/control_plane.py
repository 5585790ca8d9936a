"""A real Kubernetes control plane on loopback: etcd, API server, controllers, scheduler, and a kubelet stand-in."""

import contextlib
import secrets
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import urllib3
import yaml

from tests.clusters.artifacts import find_program
from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes.build import control_plane_binary, etcd_version, kubernetes_version
from tests.clusters.kubernetes.kubelet import Kubelet
from tests.clusters.kubernetes.rest import ApiError, Json, Rest
from tests.clusters.launcher import Launcher
from tests.clusters.ports import lease_block
from tests.clusters.processes import Answer, ManagedProcess, stop_together
from tests.clusters.workspace import workspace

# Only against hanging: a busy machine takes its time.
READY_S = 600.0
KUBECTL_S = 300.0
STOP_S = 10.0
LABEL = "consumerplanner.dev/made-by"

_CANARY = "canary"


class ControlPlane(Launcher):
    """A running control plane. A context manager: leaving it stops everything and deletes all files.

    ``kubeconfig`` is a file with all rights, ``server`` the API server's URL, ``ca_file`` what it is verified by.
    Everything that the suite makes it makes in a ``namespace()`` of its own; those vanish with the cluster.
    """

    def __init__(self, autoscaler_sync_s: int = 2) -> None:
        self._binary = control_plane_binary()
        self._openssl = find_program("openssl")
        self._undo = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            self.directory = undo.enter_context(workspace("kubernetes"))
            lease = lease_block()
            undo.callback(lease.release)
            self.server = f"https://127.0.0.1:{lease.first}"
            self.ca_file = self.directory / "pki" / "apiserver.crt"
            self._token = secrets.token_urlsafe(24)
            self.rest = Rest(self.server, self.ca_file, self._token)
            self.kubelet = Kubelet(self.rest, self.directory / "pods")
            self.etcd = self._process("etcd", *self._etcd_flags())
            self.api_server = self._process("kube-apiserver", *self._api_server_flags(lease.first))
            self.controllers = self._process("kube-controller-manager", *self._controller_flags(autoscaler_sync_s))
            self.scheduler = self._process("kube-scheduler", *self._component_flags())
            undo.callback(self._stop_all)
            self._undo = undo.pop_all()

    @classmethod
    def start(cls, autoscaler_sync_s: int = 2) -> Self:
        """Return a cluster that has just made a Deployment available; raise StartFailedError with log tails.

        HPAs are looked at every ``autoscaler_sync_s`` seconds, 15 where nobody says otherwise: tests wait less.
        """
        return cls(autoscaler_sync_s)._started()

    @property
    def header(self) -> str:
        """What ran, in one line."""
        return (
            f"Kubernetes {kubernetes_version()} (built from Go modules; no containers, pod status by stand-in), "
            f"etcd {etcd_version().removeprefix('v')}"
        )

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of the administrator."""
        return self.directory / "kubeconfig"

    @property
    def processes(self) -> tuple[ManagedProcess, ...]:
        """The control plane's own processes; those behind pods are in ``kubelet.lives()``."""
        return (self.etcd, self.api_server, self.controllers, self.scheduler)

    def client(self, kubeconfig: Path | None = None) -> Any:
        """Return an ``ApiClient`` of the official client, as the administrator or as ``kubeconfig`` says."""
        from kubernetes.config import new_client_from_config

        return new_client_from_config(str(kubeconfig or self.kubeconfig))

    def namespace(self, prefix: str = "test") -> str:
        """Return a new namespace with a name of its own, in which pods can be made at once."""
        body = {"metadata": {"generateName": f"{prefix}-", "labels": {LABEL: "tests"}}}
        name = str(self.rest.create("/api/v1/namespaces", body)["metadata"]["name"])
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        self.wait_until(f"default service account in {name}", lambda: self._found(account))
        return name

    def service_account(self, namespace: str, name: str) -> Path:
        """Return a kubeconfig of the service account ``name``, which is made and has no rights yet."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.rest.create(accounts, {"metadata": {"name": name}})
        return self.kubeconfig_for(self.token(namespace, name), f"{namespace}-{name}")

    def token(self, namespace: str, name: str, seconds: int = 3600) -> str:
        """Return a fresh token of a service account, by TokenRequest (600 s are the least that a server grants)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.rest.create(path, {"spec": {"expirationSeconds": seconds}})["status"]["token"])

    def kubeconfig_for(self, token: str, name: str, server: str | None = None) -> Path:
        """Write and return a kubeconfig ``name`` whose user bears ``token``; another ``server`` is for faults."""
        path = self.directory / f"{name}.kubeconfig"
        cluster = {"server": server or self.server, "certificate-authority": str(self.ca_file)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Return what ``kubectl`` prints; raise StartFailedError with its error. ``text`` is its standard input."""
        command = [str(self._binary), "kubectl", "--kubeconfig", str(self.kubeconfig), *arguments]
        run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=KUBECTL_S, check=False)
        if run.returncode != 0:
            raise StartFailedError(f"kubectl {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout

    def apply(self, *documents: Json, namespace: str) -> None:
        """Apply documents as ``kubectl apply`` does."""
        text = yaml.safe_dump_all(documents)
        self.kubectl("apply", "--namespace", namespace, "-f", "-", text=text)

    def define(self, *definitions: Json) -> list[str]:
        """Install CustomResourceDefinitions; return their names for ``kubectl`` once their objects can be made."""
        self.apply(*definitions, namespace="default")
        return self.await_definitions(definitions)

    def await_definitions(self, definitions: Sequence[Json]) -> list[str]:
        """Return the names of installed CustomResourceDefinitions for ``kubectl`` once their objects can be made."""
        names = [f"crd/{one['metadata']['name']}" for one in definitions]
        for one in definitions:
            name, spec = one["metadata"]["name"], one["spec"]
            self.wait_until(f"the kind {name}", lambda name=name: self._is_established(name))
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            self.wait_until(f"storage of {spec['names']['plural']}", lambda path=path: self._is_stored(path))
        return names

    def admit(self, policies: Sequence[Json], definitions: Sequence[Json]) -> None:
        """Install admission policies; return once objects of the definitions come as far as their own checks.

        A ``MutatingAdmissionPolicy`` needs the kind's schema, which the server fetches once a minute: until then it
        answers 503 to everybody who writes an object of a kind that was just made anew (seen on 1.36.4).
        """
        self.apply(*policies, namespace="default")
        for one in definitions:
            spec = one["spec"]
            version, names = f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]
            path = f"/apis/{version}/namespaces/default/{names['plural']}"
            body = {"apiVersion": version, "kind": names["kind"], "metadata": {"generateName": "canary-"}, "spec": {}}
            self.wait_until(f"admission of {names['plural']}", lambda path=path, body=body: self._is_judged(path, body))

    def await_available(self, namespace: str, deployment: str, timeout_s: float = READY_S) -> Json:
        """Return the Deployment once all its replicas are updated and available."""
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}"
        return self.wait_until(f"availability of {deployment}", lambda: _available(self.rest.get(path)), timeout_s)

    def wait_until(self, what: str, probe: Callable[[], Answer | None], timeout_s: float = READY_S) -> Answer:
        """Return the first true answer of ``probe``; raise StartFailedError, with log tails, after ``timeout_s``."""
        return self.api_server.wait_until(what, probe, timeout_s)

    def start_api_server(self) -> None:
        """Start the API server, also again after ``api_server.kill()``; return once it is ready."""
        self.api_server.start()
        self.api_server.wait_until("its certificate", self.ca_file.exists, READY_S)
        self.api_server.wait_until("readiness", self.is_ready, READY_S)

    def back_up_etcd(self, folder: Path) -> None:
        """Copy etcd's files into a new folder, as a snapshot of its disk has them: etcd stands still meanwhile."""
        self.etcd.freeze()
        try:
            shutil.copytree(self.directory / "etcd", folder)
        finally:
            self.etcd.resume()

    def restore_etcd(self, folder: Path) -> None:
        """Go back to a backup, as an administrator does: every process of the control plane is started anew on it.

        Pods and their processes are left alone, and so is whoever else talks to the API server.
        """
        stop_together((self.scheduler, self.controllers), STOP_S)
        self.api_server.kill()
        self.etcd.kill()
        shutil.rmtree(self.directory / "etcd")
        shutil.copytree(folder, self.directory / "etcd")
        self._start_etcd()
        self.start_api_server()
        self.controllers.start()
        self.scheduler.start()

    def is_ready(self) -> bool:
        """True when the API server says so; False also while it does not answer, or breaks a connection off."""
        try:
            return self.rest.text("/readyz") == "ok"
        except (urllib3.exceptions.HTTPError, OSError):
            return False

    def stop(self) -> None:
        """Stop pods, scheduler and controllers, API server, etcd; delete all files. Stopping twice does nothing."""
        self._undo.close()

    def _start_all(self) -> None:
        self._write_secrets()
        self._start_etcd()
        self.start_api_server()
        self.controllers.start()
        self.scheduler.start()
        self.wait_until(
            "default service account", lambda: self._found("/api/v1/namespaces/default/serviceaccounts/default")
        )
        self.kubelet.start()
        self._make_canary()

    def _start_etcd(self) -> None:
        self.etcd.start()
        self.etcd.wait_for_line("etcd is ready", READY_S)

    def _stop_all(self) -> None:
        self.kubelet.stop()
        stop_together((self.scheduler, self.controllers), STOP_S)
        self.api_server.stop(STOP_S)
        self.kubelet.join()
        self.etcd.stop(STOP_S)  # last: an API server without etcd does not end

    def _write_secrets(self) -> None:
        tokens = self.directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self._token},admin,admin,system:masters\n")
        key = [self._openssl, "genrsa", "-out", str(self.directory / "sa.key"), "2048"]
        run = subprocess.run(key, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise StartFailedError(f"openssl genrsa: {run.stderr.strip()}")
        self.kubeconfig_for(self._token, "admin").rename(self.kubeconfig)

    def _is_judged(self, path: str, body: Json) -> bool:
        """True once an object is taken, or refused for what it is; nothing is kept."""
        try:
            self.rest.call("POST", path, body, query={"dryRun": "All"})
        except ApiError as error:
            return error.status != 503
        return True

    def _is_established(self, name: str) -> bool:
        """True once the server serves a kind; ``kubectl wait`` fails where a new one has no conditions yet."""
        found = self.rest.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    def _is_stored(self, path: str) -> bool:
        """True once a list is given: for a moment after a kind is established its storage is not there yet (429)."""
        try:
            self.rest.get(path)
        except ApiError as error:
            if error.status not in (404, 429):
                raise
            return False
        return True

    def _make_canary(self) -> None:
        namespace = self.namespace(_CANARY)
        self.rest.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment(_CANARY))
        self.await_available(namespace, _CANARY)
        self.rest.delete(f"/api/v1/namespaces/{namespace}")

    def _found(self, path: str) -> Json | None:
        try:
            return self.rest.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def _process(self, component: str, *flags: str) -> ManagedProcess:
        return ManagedProcess(component, [str(self._binary), component, *flags], self.directory)

    def _etcd_flags(self) -> list[str]:
        # Socket files in the working directory: no port, and nobody else finds them.
        return ["--data-dir=etcd", "--client-url=unix://localhost:1", "--peer-url=unix://localhost:2"]

    def _api_server_flags(self, port: int) -> list[str]:
        return [
            "--etcd-servers=unix://localhost:1",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.directory / 'pki'}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.directory / 'sa.key'}",
            f"--service-account-signing-key-file={self.directory / 'sa.key'}",
            "--endpoint-reconciler-type=none",  # loopback is no legal endpoint
            "--disable-admission-plugins=TaintNodesByCondition",  # would keep the node empty for its first 5 s
        ]

    def _controller_flags(self, autoscaler_sync_s: int) -> list[str]:
        return [
            *self._component_flags(),
            f"--service-account-private-key-file={self.directory / 'sa.key'}",
            f"--root-ca-file={self.ca_file}",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=30m",  # who stands still with a busy machine is no node that is gone
            f"--horizontal-pod-autoscaler-sync-period={autoscaler_sync_s}s",
            "--kube-api-qps=300",
            "--kube-api-burst=600",
        ]

    def _component_flags(self) -> list[str]:
        return [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0"]


def deployment(name: str, replicas: int = 1, container: Json | None = None, **pod_spec: Any) -> Json:
    """Return a Deployment document whose pods carry the label ``app: name``; ``pod_spec`` adds to the pod's spec."""
    labels = {"app": name}
    containers = [{"name": "main", "image": "local", **(container or {})}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers, **pod_spec}},
        },
    }


def stateful_set(name: str, replicas: int = 1, container: Json | None = None, **spec: Any) -> Json:
    """Return a StatefulSet document whose pods carry the label ``app: name``; ``spec`` adds to its spec."""
    document = deployment(name, replicas, container)
    return {**document, "kind": "StatefulSet", "spec": {**document["spec"], "serviceName": name, **spec}}


def _available(found: Json) -> Json | None:
    wanted, status = found["spec"]["replicas"], found.get("status", {})
    is_observed = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
    counts = {status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")}
    return found if is_observed and counts == {wanted} else None
