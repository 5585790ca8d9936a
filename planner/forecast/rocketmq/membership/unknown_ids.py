"""Ids that are not known yet: where they may sort among the others, sampled over the trials."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.ordering import java_sorted
from planner.allocation.rocketmq import ConsistentHash
from planner.errors import BadInputError
from planner.forecast.common.changes import gaps, labels
from planner.forecast.rocketmq.membership.scenario import Indexes, Scenario

_LEAST = "\x00"


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The clients' ids in every placement of the unknown ones; ``of_trial`` says which placement a trial has.

    Placement 0 puts the newcomers last, in their order: the answer's ``after`` shows it. ``labels`` are what an answer
    calls the clients.
    """

    placements: tuple[tuple[str, ...], ...]
    of_trial: Indexes
    labels: tuple[str, ...]

    @property
    def are_known(self) -> bool:
        """True when no id is unknown."""
        return len(self.placements) == 1


def name_clients(scenario: Scenario, random: np.random.Generator) -> Names:
    """Return ids for every client; raise ``BadInputError`` where the strategy would need to know more of a newcomer."""
    trials = scenario.request.trials
    ids = [client.id for client in scenario.clients]
    known = java_sorted(client for client in ids if client is not None)
    unknown = ids.count(None)
    if not unknown:
        return Names((tuple(known_id for known_id in ids if known_id),), np.zeros(trials, dtype=np.intp), labels(ids))
    for strategy in scenario.strategies:
        if not strategy.is_positional and not isinstance(strategy, ConsistentHash):
            raise BadInputError(
                f"change.clients: found an id that is null, expected known ids, as strategy {strategy.name} reads names"
            )
    placements_of_unknown = gaps(len(known) + 1, unknown, trials, random)
    last = (len(known),) * unknown
    placements = tuple(
        _positioned(ids, known, chosen, number) for number, chosen in enumerate((last, *placements_of_unknown))
    )
    return Names(
        placements, random.permutation(np.arange(trials, dtype=np.intp) % len(placements_of_unknown)) + 1, labels(ids)
    )


def _positioned(ids: Sequence[str | None], known: Sequence[str], gaps: Sequence[int], number: int) -> tuple[str, ...]:
    """Return all ids, each newcomer named so that it sorts into its gap; the number keeps hashes apart."""
    chosen = iter(enumerate(gaps))
    positioned = []
    for name in ids:
        if name is None:
            order, gap = next(chosen)
            positioned.append(f"{known[gap - 1] if gap else ''}{_LEAST}{order:04}-{number}")
        else:
            positioned.append(name)
    return tuple(positioned)
