"""``planner run`` on the policies of a namespace: real API server, real Kafka group of default clients, overloaded."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

from planner.deployments.api import RolloutApi
from planner.deployments.policies import list_policies
from planner.documents.policy import parse_policy
from planner.errors import BadInputError
from planner.orchestration.checks.kubernetes import check_kubernetes
from planner.orchestration.checks.result import CheckSettings
from planner.policies.cluster_reports import report_run
from planner.policies.fleet import policy_location
from planner.runs import migration
from planner.runs.observe import observe_live
from planner.runs.plan import results_of
from planner.storage.run import Run
from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import Json, Rest
from tests.contract.conftest import API, MERGE
from tests.pod_controllers import grant
from tests.rights_matrix import may
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner, refused

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP, ACCOUNT = "policy-busy", "consumer-planner-reader"
PARTITIONS, RATE, SERVICE_MS = 6, 30.0, 20.0
WATCH_S = 45
MOST_RUNS = 4
"""One is mostly enough; the next looks back at what a busy machine kept this one from seeing."""


@dataclass(frozen=True)
class Namespace:
    """A namespace of policies, by an administrator's calls."""

    cluster: ControlPlane
    name: str

    def apply(self, text: str) -> None:
        self.cluster.kubectl("apply", "-n", self.name, "-f", "-", text=text)

    def objects(self, plural: str) -> dict[str, Json]:
        found = self.cluster.rest.get(f"{API}/namespaces/{self.name}/{plural}")["items"]
        return {one["metadata"]["name"]: one for one in found}

    def conditions(self, policy: str) -> dict[str, tuple[str, str]]:
        found = self.objects("consumerscalingpolicies")[policy]
        conditions = found["status"]["conditions"]
        assert {one["observedGeneration"] for one in conditions} == {found["metadata"]["generation"]}
        return {one["type"]: (one["status"], one["reason"]) for one in conditions}


def policy(bootstrap: str, name: str, group: str = GROUP, properties: str = "") -> str:
    """Return a policy that leaves the capacity to be learned."""
    document = yaml.safe_load(kafka_policy(bootstrap, group))
    document["metadata"] = {"name": name}
    document["spec"] |= {"window": {"seconds": 60}, "freshness": {"minCompleteness": 0.5}}
    del document["spec"]["capacity"]
    if properties:
        document["spec"]["source"]["propertiesFile"] = properties
    return yaml.safe_dump(document)


def overload(kafka: KafkaCluster) -> None:
    """Start two default clients of the group, and three times the messages that they can take."""
    kafka.create_topic(GROUP, partitions=PARTITIONS)
    load = kafka.load().start()
    for client in ("c0", "c1"):
        load.start_consumer(client, group=GROUP, topics=[GROUP], config={}, service_ms=SERVICE_MS)
        load.await_event(client, "assigned")
    load.produce("p", [PartitionCurve(GROUP, number, ((0.0, RATE), (900.0, RATE))) for number in range(PARTITIONS)])
    load.process.wait_until("records", lambda: bool(load.deliveries()), REQUEST_S)


def test_a_policy_in_the_cluster_is_decided_on_and_says_how_many_why_and_since_when(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when a broken policy stops another, when a status or plan is missing, or a missing right costs a decision."""
    cluster = control_plane_with_plans
    overload(kafka_cluster)
    here = Namespace(cluster, cluster.namespace("policies"))
    kubeconfig = cluster.service_account(here.name, ACCOUNT)
    grant(cluster, here.name, here.name, "scheduler")
    text = policy(kafka_cluster.bootstrap, "busy")
    here.apply(text)
    here.apply(policy("127.0.0.1:1", "away", group="policy-away"))
    here.apply(policy(kafka_cluster.bootstrap, "greedy", group="policy-greedy", properties="/etc/passwd"))
    account = Rest(cluster.server, cluster.ca_file, cluster.token(here.name, ACCOUNT))
    writing = ("consumerplanner.dev", "consumerscalingpolicies/status", "patch")
    cluster.wait_until("the rights", lambda: may(account, here.name, writing))
    with RolloutApi.connect(kubeconfig) as api:
        read = {one.name: one.policy for one in list_policies(api, here.name)}
    assert read["busy"] is not None
    assert read["busy"].digest == parse_policy(text, "busy.yaml").digest, "a file's digest is the object's"
    assert read["greedy"] is None

    place = ["--policies", f"k8s://{here.name}", "--kubeconfig", kubeconfig, "--data", tmp_path]
    command = ["run", *place, "--no-page", "--format", "json", "--observe-seconds"]
    for _ in range(MOST_RUNS):
        first = planner(*command, WATCH_S)
        assert first.returncode == 1, first.stderr
        answer = json.loads(first.stdout)
        lines = {line["policy"]: line for line in answer["policies"]}
        if lines["busy"]["plan"]:
            break
    assert (lines["busy"]["from"], lines["busy"]["to"]) == (2, 6), answer
    assert {failure["name"] for failure in answer["failures"]} == {"away", "greedy"}

    status = here.objects("consumerscalingpolicies")["busy"]["status"]
    made = lines["busy"]["planObject"]
    assert (status["lastDecision"]["from"], status["lastDecision"]["to"], status["plan"]) == (2, 6, made)
    assert (status["lastDecision"]["cause"], "holdCause" in status) == ("TooFewConsumers", False)
    learned, true = status["learnedCapacity"]["messagesPerSecond"], 1000 / SERVICE_MS
    assert true / 2 <= learned <= true * 2, status
    assert here.conditions("busy") == {
        "Ready": ("True", "TooFewConsumers"),
        "Holding": ("False", "TooFewConsumers"),
        "Stalled": ("False", "Served"),
    }
    assert here.conditions("away")["Ready"] == ("False", "NoDecision")
    assert here.conditions("away")["Stalled"] == ("False", "Served")
    assert here.conditions("greedy")["Stalled"] == ("True", "InvalidPolicy")
    plan = here.objects("consumerrolloutplans")[made]
    assert (plan["spec"]["policy"], plan["spec"]["policyDigest"]) == ("busy", read["busy"].digest)
    assert "consumerplanner.dev/approve" not in plan["metadata"]["annotations"]
    planned_by = plan["metadata"]["annotations"]["consumerplanner.dev/planned-by"]
    assert planned_by == f"system:serviceaccount:{here.name}:{ACCOUNT}"

    for name, condition in (("busy", "Ready"), ("greedy", "Stalled")):
        cluster.kubectl("wait", "-n", here.name, f"--for=condition={condition}", f"csp/{name}", "--timeout=300s")
    heading, *rows = cluster.kubectl("get", "csp", "-n", here.name).splitlines()
    assert heading.split() == ["NAME", "GROUP", "FROM", "TO", "READY", "WHY", "SINCE", "PLAN", "AGE"]
    shown = {row.split()[0]: row.split()[1:] for row in rows}
    assert shown["busy"][:5] == [GROUP, "2", "6", "True", "TooFewConsumers"]
    assert shown["greedy"][:3] == ["policy-greedy", "False", "InvalidPolicy"]

    # What KUBECONFIG sets: the client reads it once, when it is imported.
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    taken = planner(
        "snapshot", "--policy", f"k8s://{here.name}/busy", "--observe-seconds", 0, "-o", tmp_path / "s.json"
    )
    assert taken.returncode == 0, taken.stderr
    absent = planner("snapshot", "--policy", f"k8s://{here.name}/absent", "-o", tmp_path / "a.json")
    refused(absent, 2, f"there is no policy absent in namespace {here.name}")

    update = {"kind": "update", "change": {"containers": [{"container": "app", "image": "shop:2"}]}}
    assert migration.check(f"k8s://{here.name}/busy", update, kubeconfig) == "update"
    for name, words in (("absent", "there is no k8s://"), ("greedy", f"policy {here.name}/greedy")):
        with pytest.raises(BadInputError, match=words):
            migration.check(f"k8s://{here.name}/{name}", update, kubeconfig)

    # As the tasks of the DAG do it where Spark failed: the policy has no decision of this run, and says why.
    run = observe_live(policy_location(f"k8s://{here.name}"), tmp_path / "airflow", 0)
    next_look_at = run.until + timedelta(minutes=10)
    decided = results_of(run, "stage history: no space left")
    report = report_run(Run.of(run.message()), decided, next_look_at)
    assert (report.plans, report.failures) == ({"busy": made}, {})
    assert here.conditions("busy")["Ready"] == ("False", "NoDecision")
    later = here.objects("consumerscalingpolicies")["busy"]["status"]
    (ready,) = [condition for condition in later["conditions"] if condition["type"] == "Ready"]
    assert "stage history: no space left" in ready["message"]
    assert later["lastDecision"] == status["lastDecision"]
    assert datetime.fromisoformat(later["nextLookAt"]) == next_look_at

    settings = CheckSettings(f"k8s://{here.name}", "", None, 1.0)
    assert (True, f"{cluster.server} lets us decide on its policies in namespace {here.name}") in check_kubernetes(
        settings
    )

    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{here.name}/roles/consumer-planner-scheduler"
    rules = [rule for rule in cluster.rest.get(role)["rules"] if "/status" not in rule["resources"][0]]
    cluster.rest.patch(role, {"rules": rules}, MERGE)
    cluster.wait_until("the right to be gone", lambda: not may(account, here.name, writing))
    checked = list(check_kubernetes(settings))
    assert [is_good for is_good, sentence in checked if "decide on its policies" in sentence] == [False]
    assert "missing patch consumerscalingpolicies/status (consumerplanner.dev)" in checked[0][1]
    denied = planner(*command, 5)
    assert denied.returncode == 1, denied.stderr
    answer = json.loads(denied.stdout)
    again = next(line for line in answer["policies"] if line["policy"] == "busy")
    assert (again["to"], again["planObject"]) == (6, made), "the open plan is kept, and no other is made"
    assert len(here.objects("consumerrolloutplans")) == 1
    (said,) = [one["reason"] for one in answer["failures"] if one["name"] == f"k8s://{here.name}"]
    assert "does not allow it" in said
    assert "status of policy" in said
