"""Damaged real answers and random bytes: our own errors come out, never anything else. ``make fuzz`` runs many more."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_damage_reaches_every_kind_of_refusal() -> None:
    # Were all refused at the first byte, the fuzzer would be blind.
    outcomes = Counter(fuzz.outcome(*fuzz.case(Random(number))) for number in range(2_000))
    assert min(outcomes[name] for name in ("read", "FrameError", "JsonError", "BodyError")) > 40


@pytest.mark.parametrize("number", range(len(crash_cases.CASES)))
def test_what_once_went_wrong_is_refused(number: int) -> None:
    assert fuzz.outcome(*crash_cases.CASES[number]) == "BodyError"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(sorted(fuzz.READERS)), st.sampled_from(["frame", "body"]))
def test_random_bytes_give_only_our_errors(data: bytes, code: str, kind: str) -> None:
    fuzz.outcome(code, kind, data)
