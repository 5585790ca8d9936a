"""Which strategy a RocketMQ group runs: every known one, with every parameter, compared with what each member says it
owns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.inference import families, machine_rooms, wrappers
from planner.inference.explanation import Evidence, Explanation, Freedom, Inference, MemberExplanation, Refuted
from planner.inference.families import Family, FamilyResult, Search, SearchSpace
from planner.inference.members import explain_members, two_strategies
from planner.inference.observation import Observation, OwnershipView, views_of
from planner.model.membership import Member
from planner.snapshot.strategy import strategy_name

FAMILIES: dict[str, tuple[Family, ...]] = {
    "AVG": (families.averagely, families.pop_averagely),
    "AVG_BY_CIRCLE": (families.by_circle, families.pop_by_circle),
    "CONSISTENT_HASH": (families.consistent_hash,),
    "MACHINE_ROOM": (families.machine_room,),
    machine_rooms.NEARBY: (machine_rooms.nearby,),
    "SPECIFIED_MACHINE": (wrappers.specified_machine,),
    "VIP": (wrappers.vip,),
    "STATIC": (wrappers.static,),
    "CONFIG": (families.config,),
}
"""What is tried for each strategy, in the order of preference among those with as little freedom."""

OUR_CLASSES = {
    "dev.consumerplanner.SpecifiedMachineStrategy": "SPECIFIED_MACHINE",
    "dev.consumerplanner.StaticStrategy": "STATIC",
    "dev.consumerplanner.VipStrategy": "VIP",
}
"""Our strategies by the classes of ``examples/java``."""


def infer(observations: Sequence[Observation], search: Search | None = None) -> Inference:
    """Return every known strategy and parameter that explains all observations of one group.

    The newest observation comes first: its members' word counts where they name a class, and then only that strategy is
    tried. A user's own class, or none, is compared with all. Several observations narrow: what explains them all must
    explain each. Observations are of a group at rest (``settled_observations``); a rebalance under way is explained by
    nothing.
    """
    search = search or Search()
    views = views_of(observations)
    named = _named_by_members(observations[0].members) if observations else {}
    names = tuple(sorted({name for name in named.values() if name in FAMILIES}))
    custom = tuple(sorted(set(named.values()) - FAMILIES.keys()))
    space = SearchSpace(views, search, bool(names))
    evidence = _evidence(views)
    start = Inference("rocketmq", evidence, named=names, custom=custom)
    if not evidence.queues_observed and not any(view.known.any() for view in views):
        return start
    if len(names) + len(custom) > 1:
        return _mixed_by_word(space, named, start)
    return _explained(space, named, start)


def misplaced(strategy: Strategy, observations: Sequence[Observation]) -> str | None:
    """Return in a sentence the first queue that the strategy gives to another member, ``None`` when all are right."""
    try:
        return families.first_wrong(views_of(observations), strategy, strategy.name)
    except BadInputError as error:
        return str(error)


def class_strategy(strategy_class: str) -> str:
    """Return the planner's name of a Java strategy class, the class itself where it is a user's own."""
    return strategy_name(strategy_class) or OUR_CLASSES.get(strategy_class) or strategy_class


def _named_by_members(members: Sequence[Member]) -> dict[str, str]:
    return {
        member.client_id: class_strategy(member.tuning.strategy_class)
        for member in members
        if member.tuning is not None and member.tuning.strategy_class
    }


def _evidence(views: Sequence[OwnershipView]) -> Evidence:
    queues = sum(int(np.count_nonzero(view.observed)) for view in views)
    return Evidence(queues, queues, len({view.snapshot for view in views if view.known.any()}))


def _mixed_by_word(space: SearchSpace, named: Mapping[str, str], start: Inference) -> Inference:
    """Return each member with what it says it runs, compared with its own list."""
    members = tuple(
        MemberExplanation(member.client, member.named, () if member.named in start.custom else member.explanations)
        for member in explain_members(space, named)
    )
    return replace(start, members=members, is_mixed=True)


def _explained(space: SearchSpace, named: Mapping[str, str], start: Inference) -> Inference:
    tried = [(name, family(space)) for name in (start.named or FAMILIES) for family in FAMILIES[name]]
    answer = replace(
        start,
        explanations=_ranked([result for _, result in tried], start.evidence),
        refuted=tuple(
            Refuted(name, result.reason) for name, result in tried if result.is_whole and not result.parameters
        ),
        unsearched=tuple(dict.fromkeys(name for name, result in tried if not result.is_whole)),
    )
    return _with_members(space, named, answer)


def _ranked(results: Sequence[FamilyResult], evidence: Evidence) -> tuple[Explanation, ...]:
    return tuple(
        Explanation(strategy, tuple(parameters), result.freedom, evidence)
        for result in sorted(results, key=lambda result: result.freedom)
        for strategy, parameters in result.parameters.items()
    )


def _with_members(space: SearchSpace, named: Mapping[str, str], answer: Inference) -> Inference:
    """Return the answer with each member for itself, where no strategy that could be wrong explains the whole group."""
    is_explained = answer.explanations and (answer.named or answer.explanations[0].freedom < Freedom.LISTS)
    if is_explained or (answer.named and named.keys() >= set(space.clients)):
        return answer
    members = two_strategies(explain_members(space, {} if answer.custom else named))
    if members is None:
        return answer
    is_simple = all(member.explanations[0].freedom == Freedom.NONE for member in members)
    return replace(answer, members=members, is_mixed=is_simple or not answer.explanations)
