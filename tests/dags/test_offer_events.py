"""Which asset events the approval DAG goes by, and who may read the pages that its questions link to."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planner.errors import BadInputError
from scripts.run_local import ROOT
from tests.dags.answering import airflow_environment, settings_in

pytestmark = pytest.mark.airflow

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
OFFER = {"policy": "shop", "group": "shop", "from": 2, "to": 4, "reason": "r", "digest": "sha256:1", "plan": "/p"}


def event(minutes: int, source: tuple[str | None, str | None] = ("consumer_planner", "offer"), **changed: Any) -> Any:
    dag, task = source
    at = AT + timedelta(minutes=minutes)
    return SimpleNamespace(
        source_dag_id=dag, source_task_id=task, timestamp=at, extra={"plans": [{**OFFER, **changed}]}
    )


def test_of_several_plans_of_a_policy_the_newest_is_asked_for() -> None:
    from planner.orchestration.assets import offers_of

    events = [event(10, digest="sha256:2"), event(0), event(5, policy="bank")]
    assert {each["policy"]: each["digest"] for each in offers_of(events)} == {"shop": "sha256:2", "bank": "sha256:1"}


@pytest.mark.parametrize("source", [(None, None), ("other", "offer"), ("consumer_planner", "plan")])
def test_an_event_that_another_task_or_a_request_made_is_refused(source: tuple[str | None, str | None]) -> None:
    from planner.orchestration.assets import offers_of

    with pytest.raises(BadInputError, match="expected task offer of DAG consumer_planner"):
        list(offers_of([event(0), event(1, source)]))


def test_no_page_is_served_to_a_stranger(tmp_path: Path) -> None:
    """Red when the route has no check of Airflow's own: plugins' apps are open to all otherwise."""
    ask = (
        "from starlette.testclient import TestClient; from planner.orchestration.pages import Pages; "
        "print('STATUS', TestClient(Pages()).get('/pages/20261121T101500.000Z/shop').status_code)"
    )
    env = airflow_environment(settings_in(tmp_path))
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert "STATUS 401" in done.stdout, done.stdout + done.stderr
