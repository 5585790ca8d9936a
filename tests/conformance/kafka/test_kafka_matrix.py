"""What is tried on real Kafka groups, before any is started."""

from collections import Counter
from typing import cast

import pytest

from planner.documents.forecast import forecast
from tests.conformance.kafka.__main__ import AT_ONCE, next_wave
from tests.conformance.kafka.cells import Case, Cell, Document
from tests.conformance.kafka.coordinator import Picture
from tests.conformance.kafka.group import Before, Group
from tests.conformance.kafka.matrix import FREEZE, JOIN, LEAVE, cases, cells
from tests.conformance.kafka.requests import request
from tests.conformance.kafka.stage import Stage


def described(cell: Cell) -> Document:
    """The request of a group that was never started; its partitions go round, its ids are as the broker makes them."""
    group = Group(Case(cell, 0), cast("Stage", None))
    owned = {
        name: frozenset((group.topic, number) for number in range(index, cell.partitions, cell.members))
        for index, name in enumerate(group.members)
    }
    picture = Picture({name: f"{name}-5f0c" for name in group.members}, owned, is_stable=True)
    group.moment_ms = 12_000
    return request(group, Before(picture, [0] * cell.partitions, last_event_ms=0), "4.3.1")


@pytest.mark.parametrize("cell", [one for one in cells() if one.rate == 10.0 and not one.backlog], ids=str)
def test_every_change_is_one_that_can_be_forecast(cell: Cell) -> None:
    document = described(cell)
    answer = forecast({**document, "trials": 2})
    assert not [word for word in answer["warnings"] if "no model" in word]
    assert document["since_rebalance_s"] == 12.0


def test_nobody_can_know_the_id_of_a_newcomer_to_a_group_of_kip_848() -> None:
    assert described(Cell("uniform", JOIN))["change"]["clients"] == [{"id": None}]
    (newcomer,) = described(Cell("range", JOIN))["change"]["clients"]
    assert newcomer["id"] is not None


def test_every_case_has_an_id_of_its_own() -> None:
    ids = Counter(case.id for case in cases())
    assert max(ids.values()) == 1


def test_the_kinds_that_are_judged_have_cases_enough() -> None:
    kinds = Counter((case.cell.kind, case.cell.change.get("how", "")) for case in cases())
    assert min(kinds.values()) >= 15, kinds


def test_a_wave_shares_client_version_and_blow() -> None:
    wanted = [Case(Cell("range", change), number) for number in range(20) for change in (JOIN, FREEZE, LEAVE)]
    wave = next_wave(wanted)
    assert len(wave) == AT_ONCE
    assert {case.cell.kind for case in wave} == {"join", "leave"}


def test_the_same_case_draws_the_same_names_and_victims_again() -> None:
    one, other = (Group(Case(Cell("range", LEAVE), 3), cast("Stage", None)) for _ in range(2))
    assert (one.members, one.victims) == (other.members, other.victims)
