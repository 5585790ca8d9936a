"""Which Deployment serves a group."""

from planner.model.pods import Workload
from planner.workload import check_named, serving
from tests.unit.workload.builders import SHOP, host_pod, member, pod

OTHER = Workload("Deployment", "shop", "other")
SET = Workload("StatefulSet", "shop", "set")


def test_the_one_deployment_with_all_members() -> None:
    pods = [pod("app-1", "10.0.0.1"), pod("app-2", "10.0.0.2"), pod("web-1", "10.0.0.9", workload=OTHER)]
    found = serving(pods, [member("m1", "10.0.0.1"), member("m2", "10.0.0.2")])
    assert found.deployment == SHOP
    assert found.members == ((SHOP, ("m1", "m2")),)
    assert found.problems == ()
    assert check_named(SHOP, found) is None


def test_the_named_one_runs_no_member() -> None:
    found = serving([pod("app-1", "10.0.0.1")], [member("m1", "10.0.0.1")])
    assert check_named(OTHER, found) == (
        "Deployment shop/other runs no member of the group; these do: Deployment shop/app (1 members): "
        "correct the policy's scaleTargetRef"
    )


def test_pods_of_the_deployment_without_a_member_are_named_those_of_others_are_not() -> None:
    pods = [pod("app-1", "10.0.0.1"), pod("app-2", "10.0.0.2"), pod("web-1", "10.0.0.9", workload=OTHER)]
    found = serving(pods, [member("m1", "10.0.0.1")])
    assert found.join.pods_without_member == (pods[1],)
    assert len(found.problems) == 1


def test_two_deployments_are_named_with_their_shares_most_first() -> None:
    pods = [pod("old-1", "10.0.0.1", workload=OTHER), pod("app-1", "10.0.0.2"), pod("app-2", "10.0.0.3")]
    found = serving(pods, [member(f"m{last}", f"10.0.0.{last}") for last in (1, 2, 3)])
    assert found.deployment is None
    assert [workload for workload, _ in found.members] == [SHOP, OTHER]
    assert (
        "served by 2 workloads: Deployment shop/app (2 members), Deployment shop/other (1 members)" in found.problems[0]
    )
    assert check_named(OTHER, found) is None


def test_a_stateful_set_serves_and_a_job_does_not() -> None:
    found = serving([pod("set-0", "10.0.0.1", workload=SET)], [member("m", "10.0.0.1")])
    assert (found.deployment, found.problems) == (SET, ())
    job = Workload("Job", "shop", "once")
    found = serving([pod("once-x", "10.0.0.1", workload=job)], [member("m", "10.0.0.1")])
    assert found.deployment is None
    assert found.problems == (
        "1 members run in pods of Job shop/once: where its kind has a sub-resource scale, a policy may name it by "
        "apiVersion, kind and name in scaleTargetRef",
    )


def test_a_pod_that_nobody_controls_is_reached_by_no_change_of_replicas() -> None:
    found = serving([pod("lonely", "10.0.0.1", workload=None)], [member("m", "10.0.0.1")])
    assert found.deployment is None
    assert "member m runs in pod shop/lonely, which nothing controls" in found.problems[0]
    assert found.join.members_without_pod == ()


def test_a_nodes_address_is_no_evidence_for_a_deployment() -> None:
    found = serving([host_pod("app-1")], [member("m", "192.168.0.1")])
    assert found.members == ()
    assert found.deployment is None
    assert found.join.members_without_pod == ("m",)
    assert "192.168.0.1" in found.problems[0]
    assert "no member of the group was found in a pod of Deployment shop/app" in (check_named(SHOP, found) or "")


def test_a_group_without_members_contradicts_no_policy() -> None:
    found = serving([pod("app-1", "10.0.0.1")], [])
    assert (found.deployment, found.problems) == (None, ())
    assert check_named(SHOP, found) is None
