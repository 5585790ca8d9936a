"""From snapshots to outcomes: the planner's own simulation, one candidate a row."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import pandas as pd
from pyspark.sql import DataFrame

from planner import pipeline
from planner.documents.data import OUTCOMES as OUTCOMES_FILE
from planner.documents.data import SNAPSHOT
from planner.documents.format import canonical
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import PlannerError
from planner.isolation import attempt
from planner.model.snapshot import GroupSnapshot
from planner.runs.policy_stages import give_up
from planner.simulation.outcome import Transition
from planner.storage.layout import RunFolder
from spark_apps.common.policies import policy_of
from spark_apps.simulate.schemas import CANDIDATES, COSTS, LEVELS, OUTCOMES

Frames = Iterator[pd.DataFrame]
Candidate = tuple[str, int, str, int]


def list_candidates(policies: DataFrame, run: RunFolder) -> DataFrame:
    """Return every strategy and count to simulate: ``CANDIDATES``; none for a policy without a snapshot."""
    return policies.mapInPandas(_lister(run), CANDIDATES)


def simulate(candidates: DataFrame, run: RunFolder, tasks: int) -> DataFrame:
    """Return one outcome a candidate: ``OUTCOMES``, spread over ``tasks`` so that large groups do not block one."""
    balanced = candidates.repartition(tasks, "policy", "strategy", "count").sortWithinPartitions("policy")
    return balanced.mapInPandas(_simulator(run), OUTCOMES)


def _lister(run: RunFolder) -> Callable[[Frames], Frames]:
    def list_all(frames: Frames) -> Frames:
        for frame in frames:
            rows: list[tuple[str, int, str, int]] = []
            for row in frame.itertuples():
                name = str(row.policy)
                candidates = attempt(name, "simulate", candidates_of, policy_of(row))
                if isinstance(candidates, PlannerError):
                    give_up(run, name, candidates)
                else:
                    rows += [(name, position, *candidate) for position, candidate in enumerate(candidates)]
            yield pd.DataFrame(rows, columns=CANDIDATES.fieldNames())

    def candidates_of(policy: ConsumerScalingPolicy) -> Sequence[tuple[str, int]]:
        path = run.snapshot(policy.metadata.name)
        return tuple(pipeline.candidates(SNAPSHOT.read(path), policy)) if path.exists() else ()

    return list_all


def _simulator(run: RunFolder) -> Callable[[Frames], Frames]:
    def simulate_all(frames: Frames) -> Frames:
        for frame in frames:
            rows: list[tuple[object, ...]] = []
            candidates = frame.itertuples(index=False, name=None)
            for policy, of_policy in groupby(candidates, key=itemgetter(0)):
                outcomes = attempt(policy, "simulate", simulate_policy, policy, list(of_policy))
                if isinstance(outcomes, PlannerError):
                    give_up(run, policy, outcomes)
                else:
                    rows += outcomes
            yield pd.DataFrame(rows, columns=OUTCOMES.fieldNames())

    def simulate_policy(policy: str, candidates: Sequence[Candidate]) -> Sequence[tuple[object, ...]]:
        path = run.snapshot(policy)
        # Another worker may have given the policy up: its reason is written already.
        return tuple(_rows(SNAPSHOT.read(path), candidates)) if path.exists() else ()

    return simulate_all


def _rows(snapshot: GroupSnapshot, candidates: Sequence[Candidate]) -> Iterator[tuple[object, ...]]:
    outcomes = pipeline.simulate_candidates(snapshot, [(strategy, count) for _, _, strategy, count in candidates])
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        (body,) = OUTCOMES_FILE.body((outcome,))
        yield (
            *candidate,
            outcome.utilisation,
            outcome.wait_s,
            outcome.drain_s,
            outcome.moved_fewest,
            outcome.moved_most,
            outcome.keeps_up,
            *_costs(outcome.transition),
            canonical(body).decode(),
        )


def _costs(transition: Transition | None) -> tuple[float | None, ...]:
    """Return the intervals in the order of ``COSTS``, ``None`` where they are not known."""
    intervals = [getattr(transition, name, None) for name, _ in COSTS]
    return tuple(getattr(interval, level, None) for interval in intervals for level in LEVELS)
