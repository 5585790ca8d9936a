"""Policies of a namespace: each by itself, bounded in what it may name, and of one digest with a file of the same."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.deployments import api as api_module
from planner.deployments.policies import list_policies
from planner.documents.policy import parse_policy
from planner.documents.tenant_files import FILES_VARIABLE, HOSTS_VARIABLE
from planner.errors import BadInputError
from planner.policies.cluster_reports import open_plans
from planner.policies.fleet import ClusterNamespace, keep_fleet, load_fleet, policy_location, read_fleet, read_origin
from planner.storage.layout import RunFolder
from tests.builders import AT
from tests.sample_builders import POLICY


def thing(name: str, group: str | None = None, change: Callable[[dict[str, Any]], object] = dict) -> dict[str, Any]:
    """Return a policy object as a server lists it, its spec changed in place."""
    found: dict[str, Any] = yaml.safe_load(POLICY)
    found["metadata"] = {"name": name, "uid": f"uid-{name}", "generation": 3, "resourceVersion": "1"}
    found["spec"]["source"]["group"] = group or name
    found["spec"]["scaleTargetRef"]["name"] = f"{name[:50].replace('.', '-')}-consumer"
    change(found["spec"])
    return found


class Server:
    """An API server that lists policies."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self._found = list(found)

    def policies(self, _namespace: str) -> list[dict[str, Any]]:
        return self._found

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        return None


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.delenv(FILES_VARIABLE, raising=False)
    monkeypatch.delenv(HOSTS_VARIABLE, raising=False)

    def serve(*found: dict[str, Any]) -> None:
        monkeypatch.setattr(api_module.RolloutApi, "connect", lambda *_: Server(*found))

    return serve


def test_a_place_is_a_folder_or_a_namespace() -> None:
    assert policy_location("policies") == Path("policies")
    assert policy_location("k8s://shop", Path("k")) == policy_location("k8s://shop/", Path("k"))
    assert str(policy_location("k8s://shop")) == "k8s://shop"
    for text in ("k8s://", "k8s://Shop", "k8s://a/b", "s3://bucket"):
        with pytest.raises(BadInputError, match="policies"):
            policy_location(text)


def test_the_same_policy_has_one_digest_in_a_file_and_in_a_cluster() -> None:
    (listed,) = list_policies(Server(thing("shop")), "default")  # type: ignore[arg-type]
    assert listed.policy is not None
    assert listed.policy.digest == parse_policy(POLICY, "p.yaml").digest
    assert parse_policy(listed.text, "kept.yaml") == listed.policy


def test_a_wrong_policy_stops_nobody_else_and_says_why(serve: Callable[..., None], tmp_path: Path) -> None:
    """Red when one object ends the run, or when one may name what is the planner's own."""
    serve(
        thing("fine"),
        thing("strategy", change=lambda spec: spec.update(strategy="AVG", strategyOptions={"x": 1})),
        thing("file", change=lambda spec: spec["source"].update(credentialsFile="/etc/passwd")),
        thing("connection", change=lambda spec: spec["source"].update(credentialsFile="airflow://bank")),
        thing("context", change=lambda spec: spec.update(kubernetes={"context": "other-cluster"})),
        thing("policies"),
        thing("origin.json"),
        thing("n" * 253),
        thing("twin-a", "twin"),
        thing("twin-b", "twin"),
    )
    fleet = read_fleet(ClusterNamespace("shop", tmp_path / "kubeconfig"))
    assert [policy.metadata.name for policy in fleet.policies] == ["fine"]
    assert fleet.policies[0].metadata.namespace == "shop", "an object says nothing of another namespace"
    for name, said in {
        "strategy": "spec.strategyOptions",
        "file": "names a file, and no folder was named",
        "connection": "names a connection of Airflow, which a policy of the cluster may not",
        "context": "field spec.kubernetes.context",
        "policies": "every run folder needs for itself",
        "origin.json": "every run folder needs for itself",
        "n" * 253: "takes 258 bytes as a file name",
        "twin-a": "policies twin-a and twin-b have the same group twin",
        "twin-b": "policies twin-a and twin-b have the same group twin",
    }.items():
        assert said in fleet.refused[name], name
    run = RunFolder(tmp_path / "run")
    keep_fleet(fleet, run, fleet.refused)
    origin = read_origin(run)
    assert origin == fleet.origin
    assert origin is not None
    assert origin.objects["fine"].generation == 3
    assert json.loads(run.problems.read_text()).keys() == fleet.refused.keys()


def test_a_namespace_without_a_policy_that_can_be_served_is_refused(serve: Callable[..., None]) -> None:
    serve()
    with pytest.raises(BadInputError, match="namespace shop holds no ConsumerScalingPolicy"):
        load_fleet(ClusterNamespace("shop"))
    serve(thing("policies"))
    assert load_fleet(ClusterNamespace("shop")).refused.keys() == {"policies"}
    with pytest.raises(BadInputError, match="rename the policy"):
        read_fleet(ClusterNamespace("shop"))


def plan(name: str, phase: str | None = None, minutes: int = 1, policy: str = "shop") -> dict[str, Any]:
    status = {} if phase is None else {"status": {"phase": phase}}
    valid_until = (AT + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    spec = {"policy": policy, "validUntil": valid_until}
    return {"metadata": {"name": name, "creationTimestamp": f"2026-11-21T10:00:0{name[-1]}Z"}, "spec": spec, **status}


def test_a_plan_is_open_until_its_time_is_over_and_while_it_is_carried_out() -> None:
    found = [
        plan("new-1"),
        plan("over-2", minutes=-1, policy="a"),
        plan("running-3", "Running", minutes=-1, policy="b"),
        plan("done-4", "Succeeded", policy="c"),
        plan("stuck-5", "Stuck", minutes=-1, policy="d"),
        plan("newer-6", "Approved"),
    ]
    assert dict(open_plans(found, AT)) == {"shop": "newer-6", "b": "running-3", "d": "stuck-5"}
    unreadable = {**plan("odd-7"), "spec": {"policy": "e", "validUntil": "2026-11-21T23:59:60Z"}}
    assert dict(open_plans([unreadable, plan("new-1")], AT)) == {"shop": "new-1"}
