"""Which pod is which member: every kind of evidence, and every way in which it does not tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.pods import Pod
from planner.workload import Evidence, MemberClues, join_members
from tests.unit.workload.builders import host_pod, member, pod

A, B = pod("app-1", "10.0.0.1"), pod("app-2", "10.0.0.2")


def one_link(pods: list[Pod], clues: MemberClues, label: str | None = None) -> tuple[str, tuple[Evidence, ...]]:
    join = join_members(pods, [clues], label)
    assert join.member_problems == ()
    (link,) = join.links
    return link.pod.name, link.by


def one_problem(pods: list[Pod], clues: MemberClues, label: str | None = None) -> str:
    join = join_members(pods, [clues], label)
    assert join.links == ()
    assert join.members_without_pod == (clues.identity,)
    (problem,) = join.member_problems
    return problem


def test_by_address() -> None:
    assert one_link([A, B], member("m", "10.0.0.2")) == ("app-2", (Evidence.ADDRESS,))


def test_by_each_address_of_a_pod_with_two() -> None:
    both = pod("app-1", addresses=("10.0.0.1", "fd00::1"))
    assert one_link([both, B], member("m", "fd00::1")) == ("app-1", (Evidence.ADDRESS,))


@pytest.mark.parametrize("name", ["app-2", "app-2-thread-1", "app-2@x", "app-2#7", "app-2_1"])
def test_by_name_or_what_goes_on_after_it(name: str) -> None:
    assert one_link([A, B], member("m", names=(name,))) == ("app-2", (Evidence.NAME,))


def test_a_longer_number_is_no_continuation() -> None:
    assert "runs in none of the pods looked at" in one_problem([A, B], member("m", names=("app-10",)))


def test_an_exact_name_beats_one_that_goes_on() -> None:
    pods = [pod("app-1"), pod("app-1-0")]
    assert one_link(pods, member("m", names=("app-1-0",)))[0] == "app-1-0"


def test_two_pods_that_a_name_goes_on_after_are_ambiguous() -> None:
    pods = [pod("app-1"), pod("app-1-0")]
    assert "could be any of the pods app-1, app-1-0" in one_problem(pods, member("m", names=("app-1-0-x",)))


def test_a_default_client_id_is_no_proof_of_a_bare_pod_of_that_name() -> None:
    bare = pod("consumer", workload=None)
    assert "none of the pods" in one_problem([bare], member("m", names=("consumer-shop-1",)))
    assert one_link([bare], member("m", names=("consumer",)))[0] == "consumer"


def test_by_label() -> None:
    labelled = pod("app-3", labels=(("client", "c7"),))
    assert one_link([A, labelled], member("m", names=("c7",)), "client") == ("app-3", (Evidence.LABEL,))
    assert "none of the pods" in one_problem([A, labelled], member("m", names=("c7",)))


def test_pods_on_the_hosts_network_share_an_address_and_are_never_guessed() -> None:
    pods = [host_pod("app-1"), host_pod("app-2")]
    assert "could be any of the pods app-1, app-2" in one_problem(pods, member("m", "192.168.0.1"))


def test_a_name_tells_pods_on_the_hosts_network_apart() -> None:
    pods = [host_pod("app-1"), host_pod("app-2")]
    clues = member("m", "192.168.0.1", names=("app-2",))
    assert one_link(pods, clues) == ("app-2", (Evidence.NAME,))


def test_the_only_pod_on_a_nodes_network_is_told_by_weak_evidence() -> None:
    assert one_link([host_pod("app-1")], member("m", "192.168.0.1")) == ("app-1", (Evidence.NODE_ADDRESS,))


def test_a_nodes_address_tells_no_pod_that_has_an_address_of_its_own() -> None:
    told = one_problem([A], member("m", "192.168.0.1"))
    assert "comes from address 192.168.0.1 of node n1, as all pods there do behind address translation" in told
    assert "give each client its pod's name" in told


def test_a_nodes_address_narrows_what_a_label_leaves_open() -> None:
    there = pod("app-1", labels=(("client", "c7"),))
    elsewhere = pod("app-2", labels=(("client", "c7"),), host_address="192.168.0.2", node="n2")
    clues = member("m", "192.168.0.2", names=("c7",))
    assert one_link([there, elsewhere], clues, "client") == ("app-2", (Evidence.LABEL, Evidence.NODE_ADDRESS))


def test_a_gateways_address_does_not_contradict_a_name() -> None:
    gateway = host_pod("proxy", host_address="192.168.0.9", addresses=("192.168.0.9",))
    assert one_link([A, gateway], member("m", "192.168.0.9", names=("app-1",)))[0] == "app-1"


def test_name_and_address_of_different_pods_are_a_contradiction() -> None:
    told = one_problem([A, B], member("m", "10.0.0.1", names=("app-2",)))
    assert "contradicts itself: its name app-2 says app-2; its address 10.0.0.1 says app-1" in told


def test_two_addresses_of_different_pods_are_a_contradiction() -> None:
    assert "contradicts itself" in one_problem([A, B], member("m", "10.0.0.1", "10.0.0.2"))


def test_a_loopback_connection_beside_a_pods_address_counts_for_nothing() -> None:
    assert one_link([A, B], member("m", "10.0.0.1", "127.0.0.1"))[0] == "app-1"


def test_an_address_that_two_pods_claim_is_ambiguous() -> None:
    ending = pod("app-0", "10.0.0.1", is_ending=True)
    assert "could be any of the pods app-0, app-1" in one_problem([A, ending], member("m", "10.0.0.1"))


def test_a_finished_pods_address_may_be_another_ones() -> None:
    done = pod("app-0", "10.0.0.1", phase="Succeeded")
    join = join_members([A, done], [member("m", "10.0.0.1")])
    assert join.pod_of == {"m": A}
    assert join.problems == ()


def test_members_of_one_pod_are_all_linked_and_a_pod_with_fewer_than_another_is_named() -> None:
    two = [member("m1", "10.0.0.1"), member("m2", "10.0.0.1")]
    join = join_members([A], two)
    assert join.pod_of == {"m1": A, "m2": A}
    assert join.pod_problems == ()
    uneven = join_members([A, B], [*two, member("m3", "10.0.0.2")])
    assert uneven.pod_problems == (
        "pod app-2 runs 1 of the 2 members that another pod runs, m3: look for a listener that has ended or has not "
        "yet joined",
    )


def test_a_pod_without_a_member_is_named_with_its_state() -> None:
    starting = pod("app-2", phase="Pending", is_ready=False)
    join = join_members([A, starting], [member("m", "10.0.0.1")])
    assert join.pods_without_member == (starting,)
    (problem,) = join.pod_problems
    assert problem == "pod app-2 (Pending, not ready) runs no member of the group that could be recognised"


def test_an_ending_pod_without_a_member_is_as_it_should_be() -> None:
    join = join_members([A, pod("app-2", "10.0.0.2", is_ending=True)], [member("m", "10.0.0.1")])
    assert join.problems == ()


def test_nothing_joins_nothing() -> None:
    join = join_members([], [])
    assert (join.links, join.problems) == ((), ())
    assert "shows neither address nor name" in one_problem([], member("m"))


names = st.sampled_from(["app-1", "app-2", "app-1-0", "other", "app-1-x"])
addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "192.168.0.1", "192.168.0.2", "127.0.0.1"])
some_pods = st.lists(
    st.builds(
        lambda name, own, node, host: pod(
            name, node if host else own, host_address=node, node=f"node-of-{node}", uses_host_network=host
        ),
        names,
        addresses,
        st.sampled_from(["192.168.0.1", "192.168.0.2"]),
        st.booleans(),
    ),
    max_size=5,
    unique_by=lambda one: one.name,
)
some_members = st.lists(
    st.builds(
        MemberClues,
        st.uuids().map(str),
        st.lists(addresses, max_size=2).map(tuple),
        st.lists(names, max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(some_pods, some_members, st.randoms(use_true_random=False))
def test_every_member_is_linked_or_named_whatever_the_order(
    pods: list[Pod], members: list[MemberClues], random
) -> None:  # type: ignore[no-untyped-def]
    join = join_members(pods, members)
    linked = {link.member for link in join.links}
    assert linked | set(join.members_without_pod) == {one.identity for one in members}
    assert not linked & set(join.members_without_pod)
    assert len(join.member_problems) == len(join.members_without_pod)
    shuffled = list(pods)
    random.shuffle(shuffled)
    assert join_members(shuffled, members) == join


@given(some_pods, some_members)
def test_a_link_rests_on_something_that_no_other_pod_has(pods: list[Pod], members: list[MemberClues]) -> None:
    for link in join_members(pods, members).links:
        clues = next(one for one in members if one.identity == link.member)
        shown = {link.pod.name, *link.pod.addresses} & {*clues.names, *clues.addresses}
        goes_on = any(name.startswith(f"{link.pod.name}-") for name in clues.names)
        assert shown or goes_on
        if link.by == (Evidence.ADDRESS,):
            twins = [one for one in pods if set(one.addresses) & set(link.pod.addresses) and not one.uses_host_network]
            assert twins == [link.pod]
