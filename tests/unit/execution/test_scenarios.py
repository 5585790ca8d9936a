import pytest

from planner.execution.phases import Phase
from tests.unit.execution.worlds import SCENARIOS, Scenario, counts, drive, twice, untouched, wanted, world


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario[0])
def test_a_plan_that_nobody_disturbs_ends_in_the_new_state(scenario: Scenario) -> None:
    _, before, after, _ = scenario
    cluster = world(scenario)
    drive(cluster)
    status = cluster.status("plan-1")
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new"), status
    assert counts(cluster) == wanted(scenario)
    assert cluster.lowest_ready is not None
    assert cluster.lowest_ready >= min(before, after)
    assert untouched(cluster)
    assert not twice(cluster)
    assert all(step.finished_at is not None and step.message for step in status.steps)
