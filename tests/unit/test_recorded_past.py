"""A group's past out of the samples that runs left: what ``planner backtest --data`` plays."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.backtest.recorded import NotPlayable, PlaySettings, RecordedGroup
from planner.backtest.tracks import tracks_of_samples
from planner.documents.data import SAMPLE
from planner.documents.policy import parse_policy
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.runs.recorded_past import past_of_samples, play_settings
from planner.storage.readings import write_reading
from tests.sample_builders import POLICY, START, members, watch
from tests.unit.cli.test_cli import planner

KEY = ("rocketmq", "DefaultCluster", "shop")
MINUTES = 90
QUEUES = 22
CAPACITY = 100.0
STATED = POLICY + f"  capacity: {{messagesPerSecond: {CAPACITY:g}}}\n  strategy: AVG\n"


def offsets(_: MessageQueue, half_minute: int) -> tuple[int, int]:
    """Return offsets of a queue that gets 600 messages a minute, 20 of which always wait."""
    return 1000 + 300 * half_minute, 980 + 300 * half_minute


def landed(data: Path, samples: tuple[GroupSample, ...]) -> Path:
    """Land the samples as readings and return the data folder."""
    for sample in samples:
        write_reading(data, sample.system, sample.cluster, sample.at, {sample.group: SAMPLE.dump(sample)})
    return data


def samples() -> tuple[GroupSample, ...]:
    """Return samples each 30 s of a group that has three members, and four in its last half hour."""
    of_group = watch(2 * MINUTES + 1, offsets, 30.0)
    more = members(of_group[0].routes, ["10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1", "10.0.0.4@1"])
    return tuple(replace(it, members=more) if it.at > START + timedelta(hours=1) else it for it in of_group)


def past(data: Path, settings: PlaySettings | None = None) -> RecordedGroup | NotPlayable:
    end = START + timedelta(minutes=MINUTES)
    return past_of_samples(data, KEY, START, end, settings or PlaySettings(capacity=CAPACITY))


def test_the_past_out_of_samples_is_the_load_and_the_members_that_were(tmp_path: Path) -> None:
    recorded = past(landed(tmp_path, samples()))
    assert isinstance(recorded, RecordedGroup), recorded
    scenario = recorded.scenario
    assert scenario.messages.shape == (MINUTES - 1, QUEUES)
    assert scenario.messages == pytest.approx(600.0)
    assert (scenario.start, recorded.past.fewest, recorded.past.most, recorded.past.rebalances) == (3, 3, 4, 1)
    assert recorded.past.hours == pytest.approx((3 * 59 + 4 * 30) / 60)
    assert recorded.past.late_minutes == 0
    assert recorded.known == 1.0


def test_what_nobody_saw_is_unknown() -> None:
    """A hole of ten minutes, a topic made anew, a queue that one sample misses: red when any gets a rate."""
    minutes = [it for it in watch(40, lambda _, number: (1000 + 600 * number, None), 60.0) if it.at != START]
    kept = [it for number, it in enumerate(minutes) if not 10 <= number < 20]
    first = kept[0].offsets[0].queue
    anew = [replace(it, broker_offset=5) if it.queue == first else it for it in kept[3].offsets]
    kept[3] = replace(kept[3], offsets=tuple(anew))
    kept[25] = replace(kept[25], offsets=kept[25].offsets[1:])
    tracks = tracks_of_samples(reversed(kept))
    assert not isinstance(tracks, str)
    of_first, of_second = tracks.queues[0], tracks.queues[1]
    assert np.flatnonzero(np.isnan(of_first.arrival)).tolist() == [2, 9, 24, 25]
    assert np.flatnonzero(np.isnan(of_second.arrival)).tolist() == [9]
    assert np.isnan(of_first.consumption).all()


def test_a_policy_says_what_is_played() -> None:
    policy = parse_policy(STATED.replace("minReplicas: 1", "minReplicas: 2\n  membersPerPod: 2"), "p")
    settings = play_settings(policy)
    assert (settings.capacity, settings.strategy, settings.lowest, settings.highest) == (CAPACITY, "AVG", 4, 32)


def test_a_strategy_that_no_backtest_plays_is_refused_by_name(tmp_path: Path) -> None:
    found = past(tmp_path, PlaySettings(strategy="MACHINE_ROOM_NEARBY"))
    assert isinstance(found, NotPlayable)
    assert "the group's strategy is MACHINE_ROOM_NEARBY" in found.reason


def test_the_command_plays_samples_and_keeps_a_scenario_that_plays_the_same(tmp_path: Path) -> None:
    data, policy, kept = landed(tmp_path / "data", samples()), tmp_path / "p.yaml", tmp_path / "kept"
    policy.write_text(STATED, encoding="utf-8")
    names = ("--play", "planner", "--play", "fixed")
    found = planner("backtest", "--data", data, "-p", policy, *names, "--keep", kept, "-o", "json")
    assert found.returncode == 0, found
    answer = json.loads(found.stdout)
    assert answer["as_it_was"]["rebalances"] == 1
    assert (answer["capacity"], answer["capacity_source"]) == (CAPACITY, "stated")
    again = planner("backtest", kept / "scenario.json", "-o", "json")
    assert json.loads(again.stdout) == {"policies": answer["policies"]}
    page = tmp_path / "page.html"
    table = planner("backtest", "--data", data, "-p", policy, "--play", "fixed", "--html", page)
    assert '<th scope="row">as it was</th><td>5</td>' in page.read_text(encoding="utf-8")
    assert "as it was: group <bdi>shop</bdi>, counted from its readings" in page.read_text(encoding="utf-8")
    assert "as it was" in table.stdout
    assert "Played with 100 messages/s a consumer (stated) under AVG" in table.stdout


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(STATED.replace(f"  capacity: {{messagesPerSecond: {CAPACITY:g}}}\n", ""), encoding="utf-8")
    empty = planner("backtest", "--data", tmp_path, "-p", policy)
    assert empty.returncode == 3
    assert "has no sample of group shop" in empty.stderr
    landed(tmp_path, samples())
    unknown = planner("backtest", "--data", tmp_path, "-p", policy)
    assert unknown.returncode == 3
    assert "state spec.capacity.messagesPerSecond, or option --capacity N" in unknown.stderr
    for words in (["--data", tmp_path], ["--prometheus", "http://127.0.0.1:1"], []):
        assert planner("backtest", *words).returncode == 2
    stated = planner("backtest", tmp_path / "s.json", "--capacity", 5)
    assert stated.returncode == 2
    assert "leave --capacity, --queues-each and --until out" in stated.stderr
    wrong = planner("backtest", "--data", tmp_path, "-p", policy, "--play", "planer")
    assert "did you mean planner?" in wrong.stderr


def parquet(folder: Path, table: pa.Table) -> Path:
    """Write a scenario of two intervals whose arrivals are the table."""
    pq.write_table(table, folder / "load.parquet")
    scenario = {
        "arrivals": "load.parquet", "interval_s": 60, "history_s": 0, "system": "kafka", "strategy": "range",
        "capacity": 100.0, "pod_start_s": 30, "min": 1, "max": 2, "start": 1, "late_after_s": 60, "every_s": 60,
        "policies": ["fixed"],
        "prices": {"rebalance_h": 0.25, "late_minute_h": 1.0},
    }  # fmt: skip
    (folder / "s.json").write_text(json.dumps(scenario), encoding="utf-8")
    return folder / "s.json"


def test_arrivals_may_be_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"messages": [60.0, 120.0], "topic": ["t", "t"], "queue": [0, 0], "second": [0, 60]}
    found = planner("backtest", parquet(tmp_path, pa.table(columns)), "-o", "json")
    assert json.loads(found.stdout)["policies"][0]["hours"] == pytest.approx(2 / 60, abs=1e-4)
    missing = planner("backtest", parquet(tmp_path, pa.table({**columns, "queue": [0, None]})))
    assert "line 3: found queue 'None', expected a whole number" in missing.stderr
    renamed = planner("backtest", parquet(tmp_path, pa.table({"seconds": [0]})))
    assert "line 1: found columns seconds, expected second, topic, queue, messages" in renamed.stderr
    monkeypatch.setattr("planner.documents.arrivals.MOST_ROWS", 1)
    large = planner("backtest", parquet(tmp_path, pa.table(columns)))
    assert "found 2 rows of" in large.stderr
    assert large.returncode == 2
    (tmp_path / "load.parquet").write_text("no Parquet")
    broken = planner("backtest", tmp_path / "s.json")
    assert broken.returncode == 2
    assert "no readable Parquet" in broken.stderr
