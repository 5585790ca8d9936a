"""The doctor and the plan never contradict each other on the same samples: all recorded groups."""

from datetime import timedelta
from functools import cache

import pytest
import yaml

from planner import pipeline
from planner.decision.decision import Decision
from planner.diagnosis.diagnose import examine
from planner.diagnosis.finding import Diagnosis
from planner.diagnosis.group_evidence import GroupEvidence
from planner.documents.policy import ConsumerScalingPolicy
from planner.model.samples import GroupSample
from tests.agreement import LOAD, contradictions
from tests.recordings import MEMBERS, Recording, cell, cell_names, day, members
from tests.sample_builders import POLICY
from tests.unit.diagnosis.test_recorded_members import TRUTH

WATCH_S = 120.0
GROUPS = [(capture, group) for capture in MEMBERS for group in members(capture)]
MINUTES = [
    *(("two-brokers-day", minute) for minute in (1, 6, 11, 16, 21, 26, 31)),
    *(("kafka-restart-overload", minute) for minute in (1, 3, 5, 7, 9, 11, 13, 15)),
]
"""Calm, noon with an overload, a member more, the dip, a hot queue; a rolling restart, an overload that stays."""


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


def both(recording: Recording, after_s: float = 0.0) -> tuple[Diagnosis, Decision]:
    """Return what the doctor and the plan say of ``WATCH_S`` seconds of a recorded group."""
    since = recording.samples[0].at + timedelta(seconds=after_s)
    until = since + timedelta(seconds=WATCH_S + recording.every_s)
    samples = tuple(sample for sample in recording.samples if since <= sample.at <= until)
    policy = policy_for(samples[-1])
    snapshot = pipeline.take_snapshot(samples, recording.every_s, policy, samples[-1].at)
    outcomes = pipeline.simulate(snapshot, policy)
    diagnosis = examine(GroupEvidence(samples, recording.every_s))
    return diagnosis, pipeline.decide(snapshot, outcomes, policy, samples[-1].at).decision


def agree(diagnosis: Diagnosis, decision: Decision) -> None:
    found = list(contradictions(diagnosis.findings, decision, is_undecided=bool(diagnosis.is_undecided)))
    assert not found, f"{found}: {decision.hold_cause}: {decision.reason}"


@cache
def of_group(capture: str, group: str) -> tuple[Diagnosis, Decision]:
    return both(members(capture)[group])


@pytest.mark.parametrize(("capture", "group"), GROUPS)
def test_both_agree_on_every_recorded_group(capture: str, group: str) -> None:
    agree(*of_group(capture, group))


@pytest.mark.parametrize("name", cell_names())
def test_both_agree_on_every_kept_cell_of_the_matrix(name: str) -> None:
    agree(*both(cell(name)))


@pytest.mark.parametrize(("name", "minute"), MINUTES)
def test_both_agree_over_the_days_of_the_examples(name: str, minute: int) -> None:
    agree(*both(day(name), 60.0 * minute))


def test_the_recordings_hold_every_cause() -> None:
    codes = {finding.code for key in TRUTH for finding in of_group(*key)[0].findings}
    assert codes & LOAD == LOAD - {"rewinding"}
