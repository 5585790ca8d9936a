"""What members of both systems show of their pod."""

import pytest

from planner.model.membership import KafkaMember, Member
from planner.workload import MemberClues, clues_of


def rocketmq(client_id: str, address: str) -> MemberClues:
    return clues_of(Member(client_id, address, "JAVA", 513))


@pytest.mark.parametrize(
    ("client_id", "address", "addresses", "names"),
    [
        ("10.0.3.17@1#71833902193345", "10.0.3.17:52110", ("10.0.3.17",), ("1#71833902193345",)),
        ("10.0.3.17@app-7d4-x2@unitA@STREAM", "10.9.0.1:1", ("10.0.3.17", "10.9.0.1"), ("app-7d4-x2",)),
        ("fd00::7@c1", "[fd00::7]:52110", ("fd00::7",), ("c1",)),
        ("10.0.3.17@DEFAULT", "/10.0.3.17:52110", ("10.0.3.17",), ("DEFAULT",)),
        ("no-at-sign", "", ("no-at-sign",), ()),
    ],
)
def test_rocketmq_shows_its_own_ip_its_connection_and_its_instance_name(
    client_id: str, address: str, addresses: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert rocketmq(client_id, address) == MemberClues(client_id, addresses, names)


def test_kafka_shows_its_connection_client_id_and_instance_id() -> None:
    member = KafkaMember("app-1-uuid", "app-1", "/10.0.0.1", "app-1-static")
    assert clues_of(member) == MemberClues("app-1-uuid", ("10.0.0.1",), ("app-1", "app-1-static"))
    assert clues_of(KafkaMember("m", "", "10.0.0.1")) == MemberClues("m", ("10.0.0.1",), ())


def test_a_grpc_client_names_its_host_which_is_its_pod() -> None:
    """Red where its members are joined to no pod behind a proxy: then no plan says which pods stop."""
    member = Member("app-65b8-528hb@8108@0@u879ljw2w", "10.0.9.9:40124", "JAVA", 513, protocol="grpc")
    assert clues_of(member) == MemberClues(member.client_id, ("10.0.9.9",), ("app-65b8-528hb",))
