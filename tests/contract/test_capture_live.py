"""Two fresh minutes of a real cluster have the same shape as the bundled capture, and carry the path to a decision."""

import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from planner.documents.policy import read_policy
from planner.history.intervals import GAP_FACTOR
from planner.model.samples import GroupSample
from planner.pipeline import decide, simulate, take_snapshot
from planner.sources.capture import SAMPLES_FILE, Capture, open_capture
from tests.load import kafka_capture
from tests.load.record_capture import GROUP, record

ROOT = Path(__file__).parents[2]
BUNDLED = ROOT / "examples/captures/two-brokers-day"
POLICY = ROOT / "examples/policies/shop-orders.yaml"
KAFKA = ROOT / "examples/captures/kafka-restart-overload"
KAFKA_POLICY = ROOT / "examples/kafka/recorded-payments.yaml"

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    folder = tmp_path_factory.mktemp("capture")
    record(folder, seconds=120.0)  # the fourth consumer is there for 25 s of them
    return open_capture(folder)


def fields(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every field of a JSON value with the type of what is in it; entries of lists count as one."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from fields(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, f"{path}[]")
    else:
        yield path, type(value).__name__


def schema(capture: Capture) -> set[tuple[str, str]]:
    with gzip.open(capture.folder / SAMPLES_FILE) as lines:
        return {field for line in lines for field in fields(json.loads(line))}


def test_a_fresh_capture_tells_all_that_the_bundled_one_tells_and_more(fresh: Capture) -> None:
    missing = schema(open_capture(BUNDLED)) - schema(fresh)
    # The bundled one has problems in some samples, which a quiet minute need not have.
    assert {field for field in missing if field[0] != ".problems[]"} == set()
    # Recorded since then: what brokers are set to, whom they list, what members subscribe to.
    more = {field for field, _ in schema(fresh) - schema(open_capture(BUNDLED))}
    assert {".rocketmq.brokers[].role", ".listed[].broker", ".members[].subscriptions[].topic"} <= more, sorted(more)


def test_a_fresh_capture_reads_back(fresh: Capture) -> None:
    samples = list(fresh.samples())
    assert (len(samples), fresh.header.groups) == (25, (GROUP,))
    for before, sample in pairwise(samples):
        joined = {one.identity for one in sample.members} - {one.identity for one in before.members}
        for member in sample.members:  # who has just joined may own nothing yet, and a late answer is told as missing
            is_late = any(member.identity in problem for problem in sample.problems)
            assert member.owned or member.identity in joined or is_late, member
    assert {one.identity for one in samples[0].members} <= {
        one.identity for sample in samples[1:] for one in sample.members if one.owned
    }


def test_the_member_that_joined_and_left_is_seen(fresh: Capture) -> None:
    counts = [len(sample.members) for sample in fresh.samples()]
    assert (max(counts), counts[0], counts[-1]) == (4, 3, 3)


def test_a_fresh_capture_carries_the_path_to_a_decision(fresh: Capture) -> None:
    policy = read_policy(POLICY)
    # On a busy machine a look may be late, and what lies before it is a gap, which the window leaves out.
    changes = {
        "window": policy.spec.window.model_copy(update={"seconds": 60}),
        "freshness": policy.spec.freshness.model_copy(update={"min_completeness": 0.5}),
    }
    minute = policy.model_copy(update={"spec": policy.spec.model_copy(update=changes)})
    samples = list(fresh.samples())
    taken = take_snapshot(samples, fresh.header.sample_every_s, minute, fresh.header.ended_at)
    complete = {part.name: part.completeness for part in taken.parts}
    known = known_s(samples, fresh.header.sample_every_s)
    assert complete.pop("rates") == pytest.approx(min(1.0, known / 60), abs=0.1)
    assert set(complete) == {"routes", "members", "ownership", "offsets"}
    assert min(complete.values()) >= 0.9
    assert taken.capacity is not None
    outcomes = simulate(taken, minute)
    # 290 messages/s at the end, of which the hot queue's consumer gets more than it can do: 3 are too few.
    assert decide(taken, outcomes, minute).decision.target > 3


def known_s(samples: Sequence[GroupSample], every_s: float) -> float:
    """Return how much of the recording lies between two looks of which the second was in time."""
    spans = [(after.at - before.at).total_seconds() for before, after in pairwise(samples)]
    return sum(span for span in spans if span <= GAP_FACTOR * every_s)


def test_the_bundled_capture_is_small_and_half_an_hour_long() -> None:
    bundled = open_capture(BUNDLED)
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) <= 3 * 1024 * 1024
    assert (bundled.header.ended_at - bundled.header.started_at).total_seconds() >= 30 * 60
    assert sum(1 for _ in bundled.samples()) == bundled.header.samples


def test_the_bundled_kafka_capture_tells_its_story_and_carries_the_path_to_a_plan() -> None:
    bundled = open_capture(KAFKA)
    assert sum(path.stat().st_size for path in KAFKA.iterdir()) <= 1024 * 1024
    samples = list(bundled.samples())
    assert (len(samples), bundled.header.groups) == (bundled.header.samples, ("shop-payments",))
    # The rolling restart: a fifth member joins before an old one leaves, until all four have been replaced.
    assert max(len(sample.members) for sample in samples) == 5
    first, last = ({member.client_id for member in sample.members} for sample in (samples[0], samples[-1]))
    assert (len(first), len(last), first & last) == (4, 4, set())
    assert len({offsets.queue.topic for offsets in samples[-1].offsets}) == 2
    # The overload: four consumers cannot follow, more can.
    policy = read_policy(KAFKA_POLICY)
    taken = take_snapshot(samples, bundled.header.sample_every_s, policy, bundled.header.ended_at)
    answer = decide(taken, simulate(taken, policy), policy).decision
    assert (answer.current, answer.hold_cause) == (4, None)
    assert answer.target in {6, 8, 16}


@pytest.fixture(scope="module")
def fresh_kafka(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    folder = tmp_path_factory.mktemp("kafka-capture")
    kafka_capture.record(folder, seconds=60.0)  # each new member has a second before an old one leaves
    return open_capture(folder)


def test_a_fresh_kafka_capture_tells_all_that_the_bundled_one_tells(fresh_kafka: Capture) -> None:
    missing = schema(open_capture(KAFKA)) - schema(fresh_kafka)
    # A sample amid a rebalance shows neither owners nor subscriptions, and a quick recording may have none of these.
    assert {(field, kind) for field, kind in missing if field != ".problems[]" and kind != "NoneType"} == set()
    assert fresh_kafka.header.samples == 13
    members = [{member.client_id for member in sample.members} for sample in fresh_kafka.samples()]
    assert members[0] & members[-1] == set(), "the rolling restart replaces every member"
