"""``planner advise --prometheus --all`` and ``planner demand`` against a real Prometheus whose samples we know."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clusters.prometheus import PrometheusServer
from tests.contract.test_prometheus_blocks import END, Exposition
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

MINUTES = 90
PARTITIONS = 4
CAPACITY = 100.0
PLAYED = ("behind", "idle", "waves")


def _load(group: str, minute: int) -> float:
    """Messages per second: one group has too much for ten minutes, one has little, one goes up and down."""
    if group == "behind":
        return 350.0 if 30 <= minute < 40 else 150.0
    return 50.0 if group != "waves" else 150.0 + 100.0 * math.sin(minute / 8)


def _write(text: Exposition, group: str, members: int | None) -> None:
    """Write a group as the Kafka exporter shows it, its members at their capacity while messages wait."""
    ends, commits, lag = [0.0], [0.0], 0.0
    for minute in range(MINUTES):
        consumed = min(lag / 60 + _load(group, minute), CAPACITY * (members or 2))
        lag += 60 * (_load(group, minute) - consumed)
        ends.append(ends[-1] + 60 * _load(group, minute))
        commits.append(ends[-1] - lag)
    for number in range(PARTITIONS):
        where = {"topic": f"{group}-topic", "partition": str(number), "job": "kafka"}

        def each(values: list[float], at: float) -> float:
            return round(values[int(at // 60)] / PARTITIONS)

        seconds = MINUTES * 60
        text.add("kafka_topic_partition_current_offset", lambda at: each(ends, at), seconds, 60, **where)
        of_group = {**where, "consumergroup": group}
        text.add("kafka_consumergroup_current_offset", lambda at: each(commits, at), seconds, 60, **of_group)
        text.add("kafka_consumergroup_lag", lambda at: each(ends, at) - each(commits, at), seconds, 60, **of_group)
    if members is not None:
        text.add("kafka_consumergroup_members", lambda _: members, MINUTES * 60, 60, consumergroup=group, job="kafka")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    text = Exposition()
    for group in PLAYED:
        _write(text, group, 2 if group == "behind" else 4)
    _write(text, "memberless", None)
    for number in range(17):
        _write(text, f"quiet-{number}", 3)
    path = tmp_path_factory.mktemp("prometheus") / "samples.om"
    path.write_text(text.text())
    with PrometheusServer(blocks=path) as server:
        yield server.url


def advise(url: str, *options: object) -> Any:
    """Return what the command says of the groups' last 90 minutes."""
    span = ("--days", MINUTES / 1440, "--until", END.isoformat(), "--step", 60)
    found = planner("advise", "--prometheus", url, *span, *options, "--format", "json")
    assert found.returncode == 0, found
    return json.loads(found.stdout)


def test_an_installation_of_21_groups_is_told_without_a_broker(url: str, tmp_path: Path) -> None:
    """Red when a group without a known capacity or without members gets figures, or when the order is another one."""
    page = tmp_path / "advice.html"
    stated = ("--capacity", f"idle={CAPACITY}", "--capacity", f"waves={CAPACITY}")
    answer = advise(url, "--all", *stated, "--consumer-hour", 0.5, "--html", page)
    groups = {group["group"]: group for group in answer["groups"]}
    assert set(groups) == set(PLAYED)
    saved = [group["savedHours"] for group in answer["groups"]]
    assert saved == sorted(saved, reverse=True)
    unknown = {group["group"]: group["reason"] for group in answer["unknown"]}
    assert len(unknown) == 18
    assert "how many members there are is known for 0%" in unknown["memberless"]
    assert all("--capacity" in reason for name, reason in unknown.items() if name != "memberless")
    behind, idle = groups["behind"], groups["idle"]
    assert behind["capacity"] == pytest.approx(CAPACITY, rel=0.03)
    assert behind["asItWas"]["hours"] == pytest.approx(2 * MINUTES / 60)
    # 90,000 messages are too many after ten minutes, and go at 50 a second: more than half an hour of late messages.
    assert behind["asItWas"]["lateMinutes"] in range(32, 38)
    assert behind["planner"]["lateMinutes"] <= 3
    # 50 messages a second are half of what one consumer can do, and four were there.
    assert idle["asItWas"] == pytest.approx(
        {"fewest": 4, "most": 4, "hours": 6.0, "rebalances": 0, "lateMinutes": 0, "costHours": 6.0}
    )
    assert idle["planner"]["hours"] < 2.0
    assert idle["savedMoney"] == pytest.approx(0.5 * idle["savedHours"], abs=0.01)
    text = page.read_text(encoding="utf-8")
    assert all(f"<bdi>{name}</bdi>" in text for name in (*groups, *unknown))


def test_one_group_is_played_under_every_policy_that_is_asked_for(url: str, tmp_path: Path) -> None:
    """Beside what the group itself cost; red when the play is of another group, or its capacity of another."""
    span = ("--days", MINUTES / 1440, "--until", END.isoformat(), "--step", 60, "--group")
    names = ("--play", "planner", "--play", "keda", "--play", "optimum", "--format", "json")
    found = planner("backtest", "--prometheus", url, *span, "behind", *names, "--keep", tmp_path / "kept")
    assert found.returncode == 0, found
    answer = json.loads(found.stdout)
    costs = {run["policy"]: run["cost_h"] for run in answer["policies"]}
    assert answer["capacity"] == pytest.approx(CAPACITY, rel=0.03)
    assert answer["as_it_was"]["late_minutes"] in range(32, 38)
    assert costs["optimum"] <= costs["planner"] < answer["as_it_was"]["cost_h"]
    again = planner("backtest", tmp_path / "kept" / "scenario.json", "--format", "json")
    assert json.loads(again.stdout)["policies"] == answer["policies"]
    for group, reason in (("idle", "option --capacity N"), ("memberless", "how many members"), ("nobody", "no group")):
        refused = planner("backtest", "--prometheus", url, *span, group)
        assert refused.returncode != 0
        assert reason in refused.stderr
    stated = planner("backtest", "--prometheus", url, *span, "idle", "--capacity", CAPACITY, "--play", "fixed")
    assert "as it was" in stated.stdout


def test_the_load_ahead_is_told_from_metrics_alone(url: str, tmp_path: Path) -> None:
    page = tmp_path / "demand.html"
    options = ("--prometheus", url, "--group", "waves", "--days", MINUTES / 1440, "--until", END.isoformat())
    found = planner("demand", *options, "--html", page, "--format", "json")
    assert found.returncode == 0, found
    answer = json.loads(found.stdout)
    assert answer["minutes"] in range(MINUTES - 2, MINUTES + 1)
    assert answer["level"] == pytest.approx(_load("waves", MINUTES - 1), rel=0.2)
    assert answer["stretches"][0]["forecasts"] > 3
    assert "<svg" in page.read_text(encoding="utf-8")
