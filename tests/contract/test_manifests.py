"""The manifests as kubectl and the real Helm make them: they say the same, and wrong values are refused."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes.build import control_plane_binary
from tests.clusters.kubernetes.charts import Helm
from tests.clusters.kubernetes.rest import Json
from tests.unit.packaging.images import ROOT

# Both programs are compiled first where they have not been yet.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

CHART, K8S = str(ROOT / "helm"), ROOT / "k8s"
RELEASE = "consumer-planner"
OVERLAYS = ("plans-only", "namespaced", "cluster-wide")


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    home = tmp_path_factory.mktemp("helm")
    return Helm(home / "no-kubeconfig", home)


def kustomized(folder: Path) -> list[Json]:
    command = [str(control_plane_binary()), "kubectl", "kustomize", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return list(yaml.safe_load_all(run.stdout))


def rendered(helm: Helm, *options: str) -> dict[tuple[str, str], Json]:
    text = helm("template", RELEASE, CHART, "--namespace", "consumer-planner", *options)
    return by_name(list(yaml.safe_load_all(text)))


def by_name(documents: list[Json]) -> dict[tuple[str, str], Json]:
    found = {(one["kind"], one["metadata"]["name"]): one for one in documents if one is not None}
    assert len(found) == len(documents), "two documents of one kind and name"
    return found


def content(document: Json) -> Json:
    """Return what a manifest says, without what the chart writes into metadata."""
    return {key: value for key, value in document.items() if key != "metadata"}


@pytest.mark.parametrize(
    ("overlay", "options", "besides"),
    [
        ("namespaced", (), set()),
        ("cluster-wide", ("--set", "watch.allNamespaces=true"), {("Namespace", "consumer-planner")}),
    ],
)
def test_the_chart_says_what_the_manifests_say(
    helm: Helm, overlay: str, options: tuple[str, ...], besides: set[tuple[str, str]]
) -> None:
    plain = by_name(kustomized(K8S / "overlays" / overlay))
    chart = rendered(helm, *options)
    of_chart = {key: content(one) for key, one in chart.items() if "helm.sh/hook" not in str(one["metadata"])}
    of_manifests = {
        key: content(one) for key, one in plain.items() if key not in besides and key[0] != "CustomResourceDefinition"
    }
    assert of_chart == of_manifests


SCHEDULED = ("--set", "schedule.enabled=true")


SAMPLED = ("--set", "sampler.enabled=true")


@pytest.mark.parametrize(
    ("overlay", "options"),
    [("scheduled", SCHEDULED), ("sampled", (*SCHEDULED, *SAMPLED))],
)
def test_the_charts_schedule_says_what_the_manifests_say(helm: Helm, overlay: str, options: tuple[str, ...]) -> None:
    plain = by_name(kustomized(K8S / "overlays" / overlay))
    besides = rendered(helm)
    chart = {key: content(one) for key, one in rendered(helm, *options).items() if key not in besides}
    account = {("ServiceAccount", "consumer-planner-reader"): {"apiVersion": "v1", "kind": "ServiceAccount"}}
    reader = by_name(list(yaml.safe_load_all((K8S / "rbac" / "reader-role.yaml").read_text())))
    assert chart == {key: content(one) for key, one in (plain | reader).items()} | account


def test_the_schedule_takes_its_values_and_is_none_of_the_controllers_pods(helm: Helm) -> None:
    values = (
        "schedule.enabled=true,schedule.cron=@hourly,schedule.timeZone=Europe/Berlin,schedule.serviceAccount=own,"
        "schedule.observeSeconds=30,schedule.data.existingClaim=kept,schedule.policies.configMap=,"
        "schedule.policies.existingClaim=written,extraEnv[0].name=A,extraEnv[0].value=b"
    )
    found = rendered(helm, "--set", values)
    assert not {key for key in found if key[1] == "consumer-planner-reader" or key[0] == "PersistentVolumeClaim"}
    spec = found["CronJob", "consumer-planner-schedule"]["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("@hourly", "Europe/Berlin", "Forbid")
    pods = spec["jobTemplate"]["spec"]["template"]
    claims = {one["name"]: one.get("persistentVolumeClaim", {}).get("claimName") for one in pods["spec"]["volumes"]}
    assert claims == {"tmp": None, "policies": "written", "data": "kept"}
    assert pods["spec"]["serviceAccountName"] == "own"
    (container,) = pods["spec"]["containers"]
    assert "--observe-seconds=30" in container["args"]
    assert container["env"] == [{"name": "A", "value": "b"}]
    selector = found["Service", "consumer-planner-controller"]["spec"]["selector"]
    assert not selector.items() <= pods["metadata"]["labels"].items()
    controller = found["Deployment", "consumer-planner-controller"]["spec"]["template"]["spec"]
    assert pods["spec"]["securityContext"] == controller["securityContext"]
    assert container["securityContext"] == controller["containers"][0]["securityContext"]


def test_a_sampler_alone_has_the_schedules_policies_data_and_account_and_no_cron_job(helm: Helm) -> None:
    """For an Airflow that decides: red when the sampler needs a schedule, or shares a selector with the controller."""
    values = (
        "sampler.enabled=true,sampler.every=30s,schedule.policies.configMap=own,extraEnv[0].name=A,extraEnv[0].value=b"
    )
    besides = rendered(helm)
    found = {key: one for key, one in rendered(helm, "--set", values).items() if key not in besides}
    assert {kind for kind, _ in found} == {
        "Deployment",
        "PersistentVolumeClaim",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    }
    deployment = found["Deployment", "consumer-planner-sampler"]
    pods = deployment["spec"]["template"]
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
    controller = besides["Deployment", "consumer-planner-controller"]["spec"]
    assert not controller["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    (container,) = pods["spec"]["containers"]
    assert pods["spec"]["securityContext"] == controller["template"]["spec"]["securityContext"]
    assert container["securityContext"] == controller["template"]["spec"]["containers"][0]["securityContext"]
    assert "--every=30s" in container["args"]
    assert {"name": "A", "value": "b"} in container["env"]
    assert {"name": "policies", "configMap": {"name": "own"}} in pods["spec"]["volumes"]
    assert "affinity" not in pods["spec"]


def test_the_schedule_decides_on_the_policies_of_a_namespace_that_the_release_may_bring(helm: Helm) -> None:
    """Red when the policies' place, the right to write their status or the bounds of what they name are missing."""
    values = (
        "schedule.enabled=true,sampler.enabled=true,schedule.policies.configMap=,schedule.policies.namespace=shop,"
        "secretHosts.shop={10.0.0.5:9876},policies[0].name=orders,policies[0].namespace=shop,"
        "policies[0].spec.maxReplicas=12"
    )
    found = rendered(helm, "--set", values)
    policy = found["ConsumerScalingPolicy", "orders"]
    assert (policy["metadata"]["namespace"], policy["spec"]) == ("shop", {"maxReplicas": 12})
    runs = found["CronJob", "consumer-planner-schedule"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    samples = found["Deployment", "consumer-planner-sampler"]["spec"]["template"]["spec"]
    for pods in (runs, samples):
        (container,) = pods["containers"]
        assert "--policies=k8s://shop" in container["args"]
        assert "policies" not in {item["name"] for item in (*pods["volumes"], *container["volumeMounts"])}
        assert {item["name"]: item["value"] for item in container["env"] if "value" in item} == {
            "PLANNER_POLICY_FILES": "/policy-files",
            "PLANNER_SECRET_HOSTS": '{"shop":["10.0.0.5:9876"]}',
        }
    plain = by_name(list(yaml.safe_load_all((K8S / "rbac" / "scheduler.yaml").read_text())))
    for key, document in plain.items():
        assert content(found[key]) == content(document)
        assert found[key]["metadata"]["namespace"] == "shop"


def test_spark_has_an_account_and_a_volume_and_who_submits_has_its_role_too(helm: Helm) -> None:
    besides = rendered(helm)
    options = (
        "spark.enabled=true,spark.namespace=spark,spark.submitters[0].name=worker,spark.submitters[0].namespace=airflow"
    )
    found = {key: one for key, one in rendered(helm, "--set", options).items() if key not in besides}
    name = "consumer-planner-spark"
    assert {kind for kind, _ in found} == {"PersistentVolumeClaim", "ServiceAccount", "Role", "RoleBinding"}
    assert {(one["metadata"]["name"], one["metadata"]["namespace"]) for one in found.values()} == {(name, "spark")}
    (role,) = yaml.safe_load_all((K8S / "rbac" / "spark.yaml").read_text())
    assert content(found["Role", name]) == content(role)
    assert found["PersistentVolumeClaim", name]["spec"]["accessModes"] == ["ReadWriteMany"]
    subjects = [(one["name"], one["namespace"]) for one in found["RoleBinding", name]["subjects"]]
    assert subjects == [(name, "spark"), ("worker", "airflow")]
    own = "spark.enabled=true,spark.serviceAccount=own,spark.data.existingClaim=kept"
    found = {key: one for key, one in rendered(helm, "--set", own).items() if key not in besides}
    assert set(found) == {("Role", name), ("RoleBinding", name)}
    assert found["RoleBinding", name]["subjects"][0]["name"] == "own"


def test_the_definitions_and_rights_of_the_chart_are_those_of_the_manifests(helm: Helm, tmp_path: Path) -> None:
    definitions = [yaml.safe_load(path.read_text()) for path in sorted((K8S / "crds").glob("*.yaml"))]
    assert by_name(list(yaml.safe_load_all(helm("show", "crds", CHART)))) == by_name(definitions)
    # Packed, the links are files: a chart from a registry has them, too.
    helm("package", CHART, "--destination", str(tmp_path))
    (packed,) = tmp_path.glob("*.tgz")
    assert by_name(list(yaml.safe_load_all(helm("show", "crds", str(packed))))) == by_name(definitions)
    text = helm("template", RELEASE, str(packed), "--namespace", "consumer-planner")
    assert by_name(list(yaml.safe_load_all(text))) == rendered(helm)


def test_the_chart_is_lint_free_and_the_page_names_every_value(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART)
    page = (ROOT / "helm" / "README.md").read_text()
    values = yaml.safe_load((ROOT / "helm" / "values.yaml").read_text())
    assert [name for name in leaves(values) if f"`{name}`" not in page] == []


def leaves(values: Json, above: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value and name != "resources":
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


WRONG = [
    ("replicas=two", "at '/replicas': got string, want integer"),
    ("replica=2", "additional properties 'replica' not allowed"),
    ("watch.namespace=shop", "additional properties 'namespace' not allowed"),
    ("watch.namespaces={Shop}", "at '/watch/namespaces/0': 'Shop' does not match pattern"),
    ("data.sizeLimit=much", "at '/data/sizeLimit': 'much' does not match pattern"),
    ("logLevel=loud", "value must be one of 'debug', 'info', 'warning', 'error'"),
    ("secretHosts.shop={https://metrics}", "at '/secretHosts/shop/0': 'https://metrics' does not match pattern"),
    ("image.digest=sha256:1", "at '/image/digest': 'sha256:1' does not match pattern"),
    ("schedule.cron=often", "at '/schedule/cron': 'often' does not match pattern"),
    ("schedule.observeSecond=9", "additional properties 'observeSecond' not allowed"),
    ("spark.submitters[0].account=x", "at '/spark/submitters/0': missing property 'name'"),
    ("sampler.every=often", "at '/sampler/every': 'often' does not match pattern"),
    ("sampler.enabled=true,schedule.policies.configMap=", "names no configMap, no existingClaim and no namespace"),
    ("schedule.enabled=true,schedule.policies.existingClaim=here", "configMap and schedule.policies.existingClaim are"),
    (
        "schedule.enabled=true,schedule.policies.namespace=shop",
        "configMap and schedule.policies.namespace are both set",
    ),
    ("schedule.enabled=true,schedule.policies.configMap=", "names no configMap, no existingClaim and no namespace"),
    ("policies[0].name=shop", "at '/policies/0': missing property 'spec'"),
    ("watch.allNamespaces=true,watch.namespaces={shop}", "watch.allNamespaces is true and watch.namespaces names some"),
]


@pytest.mark.parametrize(("value", "said"), WRONG, ids=[value for value, _ in WRONG])
def test_a_wrong_value_is_refused_with_its_place(helm: Helm, value: str, said: str) -> None:
    with pytest.raises(StartFailedError, match=r".") as refused:
        helm("template", RELEASE, CHART, "--set", value)
    assert said in str(refused.value)


def test_every_option_makes_what_it_says(helm: Helm) -> None:
    options = (
        "watch.namespaces={shop,billing},rbac.migrations=true,rbac.autoApprove=true,rbac.autoscalers=true,networkPolicy.enabled=true,"
        "rbac.scaleTargets[0].group=example.com,rbac.scaleTargets[0].resource=fleets,"
        "serviceMonitor.enabled=true,serviceMonitor.labels.release=prometheus,podDisruptionBudget.enabled=false,"
        "finishedPlans=5,extraEnv[0].name=A,extraEnv[0].value=b,admission.enabled=false,data.existingClaim=forecasts,"
        "secretHosts.shop={10.0.0.5:9876},secretHosts.shop/token={prometheus:9090}"
    )
    text = helm("template", RELEASE, CHART, "--namespace", "consumer-planner", "--set", options)
    documents = list(yaml.safe_load_all(text))
    bound = {
        (one["metadata"]["namespace"], one["metadata"]["name"].removeprefix("consumer-planner-"))
        for one in documents
        if one["kind"] == "RoleBinding" and "namespace" in one["metadata"]
    }
    roles = ("executor", "retention", "migrations", "autoscalers", "scale", "auto")
    assert bound == {(place, role) for place in ("shop", "billing") for role in roles}
    named = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    rules = named["Role", "consumer-planner-scale"]["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["fleets"], ["get", "patch"]),
        (["fleets/scale"], ["get"]),
    ]
    kinds = {one["kind"] for one in documents}
    assert {"NetworkPolicy", "ServiceMonitor"} <= kinds
    assert not {"PodDisruptionBudget", "ValidatingAdmissionPolicy"} & kinds
    (pods,) = (one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Deployment")
    told = {entry["name"]: entry.get("value") for entry in pods["containers"][0]["env"]}
    assert (told["PLANNER_NAMESPACE"], told["A"]) == ("shop,billing", "b")
    assert told["PLANNER_FINISHED_PLANS"] == "5"
    assert json.loads(told["PLANNER_SECRET_HOSTS"]) == {"shop": ["10.0.0.5:9876"], "shop/token": ["prometheus:9090"]}
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "forecasts"}} in pods["volumes"]
    assert {"name": "data", "mountPath": told["PLANNER_DATA"]} in pods["containers"][0]["volumeMounts"]


def test_kinds_of_the_users_own_are_bound_by_admission_as_rollouts_are(helm: Helm) -> None:
    option = "rbac.scaleTargets[0].group=example.com,rbac.scaleTargets[0].resource=fleets"
    documents = list(yaml.safe_load_all(helm("template", RELEASE, CHART, "--set", option)))
    named = {
        one["metadata"]["name"]: [rule["resources"] for rule in one["spec"]["matchConstraints"]["resourceRules"]]
        for one in documents
        if one["kind"] == "ValidatingAdmissionPolicy"
    }
    assert named["consumer-planner-scale-targets"] == [["rollouts"], ["clonesets"], ["fleets"]]
    assert ["fleets"] in named["consumer-planner-namespaces"]


def test_an_older_server_gets_no_policy_that_it_does_not_know(helm: Helm) -> None:
    kinds = {kind for kind, _ in rendered(helm, "--kube-version", "1.33.0")}
    assert "ValidatingAdmissionPolicy" in kinds
    assert "MutatingAdmissionPolicy" not in kinds


def test_the_base_goes_into_another_namespace_by_one_line(tmp_path: Path) -> None:
    base = os.path.relpath(K8S / "base", tmp_path)
    (tmp_path / "kustomization.yaml").write_text(f"namespace: shop\nresources: [{base}]\n")
    documents = kustomized(tmp_path)
    assert {one["metadata"]["namespace"] for one in documents} == {"shop"}
    assert {subject["namespace"] for one in documents for subject in one.get("subjects", ())} == {"shop"}
    assert {one["kind"] for one in documents} >= {"Deployment", "Role", "RoleBinding", "ServiceAccount"}


def test_what_belongs_to_no_namespace_is_given_none() -> None:
    """Kustomize takes admission policies for things that are in one."""
    nowhere = ("Cluster", "CustomResource", "MutatingAdmission", "Namespace", "ValidatingAdmission")
    for name in OVERLAYS:
        documents = [one for one in kustomized(K8S / "overlays" / name) if one["kind"].startswith(nowhere)]
        assert len(documents) > 5
        assert [one["metadata"]["name"] for one in documents if "namespace" in one["metadata"]] == []
