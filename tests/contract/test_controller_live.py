"""The controller on a real API server: two lines are a rollout, whoever dies, whatever is away."""

import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from planner.documents.plan import PLAN
from planner.documents.policy import parse_policy
from planner.rollout.plan import LEAST_TTL_S, RolloutPlan
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    MovedQueues,
    PauseForPerson,
    StartConsumers,
    Step,
)
from planner.storage.track_records import read_records
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import MERGE, ApiError, Json
from tests.pod_controllers import ACCOUNT, Controller, documents, grant, install, status_of, uninstall
from tests.pod_groups import GROUP, plan_for
from tests.relay import Relay

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

WAIT_S = 300.0
LIMIT_S = 300
MOVES = MovedQueues(0, 8)
APP = "app"
PAUSES = "pauseForPerson"
SECRET = "s3cr3t-k3y-0f-th3-br0k3r"


@dataclass(frozen=True)
class Site:
    """A namespace for the controller, one for the plans with a Deployment of two pods, and an approver."""

    cluster: ControlPlane
    home: str
    namespace: str
    kubeconfig: Path
    approver: Path
    folder: Path

    def plan(self, name: str, steps: Sequence[Step], **changes: object) -> RolloutPlan:
        """Apply a plan that fits the Deployment as it is now, as kubectl does it."""
        made = replace(plan_for(APP, self.pods(), steps), **changes)  # type: ignore[arg-type]
        self.cluster.kubectl("apply", "-f", "-", text=PLAN.text(PLAN.document(made, name, self.namespace)))
        return made

    def approve(self, name: str, made: RolloutPlan) -> None:
        """Approve it by one line of kubectl, as the approver."""
        line = ["annotate", "crp", name, "-n", self.namespace, f"consumerplanner.dev/approve={PLAN.digest(made)}"]
        if made.confirmations:
            line.append(f"consumerplanner.dev/confirm={chr(10).join(made.confirmations)}")
        self.cluster.kubectl("--token", token_of(self.approver), *line)

    def pods(self) -> list[str]:
        found = self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return sorted(one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"])

    def found(self, name: str) -> Json | None:
        path = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans/{name}"
        try:
            return self.cluster.rest.get(path)
        except ApiError as error:
            assert error.status == 404, error
            return None

    def status(self, name: str) -> Json:
        return status_of(self.cluster, self.namespace, name)

    def await_phase(self, name: str, phase: str) -> Json:
        self.cluster.wait_until(f"{phase} of {name}", lambda: self.status(name).get("phase") == phase, WAIT_S)
        return self.status(name)

    def await_step(self, name: str, kind: str) -> None:
        def is_there() -> bool:
            steps = self.status(name).get("steps", [])
            return [one["kind"] for one in steps if not one.get("finishedAt")] == [kind]

        self.cluster.wait_until(f"{kind} of {name}", is_there, WAIT_S)

    def events(self, name: str) -> dict[str, set[str]]:
        """Return what was told of a plan: reason -> sentences; the server lists events in the order of random names."""
        told: dict[str, set[str]] = {}
        for one in self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]:
            if one["involvedObject"]["name"] == name:
                told.setdefault(one["reason"], set()).add(one["message"])
        return told

    def deployment(self) -> Json:
        return self.cluster.rest.get(f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{APP}")

    def back_to_two(self) -> None:
        self.cluster.kubectl("scale", "deployment", APP, "-n", self.namespace, "--replicas=2")
        self.cluster.await_available(self.namespace, APP)
        self.cluster.wait_until("two pods", lambda: len(self.pods()) == 2, WAIT_S)

    @property
    def admin(self) -> str:
        """Who applies plans here, as the API server names him."""
        answer = self.cluster.rest.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        return str(answer["status"]["userInfo"]["username"])

    def data(self, name: str) -> Path:
        """Where a replica keeps how forecasts did."""
        return self.folder / f"{name}-data"

    def judged(self) -> set[str]:
        """Return when each plan that is there was judged."""
        path = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans"
        there = [one.get("status", {}).get("verdict") for one in self.cluster.rest.get(path)["items"]]
        return {verdict["judgedAt"] for verdict in there if verdict}

    def kept(self, name: str) -> set[str]:
        """Return when each forecast was judged that a replica has kept."""
        records = read_records(self.data(name), GROUP) if self.data(name).exists() else ()
        return {record.judged_at.isoformat().replace("+00:00", "Z") for record in records}

    def await_kept(self, name: str) -> None:
        self.cluster.wait_until(f"the records of {name}", lambda: self.judged() <= self.kept(name), WAIT_S)

    def start(self, name: str, *options: str, kubeconfig: Path | None = None) -> Controller:
        places = ("--namespace", self.namespace, "--leader-namespace", self.home, "--data", str(self.data(name)))
        # Criteria believe what the cluster's administrator creates, as whom the tests apply plans.
        trusted = ("--planning-account", self.admin)
        return Controller(name, self.folder, kubeconfig or self.kubeconfig, *places, *trusted, *options)


def token_of(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"])


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    made = install(control_plane)
    yield control_plane
    uninstall(control_plane, made)


@contextmanager
def site_on(installed: ControlPlane, folder: Path) -> Iterator[Site]:
    """Make the site on a control plane that has the definitions."""
    home, namespace = installed.namespace("planner"), installed.namespace("shop")
    grant(installed, home, home, "controller")
    grant(installed, home, namespace, "executor", "executor-retention")
    kubeconfig = installed.kubeconfig_for(installed.token(home, ACCOUNT), f"{home}-controller")
    approver = installed.service_account(namespace, "anna")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "anna"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "consumer-planner-approver"},
        "subjects": [{"kind": "ServiceAccount", "name": "anna", "namespace": namespace}],
    }
    installed.apply(*documents("rbac/plan-roles"), binding, namespace=namespace)
    installed.apply(deployment(APP, 2, {"command": ["sleep", "infinity"]}), namespace=namespace)
    installed.await_available(namespace, APP)
    yield Site(installed, home, namespace, kubeconfig, approver, folder)
    installed.kubectl("delete", "deployment", APP, "-n", namespace)


@pytest.fixture(scope="module")
def site(installed: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_on(installed, tmp_path_factory.mktemp("controllers")) as made:
        yield made


@pytest.fixture(scope="module")
def replicas(site: Site) -> Iterator[list[Controller]]:
    """Two replicas, the leader first; a test that kills one puts another in its place."""
    running = [site.start("one"), site.start("two")]
    yield running
    for one in running:
        assert one.process.stop(300.0) == 0, one.process.log_tail()
        assert one.log[-1]["message"] == "controller ends"
        assert not [line for line in one.log if line["level"] == "ERROR"], "kopf watches, and nothing has failed"


def await_leader(site: Site, replicas: Sequence[Controller]) -> Controller:
    def leader() -> Controller | None:
        return next((one for one in replicas if one.ready() == 200 and one.leads()), None)

    return site.cluster.wait_until("a leader", leader, WAIT_S)


@pytest.fixture(autouse=True)
def _two_pods(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "site" in request.fixturenames:
        request.getfixturevalue("site").back_to_two()


def up() -> tuple[Step, ...]:
    return (
        StartConsumers(2, 4, LIMIT_S, MOVES, undo="set 2"),
        AwaitReady(4, LIMIT_S),
        AwaitSettled(4, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def asking() -> tuple[Step, ...]:
    return (*up()[:2], PauseForPerson("Do the new ones deliver?", 600))


# First those with a single replica: it has to lead.


def test_an_api_server_that_is_away_makes_it_unready_and_it_goes_on_afterwards(site: Site) -> None:
    with Relay(site.cluster.server) as relay:
        token = token_of(site.kubeconfig)
        kubeconfig = site.cluster.kubeconfig_for(token, f"{site.home}-cut", server=relay.server)
        alone = site.start("cut", kubeconfig=kubeconfig)
        try:
            await_leader(site, [alone])
            site.approve("cut", site.plan("cut", asking()))
            site.await_step("cut", PAUSES)
            relay.cut()
            site.cluster.wait_until("its being unready", lambda: alone.ready() == 503, WAIT_S)
            assert alone.get("health_port", "/healthz")[0] == 200, "a new process would not help"
            assert "no good answer" in alone.get("health_port", "/readyz")[1]
            site.cluster.wait_until("its end as leader", lambda: not alone.leads(), WAIT_S)
            site.cluster.kubectl("annotate", "crp", "cut", "-n", site.namespace, "consumerplanner.dev/answer=3")
            relay.mend()
            site.await_phase("cut", "Succeeded")
            site.cluster.wait_until("its being ready", lambda: alone.ready() == 200, WAIT_S)
            assert alone.metric('consumerplanner_api_errors_total{part="election"}')
        finally:
            assert alone.process.stop(300.0) == 0, alone.process.log_tail()


def test_without_brokers_it_waits_and_no_secret_is_in_the_most_talkative_log(site: Site) -> None:
    """The real way to the group, to brokers that are away, with credentials; pods have a password, too."""
    password = "p4ssw0rd-1n-4-p0d"
    policy = with_account(site, "127.0.0.1:1")
    environment = [{"name": "PASSWORD", "value": password}]
    site.cluster.apply(
        deployment(APP, 2, {"command": ["sleep", "infinity"], "env": environment}), namespace=site.namespace
    )
    site.cluster.await_available(site.namespace, APP)
    site.cluster.wait_until("two pods", lambda: len(site.pods()) == 2, WAIT_S)
    made = site.plan("blind", up(), policy_digest=parse_policy(json.dumps(policy), "policy").digest)
    places = ("--namespace", site.namespace, "--leader-namespace", site.home, "--log-level", "debug")
    hosts = {site.namespace: ["127.0.0.1:1"]}
    alone = Controller("blind", site.folder, site.kubeconfig, *places, module="planner.controller", secret_hosts=hosts)
    try:
        await_leader(site, [alone])
        site.approve("blind", made)
        site.cluster.wait_until(
            "a held plan", lambda: "127.0.0.1:1" in (site.status("blind").get("held") or ""), WAIT_S
        )
        assert alone.ready() == 200, "a broker that is away is no reason for a new process"
        site.cluster.kubectl("delete", "crp", "blind", "-n", site.namespace, "--timeout=600s")
        site.cluster.kubectl("delete", "csp", "billing", "-n", site.namespace)
    finally:
        assert alone.process.stop(300.0) == 0, alone.process.log_tail()
    text = alone.process.log.read_text()
    assert '"DEBUG"' in text
    for hidden in (SECRET, password, token_of(site.kubeconfig)):
        assert hidden not in text
    assert datetime.now(UTC) < made.valid_until


@contextmanager
def rogue_server() -> Iterator[tuple[str, bytearray]]:
    """Give the address of a server that answers nothing, and what it was sent."""
    received = bytearray()

    class Listener(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while content := self.request.recv(65_536):
                received.extend(content)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Listener) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", received
        server.shutdown()


def test_a_brokers_account_is_sent_to_no_server_that_only_the_policy_names(site: Site) -> None:
    """The author of a policy has the namespace's account sent to a server of his own, which prints what it gets."""
    site.back_to_two()
    with rogue_server() as (address, received):
        policy = with_account(site, address)
        digest = parse_policy(json.dumps(policy), "policy").digest
        places = ("--namespace", site.namespace, "--leader-namespace", site.home)

        def ask(name: str, hosts: dict[str, list[str]], is_so: Callable[[], bool]) -> None:
            made = site.plan(name, up(), policy_digest=digest)
            alone = Controller(
                name, site.folder, site.kubeconfig, *places, module="planner.controller", secret_hosts=hosts
            )
            try:
                await_leader(site, [alone])
                site.approve(name, made)
                site.cluster.wait_until("what comes of it", is_so, WAIT_S)
                site.cluster.kubectl("delete", "crp", name, "-n", site.namespace, "--timeout=600s")
            finally:
                assert alone.process.stop(300.0) == 0, alone.process.log_tail()

        refusal = f"would be sent to {address}, and PLANNER_SECRET_HOSTS lists 10.0.0.5:9876 for it"
        ask("rogue", {site.namespace: ["10.0.0.5:9876"]}, lambda: refusal in str(site.status("rogue")))
        assert not received
        ask("listed", {site.namespace: [address]}, lambda: f"{SECRET}-access".encode() in received)
    site.cluster.kubectl("delete", "csp", "billing", "-n", site.namespace)


def with_account(site: Site, name_server: str) -> Json:
    """Apply and return a policy whose group's name server takes the namespace's account."""
    credentials = site.folder / site.namespace / "credentials.yaml"
    credentials.parent.mkdir(exist_ok=True)
    credentials.write_text(f"accessKey: {SECRET}-access\nsecretKey: {SECRET}\n")
    source = {"system": "rocketmq", "nameServers": [name_server], "cluster": "DefaultCluster", "group": "billing"}
    policy = {
        "apiVersion": "consumerplanner.dev/v1alpha1",
        "kind": "ConsumerScalingPolicy",
        "metadata": {"name": "billing", "namespace": site.namespace},
        "spec": {
            "source": {**source, "credentialsFile": str(credentials)},
            "scaleTargetRef": {"name": APP},
            "minReplicas": 1,
            "maxReplicas": 8,
        },
    }
    site.cluster.apply(policy, namespace=site.namespace)
    return policy


@contextmanager
def role_without(site: Site, group: str, resource: str, verb: str) -> Iterator[None]:
    """Take one right from the controller's role in the plans' namespace, and give it back."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{site.namespace}/roles/consumer-planner-executor"
    whole = site.cluster.rest.get(path)["rules"]
    less = [
        {**rule, "verbs": [one for one in rule["verbs"] if one != verb]}
        if rule["apiGroups"] == [group] and resource in rule["resources"]
        else rule
        for rule in whole
    ]
    assert less != whole
    site.cluster.rest.patch(path, {"rules": less}, MERGE)
    try:
        yield
    finally:
        site.cluster.rest.patch(path, {"rules": whole}, MERGE)


def await_held(site: Site, name: str, told: str) -> None:
    why = f"the controller may not {told} in namespace {site.namespace}: grant k8s/rbac/executor.yaml"
    site.cluster.wait_until("its being told", lambda: site.status(name).get("held") == why, WAIT_S)
    site.cluster.wait_until("its event", lambda: why in site.events(name).get("Forbidden", ()), WAIT_S)


def test_a_right_that_is_missing_is_named_at_the_plan_which_goes_on_once_it_is_there(site: Site) -> None:
    alone = site.start("less")
    try:
        with role_without(site, "apps", "deployments", "patch"):
            await_leader(site, [alone])
            site.approve("less", site.plan("less", asking()))
            await_held(site, "less", "patch deployments (apps)")
            assert site.status("less")["phase"] == "Approved"
            assert site.deployment()["spec"]["replicas"] == 2
        site.await_step("less", PAUSES)
        assert "may not" not in (site.status("less").get("held") or "")
        with role_without(site, "coordination.k8s.io", "leases", "update"):
            await_held(site, "less", "update leases (coordination.k8s.io)")
            assert site.status("less")["phase"] == "Running"
        site.cluster.kubectl("annotate", "crp", "less", "-n", site.namespace, "consumerplanner.dev/answer=3")
        site.await_phase("less", "Succeeded")
    finally:
        assert alone.process.stop(300.0) == 0, alone.process.log_tail()


# From here on two replicas run.


def test_two_lines_are_a_rollout_and_it_is_known_who_approved(site: Site, replicas: list[Controller]) -> None:
    leader = await_leader(site, replicas)
    made = site.plan("two-lines", up())
    site.cluster.wait_until(
        "its being seen", lambda: site.status("two-lines").get("held") == "waits for approval", WAIT_S
    )
    assert site.deployment()["spec"]["replicas"] == 2
    site.approve("two-lines", made)
    site.cluster.kubectl(
        "wait", "crp/two-lines", "-n", site.namespace, "--for=condition=Complete", f"--timeout={WAIT_S:.0f}s"
    )
    status = site.await_phase("two-lines", "Succeeded")
    assert (status["kind"], status["progress"]) == ("scale", "4/4")
    assert status["approval"]["by"] == f"system:serviceaccount:{site.namespace}:anna"
    assert site.deployment()["spec"]["replicas"] == 4
    assert "consumerplanner.dev/rollout" not in site.deployment()["metadata"]["annotations"]
    told = {"Approved", "StepBegun", "StepDone", "Succeeded"}  # the last one a moment after the status
    site.cluster.wait_until("its events", lambda: told <= site.events("two-lines").keys(), WAIT_S)
    of_plan = {f"plan two-lines: {one}" for one in site.events("two-lines")["StepBegun"]}
    assert len(of_plan) == len(up()) - 1, "to compare with the forecast begins nothing"
    site.cluster.wait_until("the Deployment's", lambda: of_plan <= site.events(APP).get("StepBegun", set()), WAIT_S)
    assert "plan two-lines: " in site.cluster.kubectl("describe", "deployment", APP, "-n", site.namespace)

    def is_let_go() -> bool:
        return not (site.found("two-lines") or {})["metadata"].get("finalizers")

    site.cluster.wait_until("the finalizer's end", is_let_go, WAIT_S)
    meta = (site.found("two-lines") or {})["metadata"]
    ours = {"digest", "approve", "approved-by", "planned-by"}
    kept = {name for name in meta["annotations"] if not name.startswith("kubectl.")}
    assert kept == {f"consumerplanner.dev/{name}" for name in ours}, "kopf must leave nothing of its own"
    steps = 'consumerplanner_step_duration_seconds_count{kind="startConsumers"}'
    site.cluster.wait_until("its counting", lambda: leader.metric(steps) == 1.0, WAIT_S)
    figure = 'consumerplanner_forecast_figures_total{figure="moved queues",fit="inside"}'
    site.cluster.wait_until("the figure's counting", lambda: leader.metric(figure) == 1.0, WAIT_S)
    there = site.cluster.rest.get(
        f"/apis/consumerplanner.dev/v1alpha1/namespaces/{site.namespace}/consumerrolloutplans"
    )
    succeeded = [one for one in there["items"] if one["status"]["phase"] == "Succeeded"]
    gauge = f'consumerplanner_plans{{namespace="{site.namespace}",phase="Succeeded"}}'
    site.cluster.wait_until("their count", lambda: leader.metric(gauge) == len(succeeded), WAIT_S)
    assert [one.metric(steps) for one in replicas if one is not leader] == [None]
    for name in ("one", "two"):
        site.await_kept(name)


def test_a_plan_goes_a_while_after_its_end_and_its_record_stays(site: Site, replicas: list[Controller]) -> None:
    await_leader(site, replicas)
    made = site.plan("passing", up(), ttl_seconds_after_finished=LEAST_TTL_S)
    site.approve("passing", made)
    judged = site.await_phase("passing", "Succeeded")["verdict"]["judgedAt"]
    site.cluster.wait_until("its removal", lambda: site.found("passing") is None, WAIT_S)
    assert judged in site.kept("one") | site.kept("two")


def test_planner_apply_follows_while_the_controller_drives(site: Site, replicas: list[Controller]) -> None:
    await_leader(site, replicas)
    made = site.plan("followed", asking())
    site.approve("followed", made)
    site.await_step("followed", PAUSES)
    path = site.folder / "followed.yaml"
    path.write_text(PLAN.text(PLAN.document(made, "followed", site.namespace)), encoding="utf-8")
    words = ["-m", "tests.pod_groups", "apply", str(path), "-o", "json", "--kubeconfig", str(site.cluster.kubeconfig)]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, *words], cwd=root, stdout=pipe, stderr=pipe, text=True) as following:
        try:
            site.cluster.kubectl("annotate", "crp", "followed", "-n", site.namespace, "consumerplanner.dev/answer=3")
            said, wrong = following.communicate(timeout=WAIT_S)
        finally:
            following.kill()
    assert following.returncode == 0, wrong
    assert json.loads(said)["status"]["phase"] == "Succeeded"


def test_a_plan_that_is_deleted_in_the_middle_is_undone_and_gone(site: Site, replicas: list[Controller]) -> None:
    await_leader(site, replicas)
    site.approve("deleted", site.plan("deleted", asking()))
    site.await_step("deleted", PAUSES)
    site.cluster.kubectl("delete", "crp", "deleted", "-n", site.namespace, "--timeout=600s")
    assert site.found("deleted") is None
    assert site.deployment()["spec"]["replicas"] == 2
    assert "consumerplanner.dev/rollout" not in site.deployment()["metadata"]["annotations"]
    # An event comes a moment after what it tells of.
    site.cluster.wait_until("its event", lambda: "RolledBack" in site.events("deleted"), WAIT_S)


def test_the_criteria_approve_only_where_the_controller_may(site: Site, replicas: list[Controller]) -> None:
    await_leader(site, replicas)
    policy = {
        "apiVersion": "consumerplanner.dev/v1alpha1",
        "kind": "ConsumerScalingPolicy",
        "metadata": {"name": "billing", "namespace": site.namespace},
        "spec": {
            "source": {
                "system": GROUP.system,
                "nameServers": ["127.0.0.1:1"],
                "cluster": GROUP.cluster,
                "group": GROUP.group,
            },
            "scaleTargetRef": {"name": APP},
            "minReplicas": 1,
            "maxReplicas": 8,
            "rollout": {"validForSeconds": 1_800},
            "approval": {"mode": "Auto", "criteria": {"mostMovedQueues": 8}},
        },
    }
    site.cluster.apply(policy, namespace=site.namespace)
    digest = parse_policy(json.dumps(policy), "policy").digest
    site.plan("by-rule", up(), policy_digest=digest)

    def is_told() -> bool:
        return any("bind consumer-planner-auto" in one for one in site.events("by-rule").get("LeftToAPerson", ()))

    site.cluster.wait_until("its being told", is_told, WAIT_S)
    site.await_phase("by-rule", "Pending")  # the status is written after the event
    grant(site.cluster, site.home, site.namespace, "auto-approver")
    status = site.await_phase("by-rule", "Succeeded")
    assert status["approval"]["by"] == f"system:serviceaccount:{site.home}:{ACCOUNT}"
    site.cluster.kubectl("delete", "rolebinding", "consumer-planner-auto", "-n", site.namespace)
    site.cluster.kubectl("delete", "csp", "billing", "-n", site.namespace)


def test_when_the_leader_is_killed_the_other_finishes(site: Site, replicas: list[Controller]) -> None:
    leader = await_leader(site, replicas)
    site.approve("orphaned", site.plan("orphaned", asking()))
    site.await_step("orphaned", PAUSES)
    executor = site.status("orphaned")["executor"]
    leader.process.kill()
    replicas.remove(leader)
    (other,) = replicas
    assert not other.leads(), "it stands by until the lease has run out"
    site.cluster.kubectl("annotate", "crp", "orphaned", "-n", site.namespace, "consumerplanner.dev/answer=3")
    status = site.await_phase("orphaned", "Succeeded")
    assert status["executor"] != executor
    site.cluster.wait_until("its lead", other.leads, WAIT_S)  # who could not renew for a while stands by that long
    assert site.deployment()["spec"]["replicas"] == 4
    site.await_kept(other.process.name)


@pytest.mark.usefixtures("replicas")
def test_a_replica_with_an_empty_folder_keeps_what_the_plans_still_tell(site: Site) -> None:
    judged = site.judged()
    assert judged
    late = site.start("late")
    try:
        site.await_kept("late")
    finally:
        assert late.process.stop(300.0) == 0, late.process.log_tail()
    files = sorted(site.data("late").rglob("*.json"))
    before = {path: path.read_bytes() for path in files}
    again = site.start("again", "--data", str(site.data("late")))
    try:
        site.cluster.wait_until("its being heard", lambda: len(again.logged("record kept")) >= len(judged), WAIT_S)
    finally:
        assert again.process.stop(300.0) == 0, again.process.log_tail()
    assert {path: path.read_bytes() for path in sorted(site.data("late").rglob("*.json"))} == before
