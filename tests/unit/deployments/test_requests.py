"""What people ask of a plan by its annotations, and which other plans count."""

from datetime import UTC, datetime

import pytest

from planner.deployments.bodies import rival_of
from planner.deployments.plans import requests_of
from planner.execution.ports import Requests
from planner.execution.progress import Approval
from tests.clusters.kubernetes.rest import Json

CREATED = "2026-11-21T10:00:00Z"


def plan(annotations: dict[str, str] | None = None, **meta: object) -> Json:
    full = {f"consumerplanner.dev/{key}": value for key, value in (annotations or {}).items()}
    return {"metadata": {"name": "p", "uid": "u", "creationTimestamp": CREATED, "annotations": full, **meta}}


def test_nothing_is_asked_of_a_new_plan() -> None:
    assert requests_of(plan()) == Requests()


def test_an_approval_is_as_old_as_the_server_notes() -> None:
    noted: Json = {"f:metadata": {"f:annotations": {"f:consumerplanner.dev/approve": {}}}}
    managers = [
        {"time": "2026-11-21T10:05:00Z", "fieldsV1": noted},
        {"time": "2026-11-21T10:09:00Z", "fieldsV1": {"f:spec": {}}},
        {"fieldsV1": noted},
    ]
    asked = requests_of(plan({"approve": "sha256:1"}, managedFields=managers))
    assert asked.approval == Approval("sha256:1", None, datetime(2026, 11, 21, 10, 5, tzinfo=UTC))
    bare = requests_of(plan({"approve": "sha256:1"}))
    assert bare.approval == Approval("sha256:1", None, datetime(2026, 11, 21, 10, 0, tzinfo=UTC))


@pytest.mark.parametrize(("value", "is_on"), [("true", True), ("", True), ("2026-11-21", True), ("False", False)])
def test_pause_and_abort_are_on_unless_they_say_false(value: str, is_on: bool) -> None:
    asked = requests_of(plan({"pause": value, "abort": value}))
    assert (asked.pause, asked.abort) == (is_on, is_on)


def test_steps_are_answered_by_the_numbers_that_people_are_shown_and_phrases_line_by_line() -> None:
    asked = requests_of(plan({"answer": "1, 4,x", "confirm": "set the offsets of a\n\nset the offsets of b\n"}))
    assert asked.answered == (0, 3)
    assert asked.confirmed == ("set the offsets of a", "set the offsets of b")


def test_a_deletion_is_asked_for() -> None:
    assert requests_of(plan(deletionTimestamp=CREATED)).is_deleted


def other(phase: str | None) -> Json:
    group = {"system": "kafka", "cluster": "c", "group": "g"}
    steps = [{"kind": "awaitReady"}, {"kind": "deleteDeployment", "deployment": "old"}]
    found = {**plan(), "spec": {"group": group, "deployment": "app", "steps": steps}}
    return found if phase is None else {**found, "status": {"phase": phase}}


@pytest.mark.parametrize("phase", [None, "Pending", "Running", "Stuck"])
def test_a_plan_that_is_not_at_its_end_or_stuck_counts(phase: str | None) -> None:
    rival = rival_of(other(phase))
    assert rival is not None
    assert (rival.plan, rival.phase, rival.deployments) == ("p/u", phase or "Pending", ("app", "old"))


@pytest.mark.parametrize("phase", ["Succeeded", "RolledBack", "Refused", "Expired"])
def test_a_plan_at_its_end_does_not(phase: str) -> None:
    assert rival_of(other(phase)) is None


def test_what_a_newer_planner_says_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="Dancing"):
        rival_of(other("Dancing"))
