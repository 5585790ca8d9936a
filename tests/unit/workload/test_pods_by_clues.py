"""Which members may run in one pod, by what they show of themselves alone."""

from planner.workload import pods_by_clues
from tests.unit.workload.builders import member


def shared(*members: object) -> dict[str, tuple[str, ...]]:
    return {one.by: one.members for one in pods_by_clues(members)}  # type: ignore[arg-type]


def test_members_of_one_address_may_be_of_one_pod() -> None:
    assert shared(member("a", "10.0.0.1"), member("b", "10.0.0.1"), member("c", "10.0.0.2")) == {
        "address 10.0.0.1": ("a", "b"),
        "address 10.0.0.2": ("c",),
    }


def test_client_ids_that_begin_with_a_pods_name_tell_the_pod_whatever_the_address() -> None:
    pod = "shop-6f7d9c5b8-4kqzt"
    (first, second) = pods_by_clues(
        [
            member("a", "192.168.0.1", names=(f"{pod}-0",)),
            member("b", "192.168.0.1", names=(f"{pod}-1",)),
            member("c", "192.168.0.1", names=("shop-6f7d9c5b8-9wmxr-0",)),
        ]
    )
    assert (first.by, first.members, first.is_pod) == (f"pod {pod}", ("a", "b"), True)
    assert second.members == ("c",)


def test_processes_on_loopback_are_one_member_each() -> None:
    ids = ("127.0.0.1@11#5", "127.0.0.1@12#6", "worker", "worker")
    made = [member(f"m{number}", "127.0.0.1", names=(name.rpartition("@")[2],)) for number, name in enumerate(ids)]
    assert [one.members for one in pods_by_clues(made)] == [("m0",), ("m1",), ("m2",), ("m3",)]


def test_one_process_on_loopback_shows_by_its_id_or_by_its_numbering() -> None:
    by_id = [member(f"m{number}", "127.0.0.1", names=(f"77#{number}",)) for number in range(3)]
    assert [one.members for one in pods_by_clues(by_id)] == [("m0", "m1", "m2")]
    spring = [member(f"m{number}", "127.0.0.1", names=(f"consumer-orders-{number}",)) for number in range(3)]
    assert [one.members for one in pods_by_clues(spring)] == [("m0", "m1", "m2")]
    thread = "shop-5a8e-StreamThread-{}-consumer"
    streams = [member(f"m{number}", "127.0.0.1", names=(thread.format(number),)) for number in range(2)]
    assert [one.members for one in pods_by_clues(streams)] == [("m0", "m1")]


def test_a_meshes_address_is_no_loopback_of_the_brokers_host() -> None:
    made = [member(f"m{number}", "127.0.0.6", names=(f"c{number}x",)) for number in range(2)]
    assert [one.members for one in pods_by_clues(made)] == [("m0", "m1")]
