"""What a policy's status says after runs: decision, conditions, and since when."""

from datetime import timedelta

import yaml

from planner.documents.crd import policy_resource
from planner.documents.policy_status import (
    LONGEST,
    DecisionNews,
    LearnedCapacity,
    NoDecisionNews,
    PolicyStatus,
    dump_policy_status,
    next_status,
    parse_policy_status,
)
from tests.builders import AT
from tests.unit.documents.test_crd import POLICIES, broken, pruned, schema_of

LATER = AT + timedelta(minutes=5)
LEARNED = LearnedCapacity(
    messages_per_second=50.0, low=45.0, high=55.0, observations=7, is_lower_bound=False, source="seen busy"
)
UP = DecisionNews(2, 6, None, "6 consumers are right.", "busy-1", LEARNED)
HOLD = DecisionNews(6, 6, "RightAlready", "Hold at 6.", None, None)
AWAY = NoDecisionNews("No decision: nobody answers.", is_stalled=False)
WRONG = NoDecisionNews("policy shop/busy: field spec: wrong", is_stalled=True)


def facts(status: PolicyStatus) -> dict[str, tuple[str, str]]:
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


def test_a_decision_is_ready_and_a_hold_is_one() -> None:
    first = next_status(PolicyStatus(), UP, AT, 1, LATER)
    assert facts(first) == {
        "Ready": ("True", "TooFewConsumers"),
        "Holding": ("False", "TooFewConsumers"),
        "Stalled": ("False", "Served"),
    }
    assert (first.observed_generation, first.plan, first.next_look_at) == (1, "busy-1", LATER)
    assert first.learned_capacity == LEARNED
    second = next_status(first, HOLD, LATER, 2, None)
    assert facts(second)["Ready"] == facts(second)["Holding"] == ("True", "RightAlready")
    assert (second.hold_cause, second.plan, second.next_look_at) == ("RightAlready", None, None)
    since = {condition.type: condition.last_transition_time for condition in second.conditions}
    assert since == {"Ready": AT, "Holding": LATER, "Stalled": AT}, "a time changes with its status alone"
    assert {condition.observed_generation for condition in second.conditions} == {2}


def test_since_when_is_since_the_first_of_equal_decisions() -> None:
    first = next_status(PolicyStatus(), UP, AT, 1, None)
    same = next_status(first, UP, LATER, 1, None).last_decision
    assert same is not None
    assert (same.since, same.at) == (AT, LATER)
    other = next_status(first, DecisionNews(2, 5, None, "5 are.", None, None), LATER, 1, None).last_decision
    assert other is not None
    assert (other.since, other.to_replicas) == (LATER, 5)


def test_without_a_decision_the_last_one_stays_and_only_a_wrong_policy_is_stalled() -> None:
    first = next_status(PolicyStatus(), HOLD, AT, 1, None)
    away = next_status(first, AWAY, LATER, 1, None)
    assert away.last_decision == first.last_decision
    assert facts(away) == {
        "Ready": ("False", "NoDecision"),
        "Holding": ("True", "RightAlready"),
        "Stalled": ("False", "Served"),
    }
    wrong = next_status(PolicyStatus(), WRONG, AT, 3, None)
    assert facts(wrong) == {
        "Ready": ("False", "InvalidPolicy"),
        "Holding": ("False", "NoDecision"),
        "Stalled": ("True", "InvalidPolicy"),
    }
    assert {condition.message for condition in wrong.conditions if condition.type != "Holding"} == {WRONG.sentence}


def test_a_sentence_is_one_bounded_line_without_passwords() -> None:
    long = NoDecisionNews("a\nb https://anna:secret@kafka " + "x" * 5_000, is_stalled=True)
    ready = next_status(PolicyStatus(), long, AT, 1, None).conditions[0]
    assert len(ready.message) == LONGEST
    assert "\n" not in ready.message
    assert "secret" not in ready.message


def test_the_definition_keeps_all_of_it_and_what_comes_back_is_equal() -> None:
    for status in (next_status(PolicyStatus(), UP, AT, 1, LATER), next_status(PolicyStatus(), WRONG, AT, 1, None)):
        document = {"spec": {}, "status": dump_policy_status(status)}
        schema = schema_of(POLICIES)
        assert pruned(document, schema)["status"] == document["status"]
        assert list(broken(document["status"], schema["properties"]["status"])) == []
        assert parse_policy_status(document["status"]) == status
    assert yaml.safe_load(yaml.safe_dump(policy_resource().manifest()))["spec"]["versions"][0]["subresources"]


def test_a_status_that_somebody_broke_is_begun_anew() -> None:
    assert parse_policy_status({"lastDecision": {"from": "many"}}) == PolicyStatus()
    assert parse_policy_status(None) == parse_policy_status({}) == PolicyStatus()
