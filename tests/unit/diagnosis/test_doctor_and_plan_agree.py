"""The doctor and the plan never contradict each other on the same samples: all recorded groups of known truth."""

import re
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
import yaml

from planner import pipeline
from planner.decision.decision import Decision, HoldCause
from planner.diagnosis.diagnose import examine
from planner.diagnosis.finding import Diagnosis
from planner.diagnosis.group_evidence import GroupEvidence
from planner.documents.policy import ConsumerScalingPolicy
from planner.model.samples import GroupSample
from planner.sources.capture import open_capture
from tests.sample_builders import POLICY
from tests.unit.diagnosis.test_recorded_members import LOAD, TRUTH, recording

EXAMPLE = Path(__file__).parents[3] / "examples/captures/two-brokers-day"
WATCH_S = 120.0
BEYOND_THE_PLAN = (HoldCause.UNSETTLED, HoldCause.UNSUPPORTED_STRATEGY)
"""What the plan holds for where it cannot simulate a group: POP consumers share all queues."""


def policy_for(sample: GroupSample) -> ConsumerScalingPolicy:
    """Return a policy that asks for no more than the samples of the watch show."""
    raw = yaml.safe_load(POLICY)
    where = {"rocketmq": "nameServers", "kafka": "bootstrapServers"}[sample.system]
    raw["spec"]["source"] = {
        "system": sample.system,
        where: ["127.0.0.1:1"],
        "cluster": sample.cluster,
        "group": sample.group,
    }
    raw["spec"]["window"]["seconds"] = int(WATCH_S)
    # Members of one recording ran in one process, each of which stands for a pod.
    raw["spec"]["membersPerPod"] = 1
    return ConsumerScalingPolicy.model_validate(raw)


@cache
def example() -> list[GroupSample]:
    return list(open_capture(EXAMPLE).samples())


@cache
def both(capture: str, group: str) -> tuple[Diagnosis, Decision]:
    """Return what the doctor and the plan say of the first ``WATCH_S`` seconds of a recorded group."""
    return both_of(recording(capture)[group])


def both_of(whole: list[GroupSample], after_s: float = 0.0) -> tuple[Diagnosis, Decision]:
    since = whole[0].at + timedelta(seconds=after_s)
    until = since + timedelta(seconds=WATCH_S + 5)
    samples = tuple(sample for sample in whole if since <= sample.at <= until)
    policy = policy_for(samples[-1])
    snapshot = pipeline.take_snapshot(samples, 5.0, policy, samples[-1].at)
    outcomes = pipeline.simulate(snapshot, policy)
    return examine(GroupEvidence(samples)), pipeline.decide(snapshot, outcomes, policy, samples[-1].at).decision


def load_codes(diagnosis: Diagnosis) -> set[str]:
    return {finding.code for finding in diagnosis.findings} & LOAD


@pytest.mark.parametrize(("capture", "group"), TRUTH)
def test_both_agree_on_every_recorded_group(capture: str, group: str) -> None:
    agree(*both(capture, group))


@pytest.mark.parametrize(("capture", "group"), [key for key, cause in TRUTH.items() if cause == "slow-member"])
def test_a_slow_member_is_not_answered_with_pods(capture: str, group: str) -> None:
    _, decision = both(capture, group)
    assert decision.target == decision.current, decision.reason


@pytest.mark.parametrize("minute", [1, 6, 11, 16, 21, 26, 31])
def test_both_agree_over_the_day_of_the_example(minute: int) -> None:
    """Calm, noon with an overload, a member more, the dip, and the evening with a hot queue."""
    agree(*both_of(example(), 60.0 * minute))


def only_for_headroom(decision: Decision) -> bool:
    """Return whether the present count keeps up, and the policy alone asks for more: a bound of 80 %, a time to drain.

    Five in a hundred are what the upper rate of the window lies above what came in.
    """
    (present,) = (one for one in decision.rejected if one.count == decision.current)
    used = [int(percent) for reason in present.reasons for percent in re.findall(r"used at (\d+)%", reason)]
    return all(percent <= 105 for percent in used) and "never be gone" not in " ".join(present.reasons)


def agree(diagnosis: Diagnosis, decision: Decision) -> None:
    codes = load_codes(diagnosis)
    grows = decision.target > decision.current
    if not codes:
        assert not grows or only_for_headroom(decision), f"the doctor finds nothing, the plan says: {decision.reason}"
    if "too-few-consumers" in codes:
        no_count_helps = decision.hold_cause is HoldCause.NO_COUNT_MEETS
        assert grows or no_count_helps or decision.hold_cause in BEYOND_THE_PLAN, decision.reason
    if "hot-queue" in codes:
        (finding,) = (one for one in diagnosis.findings if one.code == "hot-queue")
        assert grows or finding.about[0] in decision.reason, decision.reason
    if codes:
        assert decision.target >= decision.current, f"the doctor finds {codes}, the plan says: {decision.reason}"


def test_the_recordings_hold_every_cause() -> None:
    found = set().union(*(load_codes(both(*key)[0]) for key in TRUTH))
    assert found == {"stalled", "too-few-consumers", "slow-member", "hot-queue"}
