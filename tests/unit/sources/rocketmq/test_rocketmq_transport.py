"""Addresses, names that stand for several servers, IPv6, and TLS settings that contradict each other."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from planner.errors import BadInputError, OutOfReachError
from planner.sources.rocketmq import RocketMQAdmin, TimeLimits, Tls, transport
from planner.sources.rocketmq.transport import Address, parse_address, resolve
from tests.unit.sources.rocketmq import samples
from tests.unit.sources.rocketmq.fake_server import FakeServer


def test_a_literal_stands_for_itself() -> None:
    assert resolve(Address("127.0.0.1", 9)) == (Address("127.0.0.1", 9),)
    assert resolve(Address("::1", 9)) == (Address("::1", 9),)


def test_a_name_that_nobody_knows_is_kept_for_the_connection_to_complain() -> None:
    assert resolve(Address("no-such-host.invalid", 9)) == (Address("no-such-host.invalid", 9),)


@pytest.mark.slow
def test_a_name_with_several_addresses_is_as_many_name_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    def mute(*_: object) -> None:
        """Never answer."""

    with FakeServer(mute) as silent, FakeServer(lambda q, wire: wire.answer(q, body=samples.CLUSTER_INFO)) as good:
        behind = (parse_address(silent.address), parse_address(good.address))
        asked: list[Address] = []

        def look_up(address: Address) -> tuple[Address, ...]:
            asked.append(address)
            return behind

        monkeypatch.setattr("planner.sources.rocketmq.name_servers.resolve", look_up)
        with RocketMQAdmin("mq.example:9876", limits=TimeLimits(request_s=2.0)) as admin:
            for _ in range(3):
                assert len(admin.cluster_info().brokers) == 2
        # The one that answered stays the first to be asked.
        assert (len(silent.requests), len(good.requests)) == (1, 3)
        assert asked == [Address("mq.example", 9876)]


def test_ipv6_literals_are_reached() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with closing(listener):
        port = listener.getsockname()[1]
        for text in (f"[::1]:{port}", f"::1:{port}"):
            address = parse_address(text)
            assert str(address) == f"[::1]:{port}"
            transport.connect(address, connect_s=60).end()


def test_tls_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BadInputError, match="choose one"):
        Tls(ca_file=Path("ca.pem"), verify=False)
    with pytest.raises(BadInputError, match="lacks its certificate"):
        Tls(key_file=Path("key.pem"))


def test_tls_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("nothing")
    for path in (empty, tmp_path / "missing.pem"):
        with pytest.raises(BadInputError, match=f"TLS files {path} cannot be used"):
            transport.connect(Address("127.0.0.1", 1), connect_s=1, tls=Tls(ca_file=path))


@pytest.mark.slow
def test_a_server_that_speaks_no_tls_is_told_apart() -> None:
    def answer_with_text(*_: object) -> None:
        """Not reached: a TLS hello is no frame."""

    with (
        FakeServer(answer_with_text) as server,
        RocketMQAdmin(server.address, limits=TimeLimits(connect_s=1), tls=Tls()) as admin,
        pytest.raises(OutOfReachError, match=r"no (TLS )?connection to"),
    ):
        admin.cluster_info()
