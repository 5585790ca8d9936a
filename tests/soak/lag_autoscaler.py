"""A real HPA that a group's lag drives, as KEDA sets one up: an external metric, its API behind the API server.

KEDA's own part is the number: it answers the HPA with the whole group's lag (``kafka_scaler.go``, ``getTotalLag``,
KEDA 2.20), and makes an HPA with an external metric and a target average (``AverageValue``). The HPA's controller, the
API server and its aggregation layer are Kubernetes' own.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from planner.backtest.policies.keda import ScalerOptions, scaler_metric
from tests.clusters.certificates import write_certificates
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import ApiError, Json

API_GROUP, API_VERSION = "external.metrics.k8s.io", "v1beta1"
API = f"/apis/{API_GROUP}/{API_VERSION}"
HOME = "kube-system"
READY_S = 300.0

Lags = Callable[[], list[float]]
"""Reads what waits in each queue, in messages."""


@dataclass(frozen=True)
class LagTrigger:
    """How one Deployment is scaled: messages of lag a pod, and how long the HPA waits before it scales down.

    ``lags`` is asked whenever the HPA asks.
    """

    target: str
    lags: Lags
    threshold: float
    window_s: float

    def metric(self) -> float:
        """Return what KEDA tells the HPA."""
        return scaler_metric(self.lags(), ScalerOptions(lag_threshold=self.threshold))


@contextmanager
def lag_driven(
    cluster: ControlPlane, namespace: str, triggers: Sequence[LagTrigger], lowest: int, highest: int
) -> Iterator[None]:
    """Let an HPA set each Deployment's replicas by its group's lag until the end; all have the same bounds."""
    home = cluster.directory / "external-metrics"
    home.mkdir()
    metrics = {trigger.target: trigger.metric for trigger in triggers}
    with _serving(metrics, write_certificates(home)) as port:
        cluster.apply(*_registration(port), namespace=HOME)
        for name in metrics:
            cluster.wait_until(f"{name} as a metric", lambda name=name: _value(cluster, namespace, name), READY_S)
        cluster.apply(*(_autoscaler(trigger, lowest, highest) for trigger in triggers), namespace=namespace)
        try:
            yield
        finally:
            for name in metrics:
                cluster.kubectl("delete", "hpa", name, "-n", namespace)
            cluster.kubectl("delete", "apiservice", f"{API_VERSION}.{API_GROUP}")


def _value(cluster: ControlPlane, namespace: str, metric: str) -> Json | None:
    """Return the metric as the HPA's controller gets it; ``None`` while the API server does not pass it on yet."""
    try:
        return cluster.rest.get(f"{API}/namespaces/{namespace}/{metric}")
    except ApiError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE):
            raise
        return None


def _registration(port: int) -> tuple[Json, Json]:
    """Return the documents by which the API server passes the external metrics' API on to a port of this machine."""
    name = "external-metrics"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": HOME},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    registration = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{API_VERSION}.{API_GROUP}"},
        "spec": {
            "group": API_GROUP,
            "version": API_VERSION,
            "service": {"name": name, "namespace": HOME, "port": port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }
    return service, registration


def _autoscaler(trigger: LagTrigger, lowest: int, highest: int) -> Json:
    """Return the HPA that KEDA would make for a trigger."""
    name, average = trigger.target, str(round(trigger.threshold))
    metric = {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": average}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": lowest,
            "maxReplicas": highest,
            "metrics": [{"type": "External", "external": metric}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": round(trigger.window_s)}},
        },
    }


@contextmanager
def _serving(metrics: Mapping[str, Callable[[], float]], certificates: Path) -> Iterator[int]:
    """Serve the metrics by name at the port that is given, by TLS, until the end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(metrics))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, name="external metrics")
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(metrics: Mapping[str, Callable[[], float]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers as ``k8s.io/metrics``, ``pkg/apis/external_metrics/v1beta1``, says."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = urlsplit(self.path).path.rstrip("/").rsplit("/", 1)[-1]
            if name == API_VERSION:
                self._answer(HTTPStatus.OK, _resources(metrics))
            elif name in metrics:
                self._answer(HTTPStatus.OK, _values(name, metrics[name]()))
            else:
                self._answer(HTTPStatus.NOT_FOUND, {"kind": "Status", "apiVersion": "v1", "status": "Failure"})

        def log_message(self, *_: object) -> None:
            """Say nothing: the HPA asks every few seconds."""

        def _answer(self, status: HTTPStatus, body: Json) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _resources(metrics: Mapping[str, object]) -> Json:
    kind = {"kind": "ExternalMetricValueList", "singularName": "", "namespaced": True, "verbs": ["get"]}
    resources = [{"name": name, **kind} for name in metrics]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{API_GROUP}/{API_VERSION}",
        "resources": resources,
    }


def _values(name: str, value: float) -> Json:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    item = {"metricName": name, "metricLabels": {}, "timestamp": now, "value": str(round(value))}
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "metadata": {},
        "items": [item],
    }
