"""The health snippets of our pages, run by Argo CD's own Lua on every status that the planner writes."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.documents.policy_status import DecisionNews, NoDecisionNews, PolicyStatus, dump_policy_status, next_status
from planner.documents.status import dump_status
from planner.execution.conditions import with_conditions
from planner.execution.phases import Phase
from planner.execution.ports import Requests, StoredPlan
from planner.execution.progress import RolloutStatus
from planner.rollout.steps import AwaitReady
from tests.builders import AT
from tests.clusters.kubernetes.build import health_binary
from tests.pod_groups import plan_for
from tests.unit.packaging.images import ROOT

# The program is compiled first where it has not been yet.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

PAGES = {"ConsumerRolloutPlan": "plans.md", "ConsumerScalingPolicy": "schedule.md"}
HEALTH = {
    Phase.PENDING: "Progressing",
    Phase.APPROVED: "Progressing",
    Phase.RUNNING: "Progressing",
    Phase.PAUSED: "Progressing",
    Phase.VERIFYING: "Progressing",
    Phase.ABORTING: "Progressing",
    Phase.SUCCEEDED: "Healthy",
    Phase.ROLLED_BACK: "Degraded",
    Phase.REFUSED: "Degraded",
    Phase.EXPIRED: "Degraded",
    Phase.STUCK: "Degraded",
}


def judged(folder: Path, kind: str, status: dict[str, Any] | None) -> tuple[str, str]:
    """Return health and message of an object with this status, by the snippet of its kind's page."""
    page = (ROOT / "docs" / PAGES[kind]).read_text(encoding="utf-8")
    found = re.search(rf"health\.consumerplanner\.dev_{kind}: \|\n((?:    .*\n)+)", page)
    assert found is not None, f"docs/{PAGES[kind]} has no snippet for {kind}"
    snippet = folder / "health.lua"
    snippet.write_text(found[1], encoding="utf-8")
    document = json.dumps({"kind": kind, **({} if status is None else {"status": status})})
    command = [str(health_binary()), str(snippet)]
    run = subprocess.run(command, input=document, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    health, message = run.stdout.splitlines()
    return health, message


def plan_status(status: RolloutStatus) -> dict[str, Any]:
    plan = plan_for("app", ["a", "b"], (AwaitReady(2, 60),))
    stored = StoredPlan("plan", "uid", plan, "sha256:1", "1", status, Requests(), generation=1)
    return dump_status(with_conditions(stored, status, AT))


def test_every_phase_of_a_plan_has_its_health(tmp_path: Path) -> None:
    assert HEALTH.keys() == set(Phase)
    for phase, health in HEALTH.items():
        found = judged(tmp_path, "ConsumerRolloutPlan", plan_status(RolloutStatus(phase, "so it is")))
        prefix = f"{phase}: " if health == "Degraded" else ""
        assert found == (health, f"{prefix}so it is"), phase
    held = replace(RolloutStatus(Phase.PENDING), held="waits for approval")
    assert judged(tmp_path, "ConsumerRolloutPlan", plan_status(held)) == ("Suspended", "waits for approval")
    assert judged(tmp_path, "ConsumerRolloutPlan", None) == ("Progressing", "no status yet")


def test_every_end_of_a_run_gives_a_policy_its_health(tmp_path: Path) -> None:
    ends = {
        DecisionNews(2, 6, None, "6 are right.", "p", None): ("Healthy", "6 are right."),
        DecisionNews(2, 2, "OldData", "Hold at 2.", None, None): ("Healthy", "Hold at 2."),
        NoDecisionNews("nobody answers", is_stalled=False): ("Progressing", "nobody answers"),
        NoDecisionNews("field spec is wrong", is_stalled=True): ("Degraded", "field spec is wrong"),
    }
    for news, health in ends.items():
        status = dump_policy_status(next_status(PolicyStatus(), news, AT, 1, None))
        assert judged(tmp_path, "ConsumerScalingPolicy", status) == health
    assert judged(tmp_path, "ConsumerScalingPolicy", None) == ("Healthy", "no run has decided on it yet")
