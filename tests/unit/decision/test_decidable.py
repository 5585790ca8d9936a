"""Random valid groups get an answer: a small seeded part of ``python -m tests.decidable``."""

import random

import pytest

from tests.decidable import (
    COLUMNS,
    ROWS,
    Answer,
    ask,
    is_possible,
    share_decided,
    stateful,
    survey,
    table,
)

LEAST = 0.95
"""Share of groups with an answer, as issue 24 asks."""
POSITIONAL = ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
STATED = ("CONFIG", "MACHINE_ROOM_NEARBY")
"""Strategies whose next members need a word of the policy first: their lists, or their machine room."""


@pytest.mark.slow
def test_most_random_groups_are_planned_for_or_rightly_held() -> None:
    answers = tuple(survey(1))
    assert len(answers) == sum(is_possible(strategy, shape) for strategy in ROWS for shape in COLUMNS)
    assert share_decided(answers) >= LEAST, table(answers)
    by_name = [got for got in answers if got.strategy in POSITIONAL or got.shape == "StatefulSet"]
    held = [got for got in by_name if got.answer is Answer.OTHERWISE and not got.strategy.startswith(STATED)]
    assert not held, held


def test_batches_of_a_stateful_set_go_by_the_names_of_the_batch_before() -> None:
    """Red where the group between two batches has ids of no pod: nobody knows then what the next ones are named."""
    draw = random.Random("24 STATIC StatefulSet")
    answers = [ask("STATIC", "StatefulSet", stateful(draw, "STATIC")) for _ in range(10)]
    assert [got.answer for got in answers].count(Answer.PLANNED) > 2
