"""The released controllers of other kinds of workloads, beside a control plane: Argo Rollouts and OpenKruise."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import yaml

from tests.clusters.kubernetes.build import (
    ARGO,
    ARGO_ROLLOUTS,
    KRUISE,
    OPEN_KRUISE,
    argo_rollouts_binary,
    kruise_binary,
)
from tests.clusters.kubernetes.control_plane import ControlPlane
from tests.clusters.kubernetes.go import module_folder
from tests.clusters.kubernetes.rest import Json
from tests.clusters.ports import lease_block
from tests.clusters.processes import ManagedProcess

STOP_S: Final = 10.0
_KRUISE_NAMESPACE: Final = "kruise-system"
_WEBHOOKS: Final = {
    "MutatingWebhookConfiguration": "kruise-mutating-webhook-configuration",
    "ValidatingWebhookConfiguration": "kruise-validating-webhook-configuration",
}
"""Kind -> the name under which the manager looks for it."""


@contextmanager
def argo_rollouts(cluster: ControlPlane, directory: Path) -> Iterator[ManagedProcess]:
    """Install the definitions of Argo Rollouts and run its controller for all namespaces."""
    binary = argo_rollouts_binary()
    definitions = sorted((module_folder(ARGO, ARGO_ROLLOUTS) / "manifests" / "crds").glob("*-crd.yaml"))
    with ExitStack() as undo:
        _define(cluster, definitions, undo)
        namespace, ports = cluster.namespace("argo-rollouts"), _ports(undo)
        flags = ["--leader-elect=false", "--healthzPort", str(ports[0]), "--metricsPort", str(ports[1])]
        argv = [str(binary), "--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace, *flags]
        yield _run("argo-rollouts", argv, directory, {}, undo)


@contextmanager
def open_kruise(cluster: ControlPlane, directory: Path) -> Iterator[ManagedProcess]:
    """Install OpenKruise's definitions and its webhooks of CloneSets, and run its manager for CloneSets alone."""
    binary = kruise_binary()
    config = module_folder(KRUISE, OPEN_KRUISE) / "config"
    with ExitStack() as undo:
        _define(cluster, sorted((config / "crd" / "bases").glob("*.yaml")), undo)
        cluster.rest.create("/api/v1/namespaces", {"metadata": {"name": _KRUISE_NAMESPACE}})
        hooks = _webhooks(config / "webhook" / "manifests.yaml")
        cluster.apply(*hooks, namespace=_KRUISE_NAMESPACE)
        undo.callback(cluster.kubectl, "delete", *(f"{one['kind']}/{one['metadata']['name']}" for one in hooks))
        webhook, *others = _ports(undo)
        environment = {
            "CUSTOM_RESOURCE_ENABLE": "CloneSet",
            "POD_NAMESPACE": _KRUISE_NAMESPACE,
            "WEBHOOK_HOST": "127.0.0.1",
            "WEBHOOK_PORT": str(webhook),
            "WEBHOOK_CERT_DIR": str(directory / "kruise-certs"),
        }
        names = ("metrics-addr", "health-probe-addr", "pprof-addr")
        addresses = [f"--{name}=127.0.0.1:{port}" for name, port in zip(names, others, strict=True)]
        argv = [str(binary), "--kubeconfig", str(cluster.kubeconfig), "--enable-leader-election=false", *addresses]
        process = _run("kruise", argv, directory, environment, undo)
        process.wait_until("its webhooks' address", lambda: all(map(_is_reachable, _installed(cluster))), 600.0)
        yield process


def _define(cluster: ControlPlane, files: Sequence[Path], undo: ExitStack) -> None:
    """Make the definitions of these files; return once the server serves them.

    ``kubectl apply`` would keep each a second time in an annotation, for which some are too large.
    """
    documents: list[Json] = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    for one in documents:  # of other tests that have just deleted theirs
        cluster.kubectl("wait", "--for=delete", "--timeout=120s", f"crd/{one['metadata']['name']}")
    cluster.kubectl("create", "-f", "-", text=yaml.safe_dump_all(documents))
    undo.callback(cluster.kubectl, "delete", "--wait=false", *cluster.await_definitions(documents))


def _ports(undo: ExitStack) -> tuple[int, ...]:
    lease = lease_block()
    undo.callback(lease.release)
    return lease.ports


def _run(
    name: str, argv: Sequence[str], directory: Path, environment: Mapping[str, str], undo: ExitStack
) -> ManagedProcess:
    process = ManagedProcess(name, argv, directory, environment)
    process.start()
    undo.callback(process.stop, STOP_S)
    return process


def _webhooks(manifests: Path) -> list[Json]:
    """Return the webhooks of CloneSets; the manager puts its own address and certificate into them."""
    found: list[Json] = list(yaml.safe_load_all(manifests.read_text(encoding="utf-8")))
    for one in found:
        one["metadata"]["name"] = _WEBHOOKS[one["kind"]]
        one["webhooks"] = [hook for hook in one["webhooks"] if hook["name"].endswith("cloneset.kb.io")]
    return found


def _installed(cluster: ControlPlane) -> list[Json]:
    path = "/apis/admissionregistration.k8s.io/v1"
    return [cluster.rest.get(f"{path}/{kind.lower()}s/{name}") for kind, name in _WEBHOOKS.items()]


def _is_reachable(configuration: Json) -> bool:
    return all("url" in hook["clientConfig"] for hook in configuration["webhooks"])
