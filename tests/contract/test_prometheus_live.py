"""A real Prometheus that scrapes a real 5.5.0 broker with real consumers: what it tells against what we know."""

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from planner.errors import OutOfReachError
from planner.model.points import GroupPoint, MetricHistory
from planner.model.samples import GroupSample
from planner.sources.prometheus import (
    Access,
    GroupQuery,
    Prometheus,
    QueryError,
    RefusedError,
    history,
    list_groups,
    observe_group,
)
from planner.sources.prometheus.families import ROCKETMQ_BROKER
from tests.clusters.artifacts import find_program
from tests.clusters.ports import lease_block
from tests.clusters.prometheus import PASSWORD, USER, PrometheusServer
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, QueueCurve
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

SHOP = GroupQuery("rocketmq", "shop", cluster="DefaultCluster")
SERVICE_MS = 40
CAPACITY = 2 * 1000 / SERVICE_MS
"""Messages per second that two members with one thread each can do at most."""
QUICK = {"poll-ms": 1000, "heartbeat-ms": 2000, "persist-ms": 200}


@dataclass
class Story:
    """What happened, in order: load, group gone with a backlog, broker restarted, load again."""

    prometheus: Prometheus
    exposition: str
    loaded: tuple[datetime, datetime]
    sent: int
    committed: int
    at_work: GroupSample
    gone: tuple[datetime, datetime]
    gone_sample: GroupSample
    restarted: tuple[datetime, datetime]
    sent_later: int
    told: MetricHistory

    def points(self, span: tuple[datetime, datetime]) -> list[GroupPoint]:
        return [one for one in self.told.points if span[0] < one.at <= span[1]]


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with ExitStack() as undo:
        lease = lease_block()
        undo.callback(lease.release)
        address = f"127.0.0.1:{lease.first}"
        settings = {
            "metricsExporterType": "PROM",
            "metricsPromExporterHost": "127.0.0.1",
            "metricsPromExporterPort": str(lease.first),
        }
        cluster = undo.enter_context(RocketMQCluster.start(NEW, brokers=1, settings=settings))
        server = undo.enter_context(PrometheusServer({"rocketmq": [address]}))
        prometheus = undo.enter_context(Prometheus(Access(server.url)))
        yield _told(cluster, prometheus, address)


def _told(cluster: RocketMQCluster, prometheus: Prometheus, address: str) -> Story:
    begun = now()
    cluster.create_topic("orders", 4)
    load = cluster.load()

    def consumer(name: str) -> ConsumerProcess:
        return load.start_consumer(
            group="shop", topics=["orders"], instance=name, threads=1, service_ms=SERVICE_MS, options=QUICK
        )

    members = [consumer(name) for name in ("c1", "c2")]
    _send(cluster, 1, 2)  # a counter is there from its first message on, and what came before the first look is unknown
    _await(lambda: sum(_committed(cluster)) == _stored(cluster) == _counted(prometheus))
    start, first = now(), _stored(cluster)
    _send(cluster, 8, 40)  # what is left keeps them busy for another quarter of a minute, however slow we look
    _await(lambda: _counted(prometheus) == _stored(cluster))
    loaded, sent = (start, now()), _stored(cluster) - first
    _await(lambda: _is_said(observe_group(prometheus, SHOP, now()), "(2 of them are counted)"))
    at_work = observe_group(prometheus, SHOP, now())
    exposition = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
    for member in members:
        member.stop()
    committed = sum(_committed(cluster))
    _await(lambda: _is_gone(prometheus))
    gone_at = now()
    scrapes: set[float] = set()
    _await(lambda: len(_noted(prometheus, gone_at, scrapes)) >= 3)  # without the group
    gone = (gone_at, now())
    gone_sample = observe_group(prometheus, SHOP, gone[1])
    before, kept = now(), _stored(cluster)
    cluster.brokers[0].restart()
    consumer("c3")
    _send(cluster, 4, 5)
    _await(lambda: _counted(prometheus) == _stored(cluster) - kept)  # the counter has begun anew
    restarted, later = (before, now()), _stored(cluster) - kept
    told = history(prometheus, SHOP, begun, restarted[1], 1.0)
    return Story(prometheus, exposition, loaded, sent, committed, at_work, gone, gone_sample, restarted, later, told)


def now() -> datetime:
    return datetime.now(UTC)


def _send(cluster: RocketMQCluster, seconds: float, rate: float) -> None:
    curves = [QueueCurve("orders", "broker-a", queue, ((0, rate), (seconds, rate))) for queue in range(4)]
    cluster.load().start_producer(curves).wait(300)


def _stored(cluster: RocketMQCluster) -> int:
    """Return how many messages are there, that one, too, whose producer was told so too late."""
    return sum(cluster.produced("orders").values())


def _committed(cluster: RocketMQCluster) -> Sequence[int]:
    return [offset or 0 for offset in cluster.committed("shop", "orders").values()]


def _counted(prometheus: Prometheus) -> float | None:
    found = prometheus.range("sum(rocketmq_messages_in_total)", now(), now(), 1)
    return float(found[0].values[-1]) if found else None


def _is_gone(prometheus: Prometheus) -> bool:
    """True when a scrape shows the broker without the group; where a scrape came too late, neither is shown."""
    return bool(
        prometheus.range("sum(rocketmq_messages_in_total) unless on() rocketmq_consumer_lag_messages", now(), now(), 1)
    )


def _noted(prometheus: Prometheus, since: datetime, scrapes: set[float]) -> set[float]:
    """Add the time of the newest scrape where it is later than ``since``; return all."""
    for series in prometheus.range("max(timestamp(rocketmq_messages_in_total))", now(), now(), 1):
        scrapes |= {float(at) for at in series.values if at > since.timestamp()}
    return scrapes


def _is_said(sample: GroupSample, words: str) -> bool:
    return any(words in problem for problem in sample.problems)


def _await(is_met: Callable[[], bool], within_s: float = 300.0) -> None:
    deadline = time.monotonic() + within_s
    while not is_met():
        assert time.monotonic() < deadline, f"not met in {within_s} s"
        time.sleep(0.2)


def test_every_name_we_rely_on_is_in_the_exposition(story: Story) -> None:
    shown = set(re.findall(r"(?m)^(\w+)\{", story.exposition))
    family = ROCKETMQ_BROKER
    for metric in (family.arrived, family.lag_time, family.members, *family.group_metrics):
        assert set(metric.names) & shown, f"none of {metric.names}"


def test_what_arrived_is_what_was_sent_message_by_message(story: Story) -> None:
    points = story.points(story.loaded)
    assert all(one.arrival_rate is not None for one in points)
    assert round(sum(one.arrival_rate * one.seconds for one in points)) == story.sent


def test_what_was_consumed_is_what_was_committed_not_what_was_fetched(story: Story) -> None:
    points = story.points(story.loaded)
    consumed = sum((one.consumption_rate or 0.0) * one.seconds for one in points)
    assert points[-1].lag > 0, "consumers kept up: nothing tells fetched from consumed"
    # What was fetched would be off by the whole lag. Lag and arrivals of one scrape may lie some moments apart.
    assert consumed == pytest.approx(story.sent - points[-1].lag, abs=0.25 * points[-1].lag)
    busy = [one.consumption_rate for one in points if one.lag > CAPACITY and one.consumption_rate is not None]
    assert median(busy) <= 1.1 * CAPACITY


def test_lag_and_wait_are_the_brokers(story: Story) -> None:
    last = story.points(story.loaded)[-1]
    assert 0 < last.lag <= story.sent
    assert last.lag + story.committed >= story.sent  # what was still consumed at the end was committed
    assert last.lag_s > 1.0


def test_members_are_counted(story: Story) -> None:
    assert {one.members for one in story.points(story.loaded)} == {2}


def test_a_group_that_is_gone_is_unknown_and_its_backlog_not_zero(story: Story) -> None:
    points = story.points(story.gone)
    assert len(points) >= 2
    assert {(one.lag, one.lag_s, one.members, one.consumption_rate) for one in points} == {(None, None, None, None)}
    assert {one.arrival_rate for one in points} == {0.0}


def test_a_look_at_work_counts_members_and_names_what_is_unknown(story: Story) -> None:
    said = " ".join(story.at_work.problems)
    assert "(2 of them are counted)" in said
    assert re.search(r"is \d+ messages behind", said)
    assert "not single queues" in said
    assert (story.at_work.members, story.at_work.offsets, story.at_work.cluster) == ((), (), "DefaultCluster")


def test_a_look_at_a_gone_group_says_so(story: Story) -> None:
    assert any("is offline" in problem for problem in story.gone_sample.problems)


def test_a_restart_makes_no_rate(story: Story) -> None:
    points = story.points(story.restarted)
    assert any(one.arrival_rate is None for one in points)
    known = [one for one in points if one.arrival_rate is not None]
    assert sum(one.arrival_rate * one.seconds for one in known) <= story.sent_later
    assert min(one.arrival_rate for one in story.told.points if one.arrival_rate is not None) >= 0


def test_topics_add_up_to_the_group(story: Story) -> None:
    assert [(one.at, one.arrival_rate, one.lag) for one in story.told.by_topic] == [
        (one.at, one.arrival_rate, one.lag) for one in story.told.points
    ]


def test_age_is_that_of_the_newest_scrape(story: Story) -> None:
    assert story.told.newest_at is not None
    assert story.told.age_s(story.told.newest_at + timedelta(seconds=7)) == 7.0


def test_groups_are_listed(story: Story) -> None:
    listed = list_groups(story.prometheus, SHOP, story.loaded[0], now())
    assert listed == (("rocketmq-broker", ("shop",)),)


def test_the_command_needs_no_broker(story: Story) -> None:
    found = planner("history", "--prometheus", story.prometheus.url, "--all", "--days", 0.05, "--step", 1, "-o", "json")
    assert found.returncode == 0, found.stderr
    (group,) = json.loads(found.stdout)["groups"]
    assert (group["system"], group["group"], group["cluster"]) == ("rocketmq", "shop", "DefaultCluster")
    loaded = [
        one
        for one in group["points"]
        if story.loaded[0] < datetime.fromisoformat(one["at"].replace("Z", "+00:00")) <= story.loaded[1]
    ]
    assert round(sum(one["arrival_rate"] * one["seconds"] for one in loaded)) == story.sent
    assert {one["members"] for one in loaded} == {2}


def test_a_query_that_the_server_refuses_is_told_in_its_words(story: Story) -> None:
    with pytest.raises(QueryError, match=r"lag\{.*bad_data"):
        story.prometheus.range("lag{", now(), now(), 1)


# A guarded server.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("guarded")
    command = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "ca.pem", "-days", "2"]
    command += ["-subj", "/CN=prometheus", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([find_program("openssl"), *command], cwd=home, check=True, capture_output=True)
    (home / "right").write_text(f"{USER}:{PASSWORD}\n")
    (home / "wrong").write_text(f"{USER}:guess\n")
    with PrometheusServer(certificate=(home / "ca.pem", home / "key.pem"), guarded=True) as server:
        yield server.url, home


def test_account_and_authority_open_a_guarded_server(guarded: tuple[str, Path]) -> None:
    url, home = guarded
    with Prometheus(Access(url, basic_auth_file=home / "right", ca_file=home / "ca.pem")) as prometheus:
        assert prometheus.range("up", now(), now(), 1) == ()


def test_a_wrong_password_is_refused_and_not_repeated(guarded: tuple[str, Path]) -> None:
    url, home = guarded
    access = Access(url, basic_auth_file=home / "wrong", ca_file=home / "ca.pem")
    with Prometheus(access) as prometheus, pytest.raises(RefusedError, match="status 401") as caught:
        prometheus.range("up", now(), now(), 1)
    assert "guess" not in str(caught.value)


def test_an_authority_that_is_not_trusted_is_named(guarded: tuple[str, Path]) -> None:
    url, home = guarded
    access = Access(url, basic_auth_file=home / "right")
    with Prometheus(access) as prometheus, pytest.raises(OutOfReachError, match="certificate"):
        prometheus.range("up", now(), now(), 1)
