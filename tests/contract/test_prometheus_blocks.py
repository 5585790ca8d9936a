"""What a real Prometheus makes of samples whose truth we know: written into it with their times, then read back.

Each test has a group, topics and a job of its own in one server.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from planner.documents.policy import parse_policy
from planner.errors import UnknownNameError
from planner.model.points import MetricHistory
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample, QueueOffsets
from planner.runs.policy_stages import snapshot_of_samples
from planner.sources.past import read_past
from planner.sources.prometheus import Access, AmbiguousSeriesError, GroupQuery, Prometheus, history, list_groups
from planner.sources.prometheus import observe_group as observe
from tests.clusters.prometheus import PrometheusServer
from tests.sample_builders import kafka_policy

pytestmark = pytest.mark.cluster

END = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 14
MINUTE = 60
HOUR = 3600

Line = Callable[[float], float | None]
"""From seconds since the start of a scenario to a value; ``None``: no sample."""


class Exposition:
    """An OpenMetrics text with times, series by series."""

    def __init__(self) -> None:
        self._metrics: dict[str, list[str]] = {}

    def add(self, name: str, line: Line, seconds: int, every_s: int = 15, /, **labels: str) -> None:
        """Add one series that ends at ``END``."""
        text = ",".join(f'{label}="{value}"' for label, value in labels.items())
        start = END.timestamp() - seconds
        rows = self._metrics.setdefault(name, [])
        for at in range(0, seconds + 1, every_s):
            if (value := line(at)) is not None:
                rows.append(f"{name}{{{text}}} {value} {start + at:.0f}")

    def text(self) -> str:
        """Return the text; series of one metric stand together, as the format wants it."""
        blocks = (f"# TYPE {name} gauge\n" + "\n".join(rows) for name, rows in self._metrics.items())
        return "\n".join(blocks) + "\n# EOF\n"


@dataclass(frozen=True)
class World:
    prometheus: Prometheus

    def read(self, wanted: GroupQuery, seconds: float, step_s: float = 60.0) -> MetricHistory:
        return history(self.prometheus, wanted, END - timedelta(seconds=seconds), END, step_s)


def grows(per_s: float, start: float = 0.0) -> Line:
    return lambda at: start + per_s * at


def always(value: float) -> Line:
    return lambda _: value


def within(line: Line, begin: float, end: float = math.inf) -> Line:
    return lambda at: line(at) if begin <= at <= end else None


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    text = Exposition()
    for write in (_fourteen_days, _churn, _twins, _hidden_reset, _hole, _never_committed, _lag_exporter, _renamed):
        write(text)
    for write in (_two_clusters, _two_families, _lost_broker, _small_types, _set_back):
        write(text)
    path = tmp_path_factory.mktemp("prometheus") / "samples.om"
    path.write_text(text.text())
    with PrometheusServer(blocks=path) as server, Prometheus(Access(server.url)) as prometheus:
        yield World(prometheus)


def _kafka(text: Exposition, group: str, partition: int, ends: Line, commits: Line, seconds: int, every_s: int) -> None:
    where = {"topic": f"{group}-topic", "partition": str(partition), "job": "kafka"}
    text.add("kafka_topic_partition_current_offset", ends, seconds, every_s, **where)
    text.add("kafka_consumergroup_current_offset", commits, seconds, every_s, consumergroup=group, **where)

    def lag(at: float) -> float | None:
        end, commit = ends(at), commits(at)
        return None if end is None or commit is None else end - commit if commit >= 0 else -1

    text.add("kafka_consumergroup_lag", lag, seconds, every_s, consumergroup=group, **where)


def _fourteen_days(text: Exposition) -> None:
    for partition in range(2):
        _kafka(text, "long", partition, grows(10 + partition, 500), grows(10 + partition), DAYS * 86_400, 5 * MINUTE)


def test_fourteen_days_come_in_one_go(world: World) -> None:
    told = world.read(GroupQuery("kafka", "long"), DAYS * 86_400, 300.0)
    each = DAYS * 288
    assert (told.source, told.period_s, told.newest_at) == ("prometheus/kafka-exporter", 300.0, END)
    assert len(told.intervals) == 2 * each
    assert len(told.points) == each
    first = [one for one in told.intervals if one.queue == TopicPartition("long-topic", 1)]
    assert sum(one.arrived for one in first) == 11 * DAYS * 86_400
    assert {one.arrival_rate for one in first} == {11.0}
    assert {(one.arrival_rate, one.consumption_rate, one.lag, one.is_gap) for one in told.points} == {
        (21.0, 21.0, 1000, False)
    }
    assert not any(one.is_gap for one in told.intervals)


def _exporter(text: Exposition, group: str, lag: Line, members: str, seconds: int = HOUR) -> None:
    labels = {"group": group, "topic": f"{group}-topic", "msgModel": "1", "job": "rocketmq-exporter"}
    text.add("rocketmq_group_diff", lag, seconds, 15, **labels, countOfOnlineConsumers=members)


def _churn(text: Exposition) -> None:
    # The exporter keeps what it said for a minute, so for a minute both are there.
    _exporter(text, "churn", within(always(1000), 0, 1860), "1")
    _exporter(text, "churn", within(always(40), 1800), "2")


def test_a_label_that_changes_is_no_second_lag(world: World) -> None:
    told = world.read(GroupQuery("rocketmq", "churn"), HOUR)
    lags = [(round((one.at - END).total_seconds()) + HOUR, one.lag) for one in told.points]
    assert {lag for at, lag in lags if at < 1800} == {1000}
    assert {lag for at, lag in lags if at >= 1800} == {40}


def _twins(text: Exposition) -> None:
    for instance, lag in (("eu:9308", 10), ("us:9308", 70)):
        where = {"topic": "twins-topic", "partition": "0", "instance": instance}
        text.add("kafka_consumergroup_lag", always(lag), HOUR, 15, **where, consumergroup="twins")


def test_two_clusters_behind_equal_names_are_refused_until_one_is_named(world: World) -> None:
    with pytest.raises(AmbiguousSeriesError, match=r"instance is '(eu|us):9308' and '(eu|us):9308'") as caught:
        world.read(GroupQuery("kafka", "twins"), HOUR)
    assert "matcher" in str(caught.value)
    told = world.read(GroupQuery("kafka", "twins", matchers={"instance": "us:9308"}), HOUR)
    assert {one.lag for one in told.points} == {70}


def _broker(text: Exposition, group: str, node: str, arrived: Line, lag: Line, **labels: str) -> None:
    where = {"cluster": "main", "node_id": node, "topic": f"{group}-topic", "job": "rocketmq", **labels}
    text.add("rocketmq_messages_in_total", arrived, 3 * HOUR, 15, **where, message_type="normal")
    text.add("rocketmq_consumer_lag_messages", lag, 3 * HOUR, 15, **where, consumer_group=group, is_retry="false")


def _hidden_reset(text: Exposition) -> None:
    # Restarted at 5400 s, within one step of 600 s past its old count again.
    _broker(text, "reset", "a", lambda at: 2 * (at - 5100) if at < 5400 else 10 * (at - 5400), always(5))


def test_a_restart_within_one_step_is_seen_and_no_rate_made_of_it(world: World) -> None:
    told = world.read(GroupQuery("rocketmq", "reset", cluster="main"), 5700, 600.0)
    around = {round((one.at - END).total_seconds()) + 3 * HOUR: one.arrival_rate for one in told.points}
    # The counter stood at 0 at 5100 s and at 3000 at 5700 s, which looks like 5 messages a second.
    assert around[5700] is None
    assert around[6300] == 10.0


def _hole(text: Exposition) -> None:
    def holed(line: Line) -> Line:
        return lambda at: None if 3000 < at < 4200 else line(at)

    _kafka(text, "hole", 0, holed(grows(4, 100)), holed(grows(4)), 2 * HOUR, 15)


def test_a_hole_is_a_gap_with_a_true_mean_and_an_unknown_lag(world: World) -> None:
    told = world.read(GroupQuery("kafka", "hole"), 2 * HOUR)
    (gap,) = [one for one in told.intervals if one.is_gap]
    assert (gap.seconds, gap.arrived, gap.arrival_rate) == (1200.0, 4800, 4.0)
    assert sum(one.is_gap for one in told.points) == 1
    assert not [one for one in told.points if (one.arrival_rate, one.lag) != (4.0, 100)]


def _never_committed(text: Exposition) -> None:
    _kafka(text, "shy", 0, grows(1, 50), grows(1), HOUR, 15)
    _kafka(text, "shy", 1, grows(1), always(-1), HOUR, 15)
    text.add("kafka_consumergroup_members", always(0), HOUR, 15, consumergroup="shy")


def test_minus_one_is_unknown(world: World) -> None:
    told = world.read(GroupQuery("kafka", "shy"), HOUR)
    silent = [one for one in told.intervals if one.queue.number == 1]
    assert {(one.consumer_offset, one.lag, one.consumed, one.arrival_rate) for one in silent} == {(None, None, None, 1)}
    assert {one.lag for one in told.points} == {50}
    assert "shy-topic/1" in told.problems[-1]


def test_no_member_counted_is_unknown_where_the_exporter_cannot_see_all(world: World) -> None:
    told = world.read(GroupQuery("kafka", "shy"), HOUR)
    assert {one.members for one in told.points} == {None}


def _lag_exporter(text: Exposition) -> None:
    where = {"cluster_name": "prod", "topic": "named-topic", "job": "lag-exporter"}
    for partition, wait in ((0, always(4.5)), (1, always(math.nan))):
        place = {**where, "partition": str(partition)}
        text.add("kafka_partition_latest_offset", grows(2, 30), HOUR, 30, **place)
        for client in ("c1", "c2"):  # the partition changes hands half-way
            half = (0, HOUR / 2 - 1) if client == "c1" else (HOUR / 2, HOUR)
            member = {**place, "group": "named", "consumer_id": f"{client}-x", "client_id": client, "member_host": "/h"}
            offset = grows(2) if partition == 0 else always(math.nan)
            text.add("kafka_consumergroup_group_offset", within(offset, *half), HOUR, 30, **member)
            lag = always(30) if partition == 0 else always(math.nan)
            text.add("kafka_consumergroup_group_lag", within(lag, *half), HOUR, 30, **member)
            text.add("kafka_consumergroup_group_lag_seconds", within(wait, *half), HOUR, 30, **member)


def test_a_partition_that_changes_hands_stays_one_and_nan_is_unknown(world: World) -> None:
    told = world.read(GroupQuery("kafka", "named"), HOUR)
    assert (told.source, told.cluster, told.refresh_s) == ("prometheus/kafka-lag-exporter", "prod", 30.0)
    owned = [one for one in told.intervals if one.queue.number == 0]
    assert (len(owned), {one.consumption_rate for one in owned}) == (60, {2.0})
    assert {one.consumer_offset for one in told.intervals if one.queue.number == 1} == {None}
    assert {(one.lag, one.lag_s, one.arrival_rate, one.consumption_rate) for one in told.points} == {(30, 4.5, 4, 2)}


def test_the_age_counts_what_the_exporter_may_have_waited(world: World) -> None:
    told = world.read(GroupQuery("kafka", "named"), HOUR)
    assert told.age_s(END + timedelta(seconds=10)) == 40.0


def _renamed(text: Exposition) -> None:
    labels = {"exported_group": "moved", "mq_topic": "moved-topic", "env": "blue", "partition": "0"}
    text.add("kafka_topic_partition_current_offset", grows(3), HOUR, 15, mq_topic="moved-topic", partition="0")
    text.add("kafka_consumergroup_current_offset", grows(3), HOUR, 15, **labels)
    text.add("kafka_consumergroup_lag", always(0), HOUR, 15, **labels)


def test_renamed_labels_are_found_by_setting(world: World) -> None:
    labels = {"group": "exported_group", "topic": "mq_topic"}
    told = world.read(GroupQuery("kafka", "moved", labels=labels), HOUR)
    assert {one.arrival_rate for one in told.intervals} == {3.0}
    with pytest.raises(UnknownNameError, match="knows no kafka group moved"):
        world.read(GroupQuery("kafka", "moved"), HOUR)


def _two_clusters(text: Exposition) -> None:
    for cluster, lag in (("east", 7), ("west", 9)):
        _broker(text, "both", "a", grows(1), always(lag), cluster=cluster)


def test_a_group_in_two_clusters_needs_one_named(world: World) -> None:
    with pytest.raises(AmbiguousSeriesError, match=r"2 clusters \(east, west\)"):
        world.read(GroupQuery("rocketmq", "both"), HOUR)
    assert {one.lag for one in world.read(GroupQuery("rocketmq", "both", cluster="west"), HOUR).points} == {9}


def _two_families(text: Exposition) -> None:
    _broker(text, "rich", "a", grows(1), always(3))
    _exporter(text, "rich", always(4), "1")


def test_the_best_family_is_read_and_the_other_told(world: World) -> None:
    told = world.read(GroupQuery("rocketmq", "rich"), HOUR)
    assert told.source == "prometheus/rocketmq-broker"
    assert told.problems[0] == "metrics of rocketmq-broker are read; those of rocketmq-exporter are there, too"


def _lost_broker(text: Exposition) -> None:
    _broker(text, "torn", "a", grows(1), always(10))
    _broker(text, "torn", "b", within(grows(2), 0, HOUR), within(always(5), 0, HOUR))


def test_a_sum_without_a_broker_is_unknown_until_the_broker_is_gone_for_good(world: World) -> None:
    told = world.read(GroupQuery("rocketmq", "torn"), 3 * HOUR)
    lags = {round((one.at - END).total_seconds()) + 3 * HOUR: (one.lag, one.arrival_rate) for one in told.points}
    assert lags[HOUR - 60] == (15, 3.0)
    assert lags[HOUR + 1800] == (None, None)
    assert lags[2 * HOUR + 1800] == (10, 1.0)


def _small_types(text: Exposition) -> None:
    _broker(text, "types", "a", grows(1), always(0))
    where = {"cluster": "main", "node_id": "a", "topic": "types-topic", "job": "rocketmq", "message_type": "delay"}
    text.add("rocketmq_messages_in_total", within(grows(1, -6600), 7200), 3 * HOUR, 15, **where)


def test_a_kind_of_message_that_appears_later_counts_from_its_first(world: World) -> None:
    told = world.read(GroupQuery("rocketmq", "types"), 3 * HOUR)
    rates = {round((one.at - END).total_seconds()) + 3 * HOUR: one.arrival_rate for one in told.points}
    assert (rates[7140], rates[7200], rates[7260]) == (1.0, 11.0, 2.0)  # 600 of them came before they were first seen


def _set_back(text: Exposition) -> None:
    _broker(text, "back", "a", grows(1), lambda at: 0 if at < 2 * HOUR else 5000)


def test_an_offset_that_is_set_back_is_no_consumption_and_no_negative_one(world: World) -> None:
    told = world.read(GroupQuery("rocketmq", "back"), 3 * HOUR)
    consumed = {round((one.at - END).total_seconds()) + 3 * HOUR: one.consumption_rate for one in told.points}
    assert (consumed[2 * HOUR - 60], consumed[2 * HOUR], consumed[2 * HOUR + 60]) == (1.0, None, 1.0)


def test_groups_are_listed_by_family(world: World) -> None:
    listed = dict(list_groups(world.prometheus, GroupQuery("rocketmq", ""), END - timedelta(hours=1), END))
    assert set(listed) == {"rocketmq-broker", "rocketmq-exporter"}
    assert listed["rocketmq-exporter"] == ("churn", "rich")


def test_an_unknown_topic_lists_the_known(world: World) -> None:
    with pytest.raises(UnknownNameError, match="no topic other of group shy, but shy-topic"):
        world.read(GroupQuery("kafka", "shy", topics=("other",)), HOUR)


def test_a_look_at_a_kafka_group_has_offsets_and_no_members(world: World) -> None:
    sample = observe(world.prometheus, GroupQuery("kafka", "shy"), END)
    assert [(one.queue.number, one.broker_offset, one.consumer_offset, one.lag) for one in sample.offsets] == [
        (0, 3650, 3600, 50),
        (1, 3600, None, None),
    ]
    assert (sample.at, sample.members, sample.routes.topic_names) == (END, (), ("shy-topic",))
    assert "do not say who the members are, nor what they own" in sample.problems[0]


def test_a_look_after_the_series_ended_says_so(world: World) -> None:
    sample = observe(world.prometheus, GroupQuery("rocketmq", "torn"), END + timedelta(hours=2))
    assert any("has no series" in problem for problem in sample.problems)


def test_a_look_tells_how_old_it_is(world: World) -> None:
    sample = observe(world.prometheus, GroupQuery("rocketmq", "churn"), END + timedelta(seconds=100))
    assert sample.at == END
    assert any("may be 2 min 40 s old" in problem for problem in sample.problems)


def test_a_policy_that_names_the_server_gets_its_groups_past(world: World) -> None:
    text = kafka_policy("127.0.0.1:9092", "long")
    named = text.replace("group: long}", f"group: long, prometheus: {{url: '{world.prometheus.url}'}}}}")
    past = read_past(parse_policy(named, "p.yaml"), END - timedelta(hours=6), END)
    assert past is not None
    assert (past.system, past.cluster, past.group) == ("kafka", "test", "long")
    assert {(point.arrival_rate, point.lag) for point in past.points} == {(21.0, 1000)}
    assert {interval.queue.topic for interval in past.intervals} == {"long-topic"}
    assert read_past(parse_policy(text, "p.yaml"), END - timedelta(hours=6), END) is None


def test_a_first_snapshot_of_a_policy_that_names_the_server_knows_a_week(world: World) -> None:
    """Red where only the six hours of ``recent`` are asked for, or where the group's queues are not added up."""
    text = kafka_policy("127.0.0.1:9092", "long")
    named = text.replace("group: long}", f"group: long, prometheus: {{url: '{world.prometheus.url}'}}}}")
    partitions = [TopicPartition("long-topic", number) for number in range(2)]
    routes = RouteTable(partitions=tuple(PartitionRoute(partition, 0) for partition in partitions))
    samples = [
        GroupSample(
            "kafka",
            "test",
            "long",
            END - timedelta(seconds=age_s),
            0.0,
            routes,
            (),
            tuple(
                QueueOffsets(partition, 10_000_000 - 10 * age_s, 10_000_000 - 10 * age_s) for partition in partitions
            ),
        )
        for age_s in (60, 0)
    ]
    taken = snapshot_of_samples(parse_policy(named, "p.yaml"), samples, 60.0, END)
    assert taken.past_load is not None
    assert taken.past_load.until == END - timedelta(hours=6)
    assert len(taken.past_load.rates) == 7 * 1440 - 6 * 60
    assert set(taken.past_load.rates) == {21.0}
    assert len(taken.past_load.averaged) == len(taken.past_load.rates) * 4 // 5
    assert not any("was not read" in problem for problem in taken.problems)
    later = snapshot_of_samples(parse_policy(named, "p.yaml"), samples, 60.0, END, taken)
    assert later.past_load == taken.past_load
