"""The chart's schedule and sampler on a real API server: admission takes them, and their controllers make the pods."""

import pytest
import yaml

from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.charts import Helm
from tests.clusters.kubernetes.rest import Json
from tests.unit.packaging.images import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

NAME, READER = "consumer-planner-schedule", "consumer-planner-reader"


def schedule_of(cluster: ControlPlane, namespace: str, *values: str) -> list[Json]:
    """Return what the chart makes for the schedule, and for the sampler where ``values`` say so.

    Definitions and controller are other tests'.
    """
    helm = Helm(cluster.kubeconfig, cluster.directory / "helm-schedule")
    options = [word for value in ("schedule.enabled=true", *values) for word in ("--set", value)]
    text = helm("template", "planner", str(ROOT / "helm"), "--namespace", namespace, *options)
    documents = [one for one in yaml.safe_load_all(text) if one is not None]
    component = "app.kubernetes.io/component"
    return [one for one in documents if one["metadata"]["labels"].get(component) in ("schedule", "sampler")]


def test_a_restricted_namespace_admits_schedule_and_sampler_and_a_run(control_plane: ControlPlane) -> None:
    """Red when a field is misspelt, or a pod asks for more than Pod Security's restricted grants."""
    namespace = control_plane.namespace("schedule")
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    control_plane.kubectl("label", "namespace", namespace, restricted)
    # Whatever the client would let pass, a field that the server does not know is an error.
    of_objects = ("sampler.enabled=true", "schedule.policies.configMap=", f"schedule.policies.namespace={namespace}")
    documents = yaml.safe_dump_all(schedule_of(control_plane, namespace, *of_objects))
    dry = ("apply", "-n", namespace, "--server-side", "--validate=strict", "--dry-run=server", "-f", "-")
    control_plane.kubectl(*dry, text=documents)
    documents = yaml.safe_dump_all(schedule_of(control_plane, namespace, "sampler.enabled=true"))
    for flags in (["--dry-run=server"], []):
        words = ("apply", "-n", namespace, "--server-side", "--validate=strict", *flags, "-f", "-")
        control_plane.kubectl(*words, text=documents)
    control_plane.kubectl("create", "configmap", "consumer-planner-policies", "-n", namespace)
    control_plane.kubectl("create", "job", "now", f"--from=cronjob/{NAME}", "-n", namespace)

    def pods(selector: str) -> list[Json] | None:
        found = control_plane.rest.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)["items"]
        return found or None

    for selector in ("job-name=now", "app.kubernetes.io/component=sampler"):
        (pod,) = control_plane.wait_until(f"the pod of {selector}", lambda selector=selector: pods(selector))
        assert pod["spec"]["serviceAccountName"] == READER
        claims = [volume.get("persistentVolumeClaim", {}).get("claimName") for volume in pod["spec"]["volumes"]]
        assert NAME in claims, "both have the folder in which runs look back"
    account = f"--as=system:serviceaccount:{namespace}:{READER}"
    assert control_plane.kubectl("auth", "can-i", "get", "deployments", "-n", namespace, account).strip() == "yes"
    with pytest.raises(StartFailedError, match="can-i patch"):
        control_plane.kubectl("auth", "can-i", "patch", "deployments", "-n", namespace, account)


def test_a_cron_expression_that_means_nothing_is_refused_by_the_server(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace("schedule")
    documents = yaml.safe_dump_all(schedule_of(control_plane, namespace, "schedule.cron=61 * * * *"))
    with pytest.raises(StartFailedError, match="schedule"):
        control_plane.kubectl("apply", "-n", namespace, "--dry-run=server", "-f", "-", text=documents)
