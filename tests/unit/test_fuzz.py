"""Damaged inputs against every reader: typed errors alone, within bounded time and memory. ``make fuzz`` runs more."""

import signal
import time

import pytest

from planner.errors import BadInputError, PlannerError
from tests.fuzz import crash_cases, engine
from tests.fuzz.damage import damaged_bytes
from tests.fuzz.documents import sealed
from tests.fuzz.engine import Reader, attempt, bounded, run
from tests.fuzz.growth import arcs_of
from tests.fuzz.readers import NAMES, reader

pytestmark = pytest.mark.slow

CASES = 6_000
ONE_OUTCOME = ("scram", "capture", "plan file", "yaml", "watch event")
"""Those whose digest or proof no damage gets past; of a plan that cannot be read the controller's cache only tells."""


@pytest.mark.parametrize("name", NAMES)
def test_damaged_inputs_give_only_typed_errors(name: str) -> None:
    tried = reader(name)
    counted, findings = run(tried, 1, range(CASES))
    assert not findings, "\n".join(map(str, findings[:5]))
    assert counted.total() == CASES
    # Were all refused at the first byte, or none, the test would be blind.
    if name not in ONE_OUTCOME:
        assert counted["read"], counted
        assert len(counted) > 1, counted


NOT_ALL_READ = ("rocketmq", "yaml")
"""Frames of refusals, documents of other kinds."""
NOT_THERE = {"airflow form": "BadInputError"}
"""The plan file that the apply DAG's form names does not exist here."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_ALL_READ])
def test_valid_inputs_are_read(name: str) -> None:
    tried = reader(name)
    assert {tried.outcome(seed) for seed in tried.seeds()} - {NOT_THERE.get(name)} == {"read"}


@pytest.mark.parametrize("number", range(len(crash_cases.CASES)))
def test_what_once_went_wrong_is_typed(number: int) -> None:
    name, data, outcome = crash_cases.CASES[number]
    assert reader(name).outcome(data) == outcome


def test_a_case_too_large_to_be_sealed_stays_as_it_is() -> None:
    """A list of 10^7 lists takes more than the bound once it is read; red where the fuzzer itself ends there."""
    large = b"[" + b"[]," * 10_000_000 + b"[]]"
    with bounded():
        assert sealed(large) is large


def a_reader(read: object) -> Reader:
    return Reader("test", read, lambda: [b"seed"], (__name__,), damaged_bytes)  # type: ignore[arg-type]


def test_a_defect_is_found_with_its_input() -> None:
    def careless(data: bytes) -> object:
        if data == b"seed":
            return None
        if not data:
            raise BadInputError("empty")
        return {}[data]

    counted, findings = run(a_reader(careless), 1, range(50))
    assert counted["untyped"] == len(findings) > 20
    assert "KeyError" in str(findings[0])
    assert findings[0].data == engine.case(a_reader(careless), 1, findings[0].number)


def test_too_much_memory_and_time_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(_: bytes) -> object:
        return bytearray(600 * 1024 * 1024)

    def endless(_: bytes) -> object:
        while True:
            try:
                time.sleep(0)
            except Exception:
                continue

    monkeypatch.setattr(engine, "ENDLESS_S", 0.2)
    with bounded():
        assert attempt(a_reader(hungry), b"")[1] == "takes more than 512 MiB"
        assert attempt(a_reader(endless), b"")[1].startswith("took more than")
        monkeypatch.setattr(engine, "SLOW_S", -1.0)
        assert attempt(a_reader(len), b"")[1].startswith("took ")
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_new_arcs_tell_inputs_apart() -> None:
    def branching(data: bytes) -> object:
        if data == b"a":
            return 1
        raise PlannerError("no")

    tried = a_reader(branching)
    assert arcs_of(tried, b"b") == arcs_of(tried, b"c") != arcs_of(tried, b"a")
