"""Plans on their way to people: which are offered, what is asked, and answers that are kept."""

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from planner.approval.offers import (
    FILE,
    NOBODY,
    Answer,
    Offer,
    ask,
    describe_answer,
    keep_answer,
    keep_asked,
    offer_plans,
    read_answer,
    read_offer,
)
from planner.errors import BadInputError
from planner.policies.cluster_reports import ClusterReport
from planner.storage.layout import RunFolder
from planner.storage.run import Decided, Run
from tests.sample_builders import POLICY
from tests.unit.test_stages import decided, planned

APPROVERS = "  approval: {approvers: [ana, ben]}\n"
BY_FILES = ClusterReport()


def made(tmp_path: Path, policy: str = POLICY) -> tuple[Run, list[Decided]]:
    """Return a run on files with one plan, from 3 to 6."""
    policies = tmp_path / "policies"
    policies.mkdir(exist_ok=True)
    (policies / "shop.yaml").write_text(policy, encoding="utf-8")
    run = decided(policies, tmp_path / "data", arriving=70)
    lines = planned(run)
    shutil.copytree(policies, run.folder.policies, dirs_exist_ok=True)
    return run, lines


def later(run: Run, lines: list[Decided], minutes: int) -> tuple[Run, Decided]:
    """Return a run that came to the same plan on a snapshot of ``minutes`` later."""
    (line,) = lines
    next_run = replace(run, until=run.until + timedelta(minutes=minutes))
    shutil.copytree(run.folder.path, next_run.folder.path)
    plan = Path(str(line["plan"]))
    moved = next_run.folder.path / plan.relative_to(run.folder.path)
    assert moved.exists()
    return next_run, {**line, "plan": str(moved)}


def offered(run: Run, lines: list[Decided], at: datetime) -> list[Offer]:
    return list(offer_plans(run, lines, BY_FILES, at).plans)


def answer(word: str, by: str | None = "ana", reason: str | None = None) -> Answer:
    return Answer(plan="shop-1", digest="sha256:1", answer=word, by=by, at="2026-11-21T10:05:00+00:00", reason=reason)


def test_an_event_names_the_change_its_reason_and_its_digest_and_a_task_that_is_tried_again_offers_it_again(
    tmp_path: Path,
) -> None:
    run, lines = made(tmp_path)
    (offer,) = offered(run, lines, run.until)
    assert (offer["policy"], offer["group"], offer["from"], offer["to"]) == ("shop", "shop", 3, 6)
    assert offer["reason"].startswith("Scale from 3 to 6 consumers")
    assert read_offer({**offer, "more": 1}) == offer
    assert ask(offer)["digest"] == offer["digest"]
    assert offered(run, lines, run.until) == [offer], "the event of a task that failed may never have been"


def test_the_same_change_is_offered_once_while_its_plan_holds(tmp_path: Path) -> None:
    run, lines = made(tmp_path)
    assert len(offered(run, lines, run.until)) == 1
    known = json.loads((run.data / FILE).read_text(encoding="utf-8"))
    until = datetime.fromisoformat(known["body"]["policies"]["shop"]["until"])
    other = tmp_path / "other"
    other.mkdir()
    other_run, other_lines = made(other, POLICY.replace("seconds: 120", "seconds: 110"))
    again = replace(other_run, data=run.data)
    assert offered(again, other_lines, run.until + timedelta(minutes=10)) == []
    # Once it is over, nothing is asked for it any more; a plan that holds longer is.
    assert offered(run, lines, until) == []
    text = (run.data / FILE).read_text(encoding="utf-8")
    assert offered(again, [{**other_lines[0]}], run.until) == []
    (run.data / FILE).write_text(text.replace("{", "", 1), encoding="utf-8")
    assert len(offered(again, other_lines, run.until)) == 1, "a file that cannot be read costs one question more"
    assert (run.data / f"{FILE}.unreadable").exists()


def test_a_change_whose_offer_came_to_no_question_is_offered_by_the_next_run(tmp_path: Path) -> None:
    """Airflow starts no run for an event that meets an earlier one which it has not taken yet."""
    run, lines = made(tmp_path)
    (offer,) = offered(run, lines, run.until)
    other = tmp_path / "other"
    other.mkdir()
    other_run, other_lines = made(other, POLICY.replace("seconds: 120", "seconds: 110"))
    next_run, soon = replace(other_run, data=run.data), run.until + timedelta(minutes=10)
    keep_asked([{**ask(offer), "policy": "bank"}])  # people are asked, but not for this one
    (again,) = offered(next_run, other_lines, soon)
    assert again["digest"] != offer["digest"]
    keep_asked([{**ask(offer), "digest": again["digest"]}])
    assert offered(run, lines, soon) == []


def test_of_policies_in_a_cluster_only_plans_that_it_has_are_offered(tmp_path: Path) -> None:
    run, lines = made(tmp_path)
    run.folder.origin.write_text('{"namespace": "shop", "kubeconfig": null, "objects": {}}', encoding="utf-8")
    name = f"shop-{run.until:%Y%m%d-%H%M%S}"
    for open_plan, count in (("shop-20261121-000000", 0), (name, 1)):
        report = ClusterReport(plans={"shop": open_plan})
        assert len(offer_plans(run, lines, report, run.until).plans) == count


def test_a_plan_that_cannot_be_read_is_a_sentence_and_the_run_goes_on(tmp_path: Path) -> None:
    run, lines = made(tmp_path)
    Path(str(lines[0]["plan"])).write_text("kind: [", encoding="utf-8")
    result = offer_plans(run, lines, BY_FILES, run.until)
    assert list(result.plans) == []
    assert result.failures["shop"].startswith("its plan was not offered: ")


def test_the_question_has_the_figures_the_steps_the_digest_and_the_link_for_the_policys_approvers(
    tmp_path: Path,
) -> None:
    run, lines = made(tmp_path, POLICY + APPROVERS)
    (offer,) = offered(run, lines, run.until)
    question = ask(offer, "https://airflow/consumer-planner/pages/1/shop")
    assert question["approvers"] == ["ana", "ben"]
    assert question["subject"] == "shop: 3 to 6?"
    assert not question["is_approved"]
    shown = question["body"].splitlines()
    assert shown[0].startswith("**Scale from 3 to 6 consumers")
    for words in ("- Queues that move: ", "- Longest pause: ", "- Messages that come twice: "):
        assert [line for line in shown if line.startswith(words)] != [], words
    assert "- Steps without a way back: none" in shown
    assert f"- Digest `{offer['digest']}`" in shown
    assert "- [The page of the plan](https://airflow/consumer-planner/pages/1/shop)" in shown
    assert "- Approvers: ana, ben" in shown
    assert any(line.startswith("- Step 1: ") for line in shown)


def test_a_rejection_and_its_reason_are_shown_when_the_policys_next_plan_is_asked_for(tmp_path: Path) -> None:
    run, lines = made(tmp_path)
    (offer,) = offered(run, lines, run.until)
    assert "Last time" not in ask(offer)["body"]
    keep_answer(Path(offer["plan"]), answer("Reject", reason=f"too many\nat once {'x' * 900}"))
    next_run, line = later(run, lines, 20)
    (next_run.folder.policy("shop").answer).unlink()
    body = ask({**offer, "plan": str(line["plan"])})["body"]
    assert "- Last time: Reject of shop-1 by ana, 2026-11-21T10:05: too many\\nat once xxx" in body
    assert max(map(len, body.splitlines())) < 700
    # The question is cleared once the plan is over: nobody answers, and what ana said stays.
    keep_answer(Path(offer["plan"]), answer(NOBODY, by=None))
    assert ask({**offer, "plan": str(line["plan"])})["body"] == body
    keep_answer(Path(offer["plan"]), answer("Approve"))
    assert "- Last time: Approve of shop-1 by ana" in ask({**offer, "plan": str(line["plan"])})["body"]
    assert "nobody answered for shop-1" in describe_answer(answer(NOBODY, by=None))


def test_a_plan_that_was_changed_after_it_was_offered_is_not_asked_for(tmp_path: Path) -> None:
    run, lines = made(tmp_path)
    (offer,) = offered(run, lines, run.until)
    with pytest.raises(BadInputError, match="it was changed meanwhile"):
        ask({**offer, "digest": "sha256:0"})
    assert read_answer(Path(offer["plan"])) is None
    RunFolder(run.folder.path).policy("shop").answer.write_text("[]", encoding="utf-8")
    assert read_answer(Path(offer["plan"])) is None


OFFER = {"policy": "p", "group": "g", "from": 2, "to": 4, "reason": "r", "digest": "sha256:1", "plan": "/p"}


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        (None, "policy"),
        ([], "policy"),
        ({"policy": "p"}, "group"),
        ({**OFFER, "policy": 1}, "policy"),
        ({**OFFER, "from": "2"}, "from"),
        ({**OFFER, "to": True}, "to"),
        ({**OFFER, "plan": ["/p"]}, "plan"),
    ],
)
def test_what_is_no_offer_is_refused_by_the_field_that_it_lacks(extra: object, field: str) -> None:
    assert read_offer(OFFER) == OFFER
    with pytest.raises(BadInputError, match=f"its extra has no {field}, expected one of type "):
        read_offer(extra)
