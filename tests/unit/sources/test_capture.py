import gzip
import json
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.policy import parse_policy
from planner.errors import BadInputError, DocumentError, NewerVersionError, UnknownNameError
from planner.pipeline import decide, land_samples, observe_capture, plan, simulate, take_snapshot
from planner.sources.capture import HEADER_FILE, SAMPLES_FILE, Capture, open_capture, write_capture
from tests.sample_builders import POLICY, steady, watch


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    return write_capture(tmp_path / "capture", watch(25, steady(60, 55)), 5.0, ("a story",), (("rocketmq", "5.5.0"),))


def test_samples_come_back_equal(capture: Capture) -> None:
    again = open_capture(capture.folder)
    assert tuple(again.samples()) == watch(25, steady(60, 55))
    assert (again.header.samples, again.header.groups) == (25, ("shop",))


def test_equal_samples_give_equal_bytes(capture: Capture, tmp_path: Path) -> None:
    other = write_capture(tmp_path / "other", capture.samples(), 5.0, ("a story",), (("rocketmq", "5.5.0"),))
    for name in (HEADER_FILE, SAMPLES_FILE):
        assert (other.folder / name).read_bytes() == (capture.folder / name).read_bytes()


def test_a_truncated_capture_is_named(capture: Capture) -> None:
    path = capture.folder / SAMPLES_FILE
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DocumentError, match=r"samples\.jsonl\.gz: cut off"):
        list(open_capture(capture.folder).samples())


def test_a_capture_with_a_sample_less_is_named(capture: Capture) -> None:
    path = capture.folder / SAMPLES_FILE
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(DocumentError, match=r"found 24 samples .* for its 25"):
        list(open_capture(capture.folder).samples())


def test_a_newer_capture_is_refused_as_newer(capture: Capture) -> None:
    path = capture.folder / HEADER_FILE
    path.write_bytes(path.read_bytes().replace(b"v1alpha1", b"v2"))
    with pytest.raises(NewerVersionError, match=r"capture\.json"):
        open_capture(capture.folder)


def test_a_line_with_an_unknown_field_is_named(capture: Capture) -> None:
    path = capture.folder / SAMPLES_FILE
    first, *rest = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    spoiled = json.dumps({**json.loads(first), "mood": "good"}).encode() + b"\n"
    path.write_bytes(gzip.compress(b"".join((spoiled, *rest))))
    with pytest.raises(DocumentError, match=r"line 1: field body\.mood is not known"):
        list(open_capture(capture.folder).samples())


def test_an_unknown_group_is_named_with_those_that_are_there(capture: Capture) -> None:
    with pytest.raises(UnknownNameError, match="group nobody is not in this capture, which holds shop"):
        list(capture.samples("nobody"))


def test_a_missing_folder_and_an_empty_capture_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="does not exist"):
        open_capture(tmp_path / "absent")
    with pytest.raises(BadInputError, match="nothing was sampled"):
        write_capture(tmp_path / "empty", (), 5.0, (), ())


def test_the_whole_path_from_capture_to_plan(capture: Capture, tmp_path: Path) -> None:
    policy = parse_policy(POLICY, "p.yaml")
    header = capture.header
    samples = observe_capture(capture, "shop", header.started_at, header.ended_at)
    assert len(samples) == 24  # the interval's end is not in it
    landed = land_samples(tmp_path / "data", samples)
    assert land_samples(tmp_path / "data", samples) == landed
    taken = take_snapshot(samples, header.sample_every_s, policy, samples[-1].at)
    outcomes = simulate(taken, policy)
    record = decide(taken, outcomes, policy)
    made = plan(taken, record, policy, outcomes)
    # 22 queues at 12 messages/s; capacity 2 threads / 20 ms = 100: 6 queues fit, so 3 consumers (8) do not.
    assert record.decision.target == 4
    assert made is not None
    assert made.snapshot.digest == SNAPSHOT.digest(taken)


def test_no_sample_before_the_time_is_a_named_error() -> None:
    samples = watch(2)
    with pytest.raises(UnknownNameError, match="no sample up to"):
        take_snapshot(samples[1:], 5.0, parse_policy(POLICY, "p.yaml"), samples[0].at)
