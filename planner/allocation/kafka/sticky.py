"""``StickyAssignor`` and ``CooperativeStickyAssignor`` of the clients, 3.7.2 and later."""

from dataclasses import replace

import numpy as np

from planner.allocation.kafka.claims import resolve
from planner.allocation.kafka.constrained import constrained
from planner.allocation.kafka.general import ClassFailsError, astray_partitions, general
from planner.allocation.kafka.group import NOBODY, BoolArray, Group, IntArray, Outcome, claims_from_owners, nobody
from planner.allocation.kafka.racks import rack_table

MOST_ROUNDS = 20


def sticky(group: Group) -> Outcome:
    """Return the balanced answer that keeps the most of what members claim; ``withheld`` as cooperative ones need it.

    12 partitions that three members hold evenly, a fourth joins: 3 move, the highest numbers.
    """
    return _sticky(group, is_cooperative=False, lets_stray=False)


def _sticky(group: Group, *, is_cooperative: bool, lets_stray: bool) -> Outcome:
    """Return the outcome; with ``lets_stray`` even one in which a member owns what it does not subscribe to."""
    if group.member_count == 0 or group.topics.partition_count == 0:
        return Outcome(nobody(group.topics.partition_count))
    resolved, racks = resolve(group), rack_table(group)
    if group.is_uniform:
        return constrained(group, resolved, racks)
    if group.passes_for_uniform:
        outcome = constrained(group, resolved, racks)
        handed_out = _granted_owners(outcome) if is_cooperative else outcome.owners
        if lets_stray or not astray_partitions(group, handed_out).any():
            return outcome
    outcome = general(group, resolved, racks, lets_stray=lets_stray)
    return replace(outcome, withheld=_partitions_handed_over(group, outcome.owners))


def _partitions_handed_over(group: Group, owners: IntArray) -> BoolArray:
    """Return the partitions that one member gains and another one, which claims them, loses."""
    members, partitions = group.claims.members, group.claims.partitions
    is_kept = owners[partitions] == members
    gained = owners != NOBODY
    gained[partitions[is_kept]] = False
    lost = np.zeros(len(owners), dtype=np.bool_)
    lost[partitions[~is_kept]] = True
    handed_over: BoolArray = gained & lost
    return handed_over


def cooperative_first(group: Group) -> Outcome:
    """Return the leader's answer of the first round: what changes hands is withheld, so that it has no owner yet."""
    outcome = _sticky(group, is_cooperative=True, lets_stray=False)
    return replace(outcome, owners=_granted_owners(outcome))


def librdkafka_first(group: Group) -> Outcome:
    """Return the first round of librdkafka's ``cooperative-sticky``: it has the general algorithm only, without racks.

    Its own code orders some ties otherwise (``rdkafka_sticky_assignor.c``); joins and leaves of groups whose members
    subscribe to the same topics went as computed here (2.16, tests/conformance).
    """
    if group.member_count == 0 or group.topics.partition_count == 0:
        return Outcome(nobody(group.topics.partition_count))
    outcome = general(group, resolve(group), None)
    return replace(
        outcome, owners=_granted_owners(replace(outcome, withheld=_partitions_handed_over(group, outcome.owners)))
    )


def cooperative_final(group: Group) -> Outcome:
    """Return the ownership once no member has anything to revoke any more, at most 20 rounds later.

    What a round in between hands to a member that no longer subscribes is followed as long as the end is valid.
    """
    try:
        outcome = _run_rounds(group, lets_stray=True)
        if group.is_uniform or not astray_partitions(group, outcome.owners).any():
            return outcome
    except ClassFailsError:
        pass
    return _run_rounds(group, lets_stray=False)


def _run_rounds(group: Group, *, lets_stray: bool) -> Outcome:
    is_determined = True
    warnings: dict[str, None] = {}
    for _ in range(MOST_ROUNDS):
        outcome = _sticky(group, is_cooperative=True, lets_stray=lets_stray)
        owners = _granted_owners(outcome)
        is_determined = is_determined and outcome.is_determined
        warnings |= dict.fromkeys(outcome.warnings)
        if not _revokes_any(group, owners):
            break
        group = _next_round(group, owners)
    else:
        warnings[f"members still revoke after {MOST_ROUNDS} rounds: the group has not settled"] = None
    return Outcome(owners, is_determined, warnings=tuple(warnings))


def _granted_owners(outcome: Outcome) -> IntArray:
    if outcome.withheld is None:
        return outcome.owners
    return np.where(outcome.withheld, NOBODY, outcome.owners)


def _revokes_any(group: Group, owners: IntArray) -> bool:
    """Return whether a member claims what it does not get: it revokes that and joins again."""
    claims = group.claims
    return bool(claims.foreign) or bool((owners[claims.partitions] != claims.members).any())


def _next_round(group: Group, owners: IntArray) -> Group:
    generation = int(group.claims.generations.max(initial=-1)) + 1
    return replace(group, claims=claims_from_owners(owners, group.member_count, generation))
