"""``planner history`` against a real Prometheus that has recordings of a real exporter."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.data import METRIC_HISTORY
from planner.sources.prometheus import Access, GroupQuery, Prometheus, history
from tests.clusters.prometheus import PrometheusServer
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import Found, planner, refused

pytestmark = pytest.mark.cluster

RECORDINGS = Path(__file__).with_name("recordings")
LOOKS = json.loads((RECORDINGS / "kafka_exporter.truth.json").read_text())["looks"]
BEGIN, END = (datetime.fromtimestamp(round(LOOKS[place]["at"]), UTC) for place in (0, -1))
SPAN = ("--days", (END - BEGIN).total_seconds() / 86400, "--until", END.isoformat(), "--step", 10)

DOUBLE = (("fine", "a"), ("double", "a"), ("double", "b"))
"""Groups and the exporters that show them: two of them show the same group."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with PrometheusServer(blocks=RECORDINGS / "kafka_exporter.om") as server:
        yield server.url


def told(url: str, *words: object) -> Found:
    return planner("history", "--prometheus", url, *SPAN, *words)


def test_json_is_the_history_that_the_library_gives(url: str) -> None:
    found = told(url, "-g", "shop", "-o", "json")
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    with Prometheus(Access(url)) as client:
        expected = history(client, GroupQuery("kafka", "shop"), BEGIN, END, 10.0)
    assert answer["groups"] == [METRIC_HISTORY.body(expected)]
    assert len(answer["groups"][0]["points"]) > 10
    assert (answer["since"], answer["until"], answer["unread"]) == (BEGIN.isoformat(), END.isoformat(), [])


def test_one_group_is_told_in_full(url: str) -> None:
    found = told(url, "--all", "--match", "topic=returns")
    assert found.stdout.startswith("kafka group left, by prometheus/kafka-exporter\n  now: 0 messages behind")
    busy = told(url, "--group", "shop").stdout
    assert "kafka group shop, by prometheus/kafka-exporter" in busy
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in busy.splitlines() if line.startswith("│")]
    assert [row[0] for row in rows] == ["11-21 14:32", "11-21 14:33", "11-21 14:34"]
    assert {row[6] for row in rows} == {"2"}
    assert max(float(row[2]) for row in rows) == 110.0
    assert "problem: nothing was ever committed on orders/3" in busy


def test_all_groups_are_a_line_each(url: str) -> None:
    found = told(url, "--all")
    assert found.returncode == 0, found.stderr
    assert "3 groups since" in found.stdout
    rows = {
        words[1]: words for line in found.stdout.splitlines() if len(words := line.split()) > 3 and "kafka" in words
    }
    assert set(rows) == {"left", "modern", "shop"}


def test_some_groups_by_name(url: str) -> None:
    answer = json.loads(told(url, "-g", "modern", "-g", "left", "-o", "json").stdout)
    assert [one["group"] for one in answer["groups"]] == ["left", "modern"]


def test_groups_that_nobody_knows_are_named(url: str) -> None:
    refused(told(url, "-g", "shop", "-g", "shpo"), 2, "knows no group shpo, but left, modern, shop")
    refused(told(url, "--all", "--system", "rocketmq"), 2, "has no metrics of rocketmq groups between", "docs/")


def test_how_a_group_is_long_after_its_metrics_ended_is_not_known(url: str) -> None:
    late = datetime.fromtimestamp(END.timestamp() + 3600, UTC)
    found = planner("history", "--prometheus", url, "-g", "shop", "--days", 0.1, "--until", late.isoformat())
    assert "its metrics ended at" in found.stdout
    assert "now:" not in found.stdout


def test_a_single_reading_is_not_taken_for_the_end_of_a_group(url: str) -> None:
    found = planner("history", "--prometheus", url, "-g", "shop", "--until", END.isoformat())
    assert "there is one reading of it yet" in found.stdout


def test_a_policy_names_group_and_server(url: str, tmp_path: Path) -> None:
    text = kafka_policy("127.0.0.1:9092", "shop")
    text = text.replace("group: shop}", f"group: shop, prometheus: {{url: '{url}'}}}}")
    (tmp_path / "policy.yaml").write_text(text)
    found = planner("history", "--policy", "policy.yaml", *SPAN, cwd=tmp_path)
    assert found.stdout == told(url, "-g", "shop").stdout


def test_a_group_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    times = [int(END.timestamp()) - ago for ago in range(600, -1, -15)]
    lines = [
        f'kafka_consumergroup_lag{{consumergroup="{group}",topic="orders",partition="0",instance="{name}"}} 7 {at}'
        for group, name in DOUBLE
        for at in times
    ]
    text = "\n".join(("# TYPE kafka_consumergroup_lag gauge", *lines, "# EOF", ""))
    (tmp_path / "double.om").write_text(text)
    with PrometheusServer(blocks=tmp_path / "double.om") as server:
        words = ("history", "--prometheus", server.url, "--all", "--days", 0.1, "--until", END.isoformat())
        found, alone = planner(*words), planner(*words[:3], "-g", "double", *words[4:])
        answer = json.loads(planner(*words, "-o", "json").stdout)
    assert found.returncode == 3
    assert "kafka group fine" in found.stdout
    assert "not read: group double" in found.stdout
    assert [one["group"] for one in answer["groups"]] == ["fine"]
    assert [one["group"] for one in answer["unread"]] == ["double"]
    refused(alone, 2, "instance is 'a' and 'b'")
