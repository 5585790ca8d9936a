"""Groups under ``MACHINE_ROOM_NEARBY`` from the command line: which counts can be tried, and what is decided."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.decision.decision import HoldCause
from planner.documents.data import SNAPSHOT
from planner.model.snapshot import GroupSnapshot
from planner.runs.policy_stages import read_decision
from tests.builders import clients, queues, snapshot
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import planner, refused

BROKERS = {broker: f"r{number}" for number, broker in enumerate(sorted({queue.broker for queue in queues()}), 1)}
MEMBERS = clients(3)
AT = ("--at", "snapshot")


def in_rooms(*rooms: str) -> GroupSnapshot:
    """Return a group of three members, each in the room of its place."""
    homes = {"brokers": BROKERS, "clients": dict(zip(MEMBERS, rooms, strict=True)), "inner": "AVG"}
    return replace(
        snapshot(clients=MEMBERS),
        group="shop",
        strategy="MACHINE_ROOM_NEARBY",
        strategy_options={"machine_rooms": homes},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY.replace("window: {seconds: 120}", "window: {seconds: 600}"))
    for name, rooms in (("several", ("r1", "r2", "r2")), ("one", ("r1", "r1", "r1")), ("unknown", ("r1", "r1", ""))):
        taken = in_rooms(*rooms)
        if not rooms[-1]:
            del taken.strategy_options["machine_rooms"]["clients"][MEMBERS[-1]]
        (tmp_path / f"{name}.json").write_bytes(SNAPSHOT.dump(taken))
    return tmp_path


def counts(folder: Path, name: str) -> list[int]:
    found = planner("simulate", f"{name}.json", "-o", "json", cwd=folder)
    assert found.returncode == 0, found.stderr
    return [one["count"] for one in json.loads(found.stdout)]


@pytest.mark.slow
def test_with_members_in_several_rooms_new_ones_are_spread_as_they_are(folder: Path) -> None:
    assert max(counts(folder, "several")) > 3
    shown = planner("simulate", "several.json", cwd=folder).stdout
    assert "drawn as present ones are spread, r1 (1 of 3), r2 (2 of 3); spec.newPods.room states it" in " ".join(
        shown.split()
    )


@pytest.mark.slow
def test_new_ones_are_taken_to_be_where_all_others_are(folder: Path) -> None:
    assert max(counts(folder, "one")) > 3
    told = planner("simulate", "one.json", cwd=folder).stdout
    assert "which room the new consumers are in: shown for r1, where all present ones are" in " ".join(told.split())
    assert "Not simulated" not in told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["several", "one"])
def test_the_group_is_decided_on(folder: Path, name: str) -> None:
    found = planner("plan", f"{name}.json", "-p", "policy.yaml", "-o", "decision.yaml", *AT, cwd=folder)
    assert found.returncode == 0, found.stderr
    assert read_decision(folder / "decision.yaml").decision.hold_cause is not HoldCause.UNSUPPORTED_STRATEGY


def test_a_member_whose_room_nobody_knows_is_named(folder: Path) -> None:
    refused(planner("simulate", "unknown.json", cwd=folder), 2, f"no room for client {MEMBERS[-1]!r}")
