"""Plan objects as anybody may have written them: what cannot be read is one sentence, and costs no other plan."""

from datetime import UTC, datetime
from typing import Any

import pytest

from planner.deployments.cluster_state import ClusterState
from planner.deployments.plans import stored_plan
from planner.documents.approve import APPROVE_ANNOTATION
from planner.documents.plan import PLAN
from planner.errors import DocumentError
from planner.sources.kubernetes import AnswerError
from tests.pod_groups import plan_for
from tests.step_builders import STEPS

HUGE = "9" * 5_000
CREATED = "2026-11-21T10:00:00Z"


def plan_object(name: str = "plan", *times: object, **notes: str) -> dict[str, Any]:
    """Return an approved plan as an API server gives it; ``times`` are those at which the approval was set."""
    document = PLAN.document(plan_for("app", ["a", "b"], STEPS[:1], "update"), name, "shop")
    fields = {"f:metadata": {"f:annotations": {f"f:{APPROVE_ANNOTATION}": {}}}}
    meta = {
        "uid": f"uid-{name}",
        "creationTimestamp": CREATED,
        "managedFields": [{"time": at, "fieldsV1": fields} for at in times],
        "annotations": {
            APPROVE_ANNOTATION: "sha256:1",
            **{f"consumerplanner.dev/{key}": value for key, value in notes.items()},
        },
    }
    return {**document, "metadata": {**document["metadata"], **meta}}


@pytest.mark.parametrize("at", ["yesterday", "", HUGE, "9999-12-31T23:59:59-23:59", None, 7, {"a": 1}])
def test_a_time_that_cannot_be_read_is_one_sentence(at: object) -> None:
    with pytest.raises(
        DocumentError, match=r"plan shop/plan: found .* as the time when a field was set, expected"
    ) as told:
        stored_plan(plan_object("plan", "2026-11-21T10:15:00Z", at))
    assert len(str(told.value)) < 250


@pytest.mark.parametrize("fields", [None, "f:metadata", {"f:metadata": "all"}, {"f:metadata": {"f:annotations": [1]}}])
def test_an_entry_of_another_shape_tells_nothing(fields: object) -> None:
    found = plan_object()
    found["metadata"]["managedFields"] = [{"time": "2026-11-21T10:15:00Z", "fieldsV1": fields}]
    approval = stored_plan(found).requests.approval
    assert approval is not None
    assert approval.at == datetime(2026, 11, 21, 10, tzinfo=UTC)


def test_the_newest_time_counts_whatever_zone_it_is_written_in() -> None:
    approval = stored_plan(plan_object("plan", "2026-11-21T12:00:00+02:00", "2026-11-21T10:30:00Z")).requests.approval
    assert approval is not None
    assert approval.at == datetime(2026, 11, 21, 10, 30, tzinfo=UTC)


def test_annotations_of_thousands_of_digits_answer_nothing() -> None:
    requests = stored_plan(plan_object("plan", answer=f"{HUGE},3,{HUGE}", pause=HUGE)).requests
    assert requests.answered == (2,)
    assert requests.pause


class Server:
    """An API server that has these plans."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self.found = found

    def plans(self, _namespace: str) -> tuple[dict[str, Any], ...]:
        return self.found


def rivals(*others: dict[str, Any]) -> list[str]:
    mine = plan_object("mine")
    world = ClusterState(Server(mine, *others), "shop", None, lambda _: None)  # type: ignore[arg-type]
    return [rival.name for rival in world._rivals(stored_plan(mine))]


def broken_plan(**spec: Any) -> dict[str, Any]:
    found = plan_object("broken")
    return {**found, "status": {"phase": "Dancing"}, "spec": {**found["spec"], **spec}}


OTHER_GROUP = {"system": "rocketmq", "cluster": "c", "group": "elsewhere"}


def test_an_unreadable_plan_of_another_group_and_deployment_holds_up_nobody() -> None:
    elsewhere = broken_plan(group=OTHER_GROUP, deployment="other", steps=[])
    assert rivals(elsewhere, plan_object("second")) == ["second"]


@pytest.mark.parametrize(
    "spec", [{}, {"group": OTHER_GROUP}, {"group": OTHER_GROUP, "deployment": "other", "steps": 3}]
)
def test_an_unreadable_plan_that_may_be_of_the_same_group_is_named(spec: dict[str, Any]) -> None:
    with pytest.raises(AnswerError, match=r"plan shop/broken cannot be read .*Dancing.*: delete it"):
        rivals(broken_plan(**spec))
