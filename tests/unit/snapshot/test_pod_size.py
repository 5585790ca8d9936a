"""How many members each pod runs: seen, stated, or unknown with the field that ends it."""

from dataclasses import replace

import pytest

from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.model.deployments import Deployment
from planner.model.membership import KafkaMember
from planner.snapshot.pods import PodSize, pod_size
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.today import differences, under_policy
from planner.workload import clues_of, join_members
from tests.builders import OBJECTIVE, podded
from tests.unit.workload.builders import deployment, pod


def members(*places: tuple[str, str]) -> tuple[KafkaMember, ...]:
    """Return a member for each address and client id."""
    return tuple(KafkaMember(f"{name}-{number}-uuid", name, host) for number, (host, name) in enumerate(places))


def on(address: str, count: int) -> list[tuple[str, str]]:
    return [(address, f"orders-{number}") for number in range(count)]


def size(places: list[tuple[str, str]], stated: int | None = None, served_by: Deployment | None = None) -> PodSize:
    made = members(*places)
    clues = list(map(clues_of, made))
    read = served_by.pods if served_by else None
    pods = None if read is None else {m: found.name for m, found in join_members(read, clues).pod_of.items()}
    return pod_size(clues, served_by, pods, stated)


THREE = deployment(pods=tuple(pod(f"app-{number}", f"10.0.0.{number}") for number in (1, 2, 3)))
FOUR_EACH = [*on("10.0.0.1", 4), *on("10.0.0.2", 4), *on("10.0.0.3", 4)]


def test_pods_that_were_read_show_how_many_each_runs() -> None:
    assert size(FOUR_EACH, served_by=THREE) == PodSize(4, "3 pods run 4 members each")
    assert size([*on("10.0.0.1", 1), *on("10.0.0.2", 1), *on("10.0.0.3", 1)], served_by=THREE).members == 1


def test_a_pod_with_a_listener_fewer_is_named() -> None:
    found = size(FOUR_EACH[:-1], served_by=THREE)
    assert (found.members, found.uneven) == (4, ("app-3",))
    assert "app-3 runs 3, 2 others run 4" in found.source


def test_a_statement_that_the_pods_contradict_is_no_size() -> None:
    found = size(FOUR_EACH, stated=3, served_by=THREE)
    assert found.uneven == ("app-1", "app-2", "app-3")
    assert "spec.membersPerPod says 3" in found.source


def test_members_on_one_address_without_kubernetes_are_unknown_until_somebody_says() -> None:
    found = size(FOUR_EACH)
    assert found.members is None
    assert "4 members share address 10.0.0.1" in found.source
    assert "state spec.membersPerPod, 4 for example" in found.source
    assert size(FOUR_EACH, stated=4) == PodSize(4, "the policy states 4 members a pod")
    assert size([*on("10.0.0.1", 1), *on("10.0.0.2", 1)]).members == 1


def test_stated_members_that_are_no_whole_number_of_pods_are_uneven() -> None:
    found = size(FOUR_EACH[:-1], stated=4)
    assert found.uneven
    assert "11 members are no whole number of pods: 3 pods would run 12" in found.source


def test_members_whose_pods_cannot_be_told_need_a_statement() -> None:
    translated = [("192.168.9.9", f"c{number}") for number in range(12)]
    found = size(translated, served_by=THREE)
    assert found.members is None
    assert "asks for 3 pods while the group has 12 members" in found.source
    assert size(translated, stated=4, served_by=THREE).members == 4
    assert size(translated[:3], served_by=THREE).members == 1


def test_client_ids_that_begin_with_pod_names_show_it_without_kubernetes() -> None:
    pods = ("shop-6f7d9c5b8-4kqzt", "shop-6f7d9c5b8-9wmxr")
    named = [("192.168.0.1", f"{name}-{number}") for name in pods for number in range(3)]
    assert size(named).members == 3
    assert size(named[:-1]).uneven == ("pod shop-6f7d9c5b8-9wmxr",)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        (
            {"members_per_pod": None, "members_per_pod_source": "2 members share address 10.1.0.10"},
            HoldCause.UNKNOWN_PODS,
        ),
        ({"uneven_pods": ("pod-a",), "members_per_pod_source": "pod-a runs 3"}, HoldCause.UNEVEN_PODS),
        ({}, None),
    ],
)
def test_what_is_not_known_of_pods_holds(changes: dict[str, object], cause: HoldCause | None) -> None:
    taken = replace(podded(3, 4, 24), **changes)  # type: ignore[arg-type]
    reason = first_reason_to_hold(taken, OBJECTIVE, taken.at)
    assert (reason and reason[0]) == cause
    if reason:
        assert str(changes["members_per_pod_source"]) in reason[1]


def test_a_policy_of_today_that_says_it_counts_for_an_older_snapshot() -> None:
    blind = replace(podded(3, 4, 24), pods=(), members_per_pod=1, members_per_pod_source="")
    assert under_policy(blind, SnapshotSettings()).members_per_pod is None, "a file that did not write it down"
    said = under_policy(blind, SnapshotSettings(members_per_pod=4))
    assert (said.members_per_pod, said.count) == (4, 3)
    assert "members a pod: 4 (the policy states 4 members a pod), the snapshot had 1" in list(differences(blind, said))
    seen = podded(3, 4, 24)
    assert under_policy(seen, SnapshotSettings()) == replace(seen, capacity=None)
    assert under_policy(seen, SnapshotSettings(members_per_pod=2)).uneven_pods
