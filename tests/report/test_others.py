"""The other groups that the same pods serve, on the page of the plan that is for all of them."""

from pathlib import Path

from planner import pipeline
from planner.report import write_report
from planner.report.others import others
from tests.unit.rollout.test_shared_pods import case, load, plan_for


def test_the_page_tells_what_the_plan_does_to_each_other_group(tmp_path: Path) -> None:
    """Red when the section is left out, has the wrong group's figures, or comes where there is no other group."""
    busy, idle = case("busy", load() / 4, ["idle"]), case("idle", load() * 2, ["busy"])
    made = plan_for(busy, idle)
    (row,) = others(made)
    (other,) = made.others or ()
    assert (row.group, row.policy, row.alone) == ("group-idle", "idle", other.reason)
    assert [share.consumer for share in row.shares if share.before is None] != [], "newcomers own nothing now"
    assert sum(share.before or 0 for share in row.shares) == other.preconditions.queues
    assert sum(share.after or 0 for share in row.shares) == other.preconditions.queues
    record = pipeline.decide_shared((busy, idle))["busy"]
    outcomes = pipeline.simulate(busy.snapshot, busy.policy)
    page = write_report(tmp_path / "page.html", busy.snapshot, outcomes, record, made).read_text(encoding="utf-8")
    assert "The other groups in these pods" in page
    assert row.expected in page
    assert others(None) == ()
    alone = pipeline.plan(busy.snapshot, record, busy.policy, outcomes)
    assert others(alone) == ()
    assert "The other groups" not in write_report(
        tmp_path / "alone.html", busy.snapshot, outcomes, record, alone
    ).read_text(encoding="utf-8")
