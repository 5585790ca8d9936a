"""One Kafka request in, the ownership out: the door of this folder."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import numpy as np

from planner.allocation import fields, plugins
from planner.allocation.kafka.group import NOBODY, Group, Outcome
from planner.allocation.kafka.own import OwnAssignor, find_own
from planner.allocation.kafka.random_assignor import random_owners
from planner.allocation.kafka.ranges import range_owners, range_server
from planner.allocation.kafka.request import NamedGroup, Request, missing_claims, named_group
from planner.allocation.kafka.roundrobin import roundrobin
from planner.allocation.kafka.sticky import cooperative_final, cooperative_first, sticky
from planner.allocation.kafka.uniform import uniform
from planner.errors import BadInputError, UnknownNameError

Assignor = Callable[[Group], Outcome]

COOPERATIVE = "cooperative-sticky"
RANDOM = "random"
ROUNDS: dict[str, Assignor] = {"first": cooperative_first, "final": cooperative_final}

ASSIGNORS: dict[str, Assignor] = {
    "range": range_owners,
    "roundrobin": roundrobin,
    "sticky": sticky,
    COOPERATIVE: cooperative_final,
    RANDOM: random_owners,
    "uniform": uniform,
    "range-server": range_server,
}
"""The assignors by the name that Kafka gives them; ``range-server`` is the server's ``range``."""

_OPTIONS: dict[str, tuple[str, ...]] = {COOPERATIVE: ("cooperative_round",), RANDOM: ("seed",)}
_LARGEST_SEED = 2**63 - 1


class Answer(TypedDict):
    """What ``planner allocate`` answers: partitions sorted, members in the order of their ids.

    ``deterministic`` is False where Java's hash-map order or chance decides: the answer is then one of several valid
    ones, all with the same loads and the same number of partitions kept. ``warnings`` are sentences.
    """

    assignments: dict[str, list[tuple[str, int]]]
    deterministic: bool
    warnings: list[str]


def assign(request: Request) -> Answer:
    """Return the ownership.

    Raises ``BadInputError`` for a request that contradicts itself (``Request.check``) and options that the assignor
    does not take, ``UnknownNameError`` for an assignor that is not known, with the known ones.
    """
    request.check()
    assignor = find_assignor(request.strategy, request.options)
    if not request.members:
        return Answer(assignments={}, deterministic=True, warnings=[])
    named = named_group(request)
    outcome = assignor(named.group)
    return Answer(
        assignments=assignments_of(named, outcome),
        deterministic=outcome.is_determined and not _is_partly_empty(request),
        warnings=[*missing_claims(request), *outcome.warnings, *_remarks(request)],
    )


def find_assignor(name: str, options: Mapping[str, Any]) -> Assignor:
    """Return the assignor of that name with its options; racks are facts of the group and allowed with any.

    A name may also be a user's own: a path, ``assignor.py`` or ``assignor.py:ClassName``, where that was allowed
    (``plugins.check_allowed``), or an installed entry point.
    """
    if name not in ASSIGNORS:
        own = find_own(name, {key: value for key, value in options.items() if key != "partition_racks"})
        if own is not None:
            return own
        raise UnknownNameError(f"strategy: found {fields.shown(name)}, expected one of {', '.join(known_names())}")
    fields.only_known(options, ("partition_racks", *_OPTIONS.get(name, ())), "options")
    if name == COOPERATIVE:
        chosen = options.get("cooperative_round", "final")
        if not isinstance(chosen, str) or chosen not in ROUNDS:
            raise fields.refusal("options.cooperative_round", chosen, "first or final")
        return ROUNDS[chosen]
    if name == RANDOM:
        seed = fields.whole_number(options.get("seed", 0), "options.seed", 0, _LARGEST_SEED)
        return lambda group: random_owners(group, seed)
    return ASSIGNORS[name]


def own_assignor(name: str | None, options: Mapping[str, Any] | None = None) -> OwnAssignor | None:
    """Return the user's assignor of that name, ``None`` where there is none, or where it cannot be run here."""
    if name is None or name in ASSIGNORS:
        return None
    try:
        return find_own(name, options or {})
    except (BadInputError, UnknownNameError):
        return None


def known_names() -> list[str]:
    """Return the names that ``find_assignor`` knows, paths aside."""
    return [*ASSIGNORS, *plugins.installed_names(plugins.ASSIGNOR)]


def assignments_of(named: NamedGroup, outcome: Outcome) -> dict[str, list[tuple[str, int]]]:
    """Return the owners by name: every member is a key, its partitions sorted."""
    topics = named.group.topics
    owned = np.flatnonzero(outcome.owners != NOBODY)
    ordered = owned[np.argsort(outcome.owners[owned], kind="stable")]
    names = [named.topics[topic] for topic in topics.topic_of[ordered].tolist()]
    pairs = list(zip(names, topics.number_of[ordered].tolist(), strict=True))
    bounds = np.searchsorted(outcome.owners[ordered], np.arange(len(named.member_ids) + 1)).tolist()
    return {member_id: pairs[bounds[number] : bounds[number + 1]] for number, member_id in enumerate(named.member_ids)}


def _is_partly_empty(request: Request) -> bool:
    """Return whether the client's sticky assignors can take a member without topics for one of the others.

    They compare each subscription with the first that is not empty, so a member without topics goes unnoticed when
    they meet it first, and is then given partitions.
    """
    if request.strategy not in ("sticky", COOPERATIVE):
        return False
    kinds = {member.topics for member in request.members}
    return len(kinds) == 2 and frozenset() in kinds


def _remarks(request: Request) -> list[str]:
    if not _is_partly_empty(request):
        return []
    idle = next(member.member_id for member in request.members if not member.topics)
    return [
        f"member {fields.shown(idle)} subscribes to nothing: depending on its hash order the real assignor may give it "
        f"partitions all the same; this answer keeps to the subscriptions"
    ]
