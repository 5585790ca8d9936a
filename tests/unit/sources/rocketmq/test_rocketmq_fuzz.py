"""Damaged real answers and random bytes: our own errors come out, never anything else. ``fuzz`` runs many more."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.sources.rocketmq import broker_answers
from planner.sources.rocketmq.requests import RequestCode
from tests.unit.sources.rocketmq import crash_cases, fuzz, samples

FRAMES = {f"{path.parent.name}/{path.stem}": path.read_bytes() for path in sorted(samples.FIXTURES.rglob("*.frame"))}


def test_every_request_has_a_reader() -> None:
    header_only = {"14", "29", "30", "31"}
    assert {str(int(code)) for code in RequestCode} == fuzz.READERS.keys() | header_only


@pytest.mark.parametrize("name", FRAMES)
def test_an_undamaged_frame_is_read_or_empty(name: str) -> None:
    version, _, stem = name.partition("/")
    code = stem.split("_")[0]
    is_success = samples.recorded(version, stem).code == 0
    # The answer to 26 is text of any kind, even none.
    assert (fuzz.outcome(code, "frame", FRAMES[name]) == "read") == (is_success or code == "26")


@pytest.mark.parametrize("part", range(4))
def test_20_000_damaged_answers_give_only_our_errors(part: int) -> None:
    counted, findings = fuzz.run(1, range(part * 5_000, (part + 1) * 5_000))
    assert not findings, "\n".join(map(str, findings[:5]))
    # Were all refused at the first byte, the test would be blind.
    assert min(counted[name] for name in ("read", "FrameError", "JsonError", "BodyError")) > 400


@pytest.mark.parametrize("number", range(len(crash_cases.CASES)))
def test_what_once_went_wrong_is_refused(number: int) -> None:
    assert fuzz.outcome(*crash_cases.CASES[number]) == "BodyError"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(sorted(fuzz.READERS)), st.sampled_from(["frame", "body"]))
def test_random_bytes_give_only_our_errors(data: bytes, code: str, kind: str) -> None:
    fuzz.outcome(code, kind, data)


def test_a_defect_is_found_with_the_bytes_that_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(body: bytes) -> object:
        return json.loads(body)["table"]["putTps"]

    assert broker_answers.runtime is fuzz.READERS["28"]
    monkeypatch.setitem(fuzz.READERS, "28", careless)  # type: ignore[misc]
    _, findings = fuzz.run(1, range(2_000))
    assert {finding.code for finding in findings} == {"28"}
    assert "case " in str(findings[0])
