"""``planner snapshot`` of a live group, without one: what a metrics server does to a watch."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.errors import OutOfReachError
from planner.model.samples import GroupSample
from planner.runs.coverage import Coverage, write_coverage
from planner.sources import live, past
from tests.sample_builders import POLICY, watch
from tests.unit.cli.test_cli import planner, refused

WITH_METRICS = POLICY.replace("group: shop}", "group: shop, prometheus: {url: http://one:9090%s}}")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[GroupSample]:
    """Let a watch see the samples at once; return those that were taken."""
    taken: list[GroupSample] = []

    def seen(*_: object) -> Iterator[GroupSample]:
        for sample in watch(4):
            taken.append(sample)
            yield sample

    monkeypatch.setattr(live, "watch", seen)
    return taken


def test_a_metrics_server_that_is_away_costs_no_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: list[GroupSample]
) -> None:
    def fail(*_: object) -> None:
        raise OutOfReachError("prometheus is away")

    monkeypatch.setattr(past, "read_past", fail)
    (tmp_path / "policy.yaml").write_text(WITH_METRICS % "", encoding="utf-8")
    found = planner("snapshot", "--policy", "policy.yaml", "-o", "snap.json", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    taken = SNAPSHOT.read(tmp_path / "snap.json")
    assert taken.at == watched[-1].at
    assert taken.problems == ("the past out of metrics was not read: prometheus is away",)
    assert "problem: the past out of metrics was not read: prometheus is away" in found.stdout


def test_a_token_that_is_not_there_is_said_before_the_watch(tmp_path: Path, watched: list[GroupSample]) -> None:
    (tmp_path / "policy.yaml").write_text(WITH_METRICS % ", bearerTokenFile: missing", encoding="utf-8")
    found = planner("snapshot", "--policy", "policy.yaml", "-o", "snap.json", cwd=tmp_path)
    refused(found, 2, "cannot read the secret")
    assert watched == []


def test_a_snapshot_beside_a_sampler_takes_one_look_and_knows_the_whole_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when it watches all the same, or when what the sampler has read is left out."""
    *former, newest = watch(25)
    pipeline.land_samples(tmp_path / "data", former)
    coverage, now, watched = Coverage(30.0), datetime.now(UTC), list[float]()
    for ago_s in range(150, -1, -30):
        coverage = coverage.add({("rocketmq", "DefaultCluster", "shop"): now - timedelta(seconds=ago_s)})

    def look(_policy: object, seconds: float, _pace: object) -> Iterator[GroupSample]:
        watched.append(seconds)
        yield newest

    monkeypatch.setattr(live, "watch", look)
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    command = ("snapshot", "--policy", "policy.yaml", "-o", "snap.json", "--data", "data")
    assert planner(*command, cwd=tmp_path).returncode == 0
    write_coverage(tmp_path / "data", coverage)
    assert planner(*command, cwd=tmp_path).returncode == 0
    assert watched == [120, 0]
    rates = next(part for part in SNAPSHOT.read(tmp_path / "snap.json").parts if part.name == "rates")
    assert rates.completeness == 1.0
    refused(planner(*command, "--capture", "any", cwd=tmp_path), 2, "--data and --capture contradict each other")
