"""What Argo CD and Flux make of plans and policies: our pages' snippets by Argo CD's Lua, and Flux's own kstatus.

Both judge every status that the planner writes, and what the API server keeps before there is one.
"""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.documents.crd import plan_resource
from planner.documents.format import API_VERSION
from planner.documents.policy_status import DecisionNews, NoDecisionNews, PolicyStatus, dump_policy_status, next_status
from planner.documents.status import dump_status
from planner.execution.conditions import with_conditions
from planner.execution.phases import Phase
from planner.execution.ports import Requests, StoredPlan
from planner.execution.progress import RolloutStatus
from planner.rollout.steps import AwaitReady
from tests.builders import AT
from tests.clusters.kubernetes.build import health_binary, kstatus_binary
from tests.pod_groups import plan_for
from tests.unit.packaging.images import ROOT

# The programs are compiled first where they have not been yet.
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
FLUX = {"Healthy": "Current", "Progressing": "InProgress", "Degraded": "Failed"}
NEW = plan_resource().manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]
"""The status that the API server gives to a plan which nobody has looked at yet."""


def judged(folder: Path, kind: str, status: dict[str, Any] | None) -> tuple[str, str]:
    """Return health and message of an object with this status, by the snippet of its kind's page."""
    page = (ROOT / "docs" / PAGES[kind]).read_text(encoding="utf-8")
    found = re.search(rf"health\.consumerplanner\.dev_{kind}: \|\n((?:    .*\n)+)", page)
    assert found is not None, f"docs/{PAGES[kind]} has no snippet for {kind}"
    snippet = folder / "health.lua"
    snippet.write_text(found[1], encoding="utf-8")
    return _verdict(kind, status, str(health_binary()), str(snippet))


def by_flux(kind: str, status: dict[str, Any] | None) -> tuple[str, str]:
    """Return what kstatus makes of an object with this status, and its message."""
    return _verdict(kind, status, str(kstatus_binary()))


def _verdict(kind: str, status: dict[str, Any] | None, *command: str) -> tuple[str, str]:
    document = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": "orders", "namespace": "shop", "generation": 1},
        **({} if status is None else {"status": status}),
    }
    text = json.dumps(document)
    run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
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
        status = plan_status(RolloutStatus(phase, "so it is"))
        found = judged(tmp_path, "ConsumerRolloutPlan", status)
        prefix = f"{phase}: " if health == "Degraded" else ""
        assert found == (health, f"{prefix}so it is"), phase
        assert by_flux("ConsumerRolloutPlan", status)[0] == FLUX[health], phase
    held = replace(RolloutStatus(Phase.PENDING), held="waits for approval")
    assert judged(tmp_path, "ConsumerRolloutPlan", plan_status(held)) == ("Suspended", "waits for approval")
    assert by_flux("ConsumerRolloutPlan", plan_status(held)) == ("InProgress", "waits for approval")
    for new in (None, NEW):
        assert judged(tmp_path, "ConsumerRolloutPlan", new) == ("Progressing", "no status yet")
    assert by_flux("ConsumerRolloutPlan", NEW)[0] == "InProgress"


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
        assert by_flux("ConsumerScalingPolicy", status)[0] == FLUX[health[0]]
    assert judged(tmp_path, "ConsumerScalingPolicy", None) == ("Healthy", "no run has decided on it yet")
    assert by_flux("ConsumerScalingPolicy", None)[0] == "Current"
