"""Real groups of known truth, recorded live with default clients: the doctor names the cause, and no other at error.

``tests/contract/recordings``: each group of a capture has its cause in ``truth.json``.
"""

import json
import re
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from planner.diagnosis.diagnose import examine
from planner.diagnosis.finding import Diagnosis, Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.samples import GroupSample
from planner.sources.capture import open_capture

RECORDINGS = Path(__file__).parents[2] / "contract/recordings"
CAPTURES = ("kafka-members", "rocketmq-members")
TRUTH: dict[tuple[str, str], str] = {
    (capture, group): cause
    for capture in CAPTURES
    for group, cause in json.loads((RECORDINGS / capture / "truth.json").read_text(encoding="utf-8")).items()
}
LOAD = {"stalled", "too-few-consumers", "slow-member", "hot-queue", "falling-behind"}

TOLD_LATE = {
    "hung": "it hangs 25 s after the first sample, and a batch that takes a minute is nothing unusual",
    "slow-batch": "its first commit comes after 100 s, the next one 100 s later",
    "x5": "500 records take 25 s, so two commits 30 s apart come after a minute",
    "overload-young": "its first messages come with the first sample",
}
"""Groups of which a minute does not tell, and why."""


@cache
def recording(capture: str) -> dict[str, list[GroupSample]]:
    by_group: dict[str, list[GroupSample]] = {}
    for sample in open_capture(RECORDINGS / capture).samples():
        by_group.setdefault(sample.group, []).append(sample)
    return by_group


@cache
def diagnosis(capture: str, group: str, watch_s: float) -> Diagnosis:
    whole = recording(capture)[group]
    until = whole[0].at + timedelta(seconds=watch_s)
    return examine(GroupEvidence(tuple(sample for sample in whole if sample.at <= until)))


@pytest.mark.parametrize(("capture", "group"), TRUTH)
@pytest.mark.parametrize("watch_s", [20, 60, 120, 300])
def test_the_true_cause_is_named_or_the_watch_that_shows_it_and_never_another(
    capture: str, group: str, watch_s: float
) -> None:
    found = diagnosis(capture, group, watch_s)
    cause = TRUTH[capture, group]
    assert {one.code for one in found.findings} & LOAD <= {cause}
    assert {one.code for one in found.findings if one.severity is Severity.ERROR} <= {"stalled"} & {cause}
    if cause != "healthy":
        assert found.findings or found.is_undecided


@pytest.mark.parametrize(("capture", "group"), TRUTH)
def test_five_minutes_tell_of_every_group(capture: str, group: str) -> None:
    codes = {one.code for one in diagnosis(capture, group, 300).findings} & LOAD
    cause = TRUTH[capture, group]
    assert codes == ({cause} if cause != "healthy" else set())


@pytest.mark.parametrize(("capture", "group"), [key for key in TRUTH if key[1] not in TOLD_LATE])
def test_a_minute_tells_of_most(capture: str, group: str) -> None:
    assert {one.code for one in diagnosis(capture, group, 65).findings} & LOAD <= {TRUTH[capture, group]}
    assert not diagnosis(capture, group, 65).is_undecided


def test_too_few_consumers_say_what_comes_in_and_what_they_do() -> None:
    """Three members of 50 records/s each by their service time, 180/s come in."""
    (finding,) = (one for one in diagnosis("kafka-members", "overload", 120).findings if one.code in LOAD)
    figures = re.fullmatch(
        r"Too few consumers: (\d+) messages/s come in, 3 members do (\d+) messages/s; see the plan", finding.title
    )
    assert figures
    assert 175 <= int(figures[1]) <= 185
    assert 130 <= int(figures[2]) <= 150
    assert finding.severity is Severity.WARNING
    assert "planner plan" in finding.advice


@pytest.mark.parametrize("client", ["498", "550"])
def test_too_few_consumers_with_full_pools_are_shown_what_more_threads_would_do(client: str) -> None:
    """Real push consumers of 5 threads and 50 ms a message: 100 messages/s each at most, 120 come in."""
    group = f"push-{client}-50ms-4q-load120-auto"
    (finding,) = (one for one in diagnosis("rocketmq-members", group, 300).findings if one.code in LOAD)
    advised = re.search(
        r"(\d) instead of 5 threads a member would serve at most (\d+) instead of ([\d.]+) messages/s "
        r"\(all 5 are busy now\), if what the listener calls and the processors keep up",
        finding.advice,
    )
    assert advised, finding.advice
    assert int(advised[1]) in (8, 9)
    assert 85 <= float(advised[3]) <= 105
    assert float(advised[2]) == pytest.approx(float(advised[3]) * int(advised[1]) / 5, rel=0.01)


def test_a_wait_that_the_policy_forbids_is_an_error() -> None:
    whole = recording("kafka-members")["overload"]
    found = examine(GroupEvidence(tuple(whole), oldest_message_s=60.0)).findings
    assert {one.code for one in found if one.severity is Severity.ERROR} == {"too-few-consumers"}
