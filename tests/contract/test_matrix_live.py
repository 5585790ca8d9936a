"""A sample of the truth matrix: eight real groups side by side, judged as ``make matrix`` judges them all."""

from collections.abc import Iterator

import pytest

from tests.matrix.cells import Cell, cells
from tests.matrix.judging import WRONG, Verdict, judge
from tests.matrix.recording import record, running

pytestmark = pytest.mark.cluster

SAMPLE = (
    "kafka-java-20ms-4q-load120-poll-b500",
    "kafka-java-50ms-4q-load50-poll-b500-blocked-queue",
    "librdkafka-20ms-4q-load120-poll-b1",
    "librdkafka-50ms-4q-load50-poll-b1-slow-member",
    "push-550-50ms-4q-load120-auto",
    "push-550-50ms-4q-load80-auto-hot-queue",
    "push-550-50ms-4q-load50-auto-blocked-queue",
    "pop-50ms-4q-load120-each",
)
WATCH_S = 150


@pytest.fixture(scope="module")
def verdicts() -> Iterator[dict[str, Verdict]]:
    """All cells watched at the same time, on one broker of each system."""
    by_name = {cell.name: cell for cell in cells()}
    sample: list[Cell] = [by_name[name] for name in SAMPLE]
    with running(kafka=True, rocketmq=True) as groups:
        recorded = record(sample, groups, WATCH_S)
    yield {one.cell.name: judge(one.cell, one.samples, one.sample_every_s, one.policy, one.rates) for one in recorded}


@pytest.mark.parametrize("name", SAMPLE)
def test_capacity_is_right_or_an_honest_bound(verdicts: dict[str, Verdict], name: str) -> None:
    verdict = verdicts[name]
    assert verdict.capacity != WRONG, f"really {verdict.true_capacity}: {verdict.last}"


@pytest.mark.parametrize("name", SAMPLE)
def test_the_decision_follows_from_the_truth(verdicts: dict[str, Verdict], name: str) -> None:
    verdict = verdicts[name]
    assert verdict.decision != WRONG, f"right are {verdict.right_targets}: {verdict.last}"


@pytest.mark.parametrize("name", SAMPLE)
def test_the_doctor_names_the_true_cause_and_no_other(verdicts: dict[str, Verdict], name: str) -> None:
    verdict = verdicts[name]
    assert verdict.diagnosis != WRONG, f"true causes are {verdict.true_causes}: {verdict.last}"
