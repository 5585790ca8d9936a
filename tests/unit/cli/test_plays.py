"""Policies played beside each other: the same runs as one after the other."""

import numpy as np
import pytest

from planner.backtest.compare import compare
from planner.cli import plays
from planner.cli.plays import play_policies
from planner.runs.processes import KilledError
from tests.backtest_builders import scenario

NAMES = ("fixed", "keda")


def test_short_plays_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plays, "in_processes", None)
    group = scenario(queues=4, rates=[150.0] * 60)
    assert list(play_policies(group, NAMES, 2)) == compare(group, NAMES)


@pytest.mark.slow
def test_long_plays_are_the_same_in_processes() -> None:
    group = scenario(queues=4, rates=(200 + 100 * np.sin(np.arange(1080) / 60)).tolist(), known=60)
    assert group.steps * 5 >= plays.SHORT_DECISIONS * group.every_s
    assert list(play_policies(group, NAMES, 2)) == compare(group, NAMES)


def test_a_policy_whose_process_was_killed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plays, "SHORT_DECISIONS", 0)
    monkeypatch.setattr(
        plays, "in_processes", lambda _work, items, _jobs: [KilledError("it was killed") for _ in items]
    )
    with pytest.raises(KilledError, match="policy fixed: it was killed"):
        list(play_policies(scenario(queues=4, rates=[150.0] * 60), NAMES, 2))
