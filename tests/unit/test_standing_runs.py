"""Runs of one process: what the last one decided stands by what the next one reads, or is decided anew."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from planner.documents.data import SAMPLE
from planner.documents.policy_folder import read_policies
from planner.model.samples import GroupSample
from planner.policies.fleet import keep_fleet, read_fleet
from planner.runs.local_run import Served, Wishes, serve, serve_all
from planner.runs.standing import StandingDecisions
from planner.storage.readings import write_reading
from planner.storage.run import Run
from tests.unit.decision.test_standing import BEFORE, EVERY_S, WEIGHED, world

SAMPLES = world(lambda _: 210.0, BEFORE + 2)


def run_at(data: Path, samples: Sequence[GroupSample], problems: dict[str, str] | None = None) -> Run:
    """Return a run that has read the last of the samples; each lands, and the run keeps the policies of the folder."""
    for sample in samples:
        write_reading(data, sample.system, sample.cluster, sample.at, {"shop": SAMPLE.dump(sample)})
    until = samples[-1].at
    run = Run(data, data / "policies", until, until, EVERY_S)
    keep_fleet(read_fleet(data / "policies"), run.folder, problems or {})
    return Run(data, run.folder.policies, until, until, EVERY_S)


def decided(data: Path) -> tuple[StandingDecisions, Run, Served]:
    """Return what a first run remembers, after half an hour of samples."""
    folder = data / "policies"
    folder.mkdir()
    (folder / "shop.yaml").write_text(WEIGHED, encoding="utf-8")
    run = run_at(data, SAMPLES[:BEFORE])
    standing, (served,) = StandingDecisions(), serve(run, ["shop"], Wishes(with_pages=False))
    standing.remember(run, [served])
    return standing, run, served


def test_what_stands_is_not_decided_anew_and_says_when_it_was_decided(tmp_path: Path) -> None:
    standing, first, served = decided(tmp_path)
    run = run_at(tmp_path, SAMPLES[BEFORE : BEFORE + 1])
    policies = read_policies(run.policies)
    (confirmed,) = standing.check(run, policies)
    assert confirmed.made_in == first.folder
    assert confirmed.decided["to"] == served.decided["to"] == 3
    assert confirmed.decided["hold"] == "RightAlready"
    assert confirmed.decided["reason"].endswith(f"So decided at {first.until:%H:%M:%S} UTC, and it stands.")
    assert json.loads(run.folder.stands.read_text()) == {"shop": first.folder.path.name}
    assert list(serve_all(run, Wishes(with_pages=False), 1, ["shop"])) == []
    assert not run.folder.snapshot("shop").exists()
    (again,) = standing.check(run_at(tmp_path, SAMPLES[BEFORE + 1 :]), policies)
    assert again.decided["reason"] == confirmed.decided["reason"]


@pytest.mark.parametrize("why", ["edited", "unread", "not landed", "gone", "broken"])
def test_what_is_not_known_to_stand_is_forgotten(tmp_path: Path, why: str) -> None:
    """Red where a policy's edit, or a group that was not read, leaves the former decision as it was."""
    standing, _, _ = decided(tmp_path)
    path, next_sample = tmp_path / "policies" / "shop.yaml", SAMPLES[BEFORE]
    if why == "edited":
        path.write_text(WEIGHED.replace("maxReplicas: 16", "maxReplicas: 17"), encoding="utf-8")
    run = run_at(tmp_path, [next_sample], {"shop": "nobody answers"} if why == "unread" else None)
    if why == "not landed":
        later = next_sample.at + timedelta(seconds=1)
        run = Run(tmp_path, run.policies, later, later, EVERY_S)
        keep_fleet(read_fleet(tmp_path / "policies"), run.folder, {})
        run = Run(tmp_path, run.folder.policies, later, later, EVERY_S)
    if why == "broken":
        (reading,) = (tmp_path / "readings").rglob(f"*{next_sample.at:%H%M%S}*.jsonl")
        reading.write_bytes(reading.read_bytes().replace(b'"took_s":0.02', b'"took_s":0.03'))
    policies = [] if why == "gone" else read_policies(run.policies)
    assert standing.check(run, policies) == []
    assert not run.folder.stands.exists()
    later_run = run_at(tmp_path, SAMPLES[BEFORE + 1 :])
    assert standing.check(later_run, read_policies(later_run.policies)) == []
