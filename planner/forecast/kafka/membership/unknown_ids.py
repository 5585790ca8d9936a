"""Member ids that are not known yet: where they may sort among the others, sampled over the trials."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np

from planner.allocation.ordering import java_sorted
from planner.forecast.common.changes import gaps, labels
from planner.forecast.kafka.membership.scenario import Indexes, Scenario

MOST_DRAWN = 16
MOST_MADE_UP = 48
"""Ids that are made up in all placements together: where many processes do so, fewer placements differ as much."""
POSITIONAL = frozenset({"range", "range-server", "roundrobin"})
"""Assignors that go by a member's place alone; the others' hash order is any order."""

_LEAST = "\x00"
_LAST = "\uffff"
_RANDOM_END: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What the coordinator puts behind a client id or an instance id (``ClassicGroup#generateMemberId``, a UUID)."""


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The members' ids in every placement of the unknown ones; ``of_trial`` says which placement a trial has.

    Placement 0 puts the newcomers last: the answer's ``after`` shows it. ``labels`` are what an answer calls members.
    ``renamed`` are in every placement the ids of processes that made up their own (``Scenario.renamed``), empty where
    none does. ``successor_ids`` are in every placement the ids that the coordinator of a classic group gives to the
    processes that come again, by process; empty where their random ends decide nothing.
    """

    placements: tuple[tuple[str, ...], ...]
    of_trial: Indexes
    labels: tuple[str, ...]
    renamed: tuple[tuple[str, ...], ...] = ()
    successor_ids: tuple[tuple[str, ...], ...] = ()

    def streams(self, most: int) -> Indexes:
        """Return a number by trial, from 0 to below ``most``, or one a placement; one number has one placement."""
        order = np.argsort(self.of_trial, kind="stable")
        starts = np.searchsorted(self.of_trial[order], self.of_trial)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        shares = max(most // len(np.unique(self.of_trial)), 1)
        return np.unique(self.of_trial * shares + (rank - starts) % shares, return_inverse=True)[1]

    @property
    def are_sampled(self) -> bool:
        """True when an unknown id may matter."""
        return len(self.placements) > 1

    def successor_id(self, placement: int, process: int, member: str) -> str:
        """Return the id of a process that comes again in a member's stead: with another random end, in its place."""
        return self.successor_ids[placement][process] if self.successor_ids else f"{member}{_LEAST}{process:04}"


def name_members(scenario: Scenario, random: np.random.Generator) -> Names:
    """Return ids for every member."""
    ids, trials = [member.id for member in scenario.members], scenario.request.trials
    known = java_sorted(member for member in ids if member is not None)
    unknown = ids.count(None)
    last = tuple(f"{_LAST}{number:06}" if name is None else name for number, name in enumerate(ids))
    if scenario.renamed.any():
        streams = max(MOST_MADE_UP // int(scenario.renamed.sum()), 1)
        renamed = tuple(_made_up(len(ids), random) for _ in range(min(MOST_DRAWN, streams, trials)))
        return Names((last,) * len(renamed), random.permutation(np.arange(trials) % len(renamed)), labels(ids), renamed)
    strangers = _strangers(scenario)
    if not unknown and not strangers and (successors := _successors(scenario)):
        return _name_successors(scenario, last, successors, random)
    if not unknown and (scenario.request.strategy in POSITIONAL or len(strangers) < 2):
        return Names((last,), np.zeros(trials, dtype=np.intp), labels(ids))
    if scenario.request.strategy in POSITIONAL:
        placements = [_positioned(ids, known, chosen) for chosen in gaps(len(known) + 1, unknown, trials, random)]
    else:
        placements = [_drawn(ids, strangers, random) for _ in range(min(MOST_DRAWN, trials))]
    return Names(
        (last, *placements), random.permutation(np.arange(trials, dtype=np.intp) % len(placements)) + 1, labels(ids)
    )


def _positioned(ids: Sequence[str | None], known: Sequence[str], gaps: Sequence[int]) -> tuple[str, ...]:
    """Return all ids, each newcomer named so that it sorts into its gap."""
    chosen = iter(enumerate(gaps))
    positioned = []
    for name in ids:
        if name is None:
            order, gap = next(chosen)
            positioned.append(f"{known[gap - 1] if gap else ''}{_LEAST}{order:04}")
        else:
            positioned.append(name)
    return tuple(positioned)


def _made_up(count: int, random: np.random.Generator) -> tuple[str, ...]:
    """Return so many ids as Java's client makes them, 22 digits of base 64 (``Uuid#randomUuid``)."""
    return tuple(urlsafe_b64encode(random.bytes(16)).decode().rstrip("=") for _ in range(count))


def _successors(scenario: Scenario) -> list[int]:
    """Return the classic processes that come again, where the random ends of their ids may decide who gets what.

    The sticky assignors go by hash order. All others go by places, which such an end decides of members alone whose
    ids are the same but for their ends.
    """
    by_server = scenario.by_server.tolist()
    successors = [number for number in range(len(scenario.members), len(scenario.processes)) if not by_server[number]]
    bare = {_RANDOM_END.sub("", member.id or "") for member in scenario.members}
    used = {name for process in scenario.processes for name in process.assignors}
    return successors if not used <= POSITIONAL or len(bare) < len(scenario.members) else []


def _name_successors(
    scenario: Scenario, last: tuple[str, ...], successors: Sequence[int], random: np.random.Generator
) -> Names:
    """Return the members' ids, and in several draws those that the coordinator gives to who comes again."""
    trials = scenario.request.trials
    draws = min(MOST_DRAWN, max(MOST_MADE_UP // len(successors), 1), trials)
    bare = [_RANDOM_END.sub("", last[process.member]) for process in scenario.processes]
    ids = tuple(tuple(f"{name}-{UUID(bytes=random.bytes(16), version=4)}" for name in bare) for _ in range(draws))
    of_trial = random.permutation(np.arange(trials, dtype=np.intp) % draws)
    return Names((last,) * draws, of_trial, labels([member.id for member in scenario.members]), successor_ids=ids)


def _strangers(scenario: Scenario) -> set[int]:
    """Return the members that join without an instance id: the broker adds a random end to what they are called."""
    present = len(scenario.request.members)
    return {
        number for number, member in enumerate(scenario.members) if number >= present and member.instance_id is None
    }


def _drawn(ids: Sequence[str | None], strangers: set[int], random: np.random.Generator) -> tuple[str, ...]:
    """Return all ids, the newcomers' with a random end: the sticky assignors go by hash order, too."""
    ends = [f"{end:016x}" for end in random.integers(0, 2**63, len(ids)).tolist()]
    return tuple(
        f"{name or ''}-{end}" if number in strangers or name is None else name
        for number, (name, end) in enumerate(zip(ids, ends, strict=True))
    )
