"""Policies that are played beside each other: ``planner backtest`` and ``planner advise``."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.runs.processes import KilledError, in_processes, processors

if TYPE_CHECKING:
    from planner.backtest.play import Run
    from planner.backtest.scenario import Scenario

MOST_JOBS: Final = 64
DEFAULT_JOBS: Final = min(processors(), 8)
"""A container sees all processors of its node, and has the memory of a few."""
DEFAULT_JOBS_WORDS: Final = "one for each processor, at most 8"
SHORT_DECISIONS: Final = 1000
"""A play of fewer decisions is over before processes have started."""

JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        min=1,
        max=MOST_JOBS,
        help="Policies that are played at a time, a process each.",
        show_default=DEFAULT_JOBS_WORDS,
    ),
]


def play_policy(play: "tuple[Scenario, str]") -> "Run":
    """Return the cheapest run of one policy over a scenario."""
    from planner.backtest.compare import compare, grids_of
    from planner.compiled import fastest_model

    scenario, name = play
    (run,) = compare(scenario, [name], grids=grids_of(fastest_model()))
    return run


def play_policies(scenario: "Scenario", names: Sequence[str], jobs: int) -> "Iterator[Run]":
    """Yield each policy's cheapest run over a scenario, in their order. Raises ``KilledError`` naming one that was."""
    from planner.backtest.scenario import STEP_S

    plays = [(scenario, name) for name in names]
    if jobs == 1 or scenario.steps * STEP_S < SHORT_DECISIONS * scenario.every_s:
        yield from map(play_policy, plays)
        return
    for name, run in zip(names, in_processes(play_policy, plays, min(jobs, len(plays))), strict=True):
        if isinstance(run, KilledError):
            raise KilledError(f"policy {name}: {run}")
        yield run
