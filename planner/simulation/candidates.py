"""Simulate one candidate count, or all useful ones, whatever the group's system: each has its own ``GroupModel``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from planner.errors import BadInputError
from planner.model.snapshot import GroupSnapshot
from planner.simulation.counts import relieves, useful_counts
from planner.simulation.group_model import group_model
from planner.simulation.leaving import Leaving
from planner.simulation.leaving_pods import pod_leave_range
from planner.simulation.newcomers import known_to_stay
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.standing import describe_standing_work, without_standing_work
from planner.text.words import counted


def unsettled_queues(snapshot: GroupSnapshot) -> int | None:
    """Return how many data queues are not owned as the group's own strategy gives them to its present members.

    ``None`` where that cannot be computed: the strategy is unknown, or its parameters are. Of Kafka's sticky assignors
    it is only known that each partition has an owner. Where members share messages no queue has one.
    """
    return None if snapshot.strategy is None else group_model(snapshot).unsettled_queues()


def shares_messages(snapshot: GroupSnapshot) -> bool:
    """Return whether members share the messages of queues, at every count of members, so that no queue has an owner."""
    return group_model(snapshot).shares_messages()


def can_simulate(snapshot: GroupSnapshot) -> bool:
    """Return whether there is something to compare, and a strategy whose answer for other counts is known."""
    if snapshot.strategy is None or not snapshot.clients or not snapshot.data_queues:
        return False
    return group_model(snapshot).can_compute()


def strategies_to_compare(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Return the group's own strategy and the common ones of its system; members that share messages need no other."""
    model = group_model(snapshot)
    if snapshot.strategy is not None and model.shares_messages():
        return (snapshot.strategy,)
    return tuple(dict.fromkeys([*([snapshot.strategy] if snapshot.strategy else []), *model.compared]))


MOST_BY_IDS = 64
"""How many counts are tried one by one where the names of members decide."""


def candidate_counts(snapshot: GroupSnapshot, lowest: int, highest: int) -> tuple[int, ...]:
    """Return the useful counts of pods from ``lowest`` to ``highest`` and the current one, in ascending order.

    Where members share messages every one more may relieve the others, up to as many as servers take. Where newcomers
    are drawn every one more may, up to as many as there are queues; of more than ``MOST_BY_IDS`` those that are useful
    when shares are even.
    """
    model = group_model(snapshot)
    if model.shares_messages():
        most = model.most_members()
        fitting = highest if most is None else min(highest, most // (snapshot.members_per_pod or 1))
        return tuple(sorted({*range(lowest, fitting + 1), snapshot.count}))
    if model.draws_newcomers():
        most = min(highest, max(lowest, -(-len(snapshot.data_queues) // (snapshot.members_per_pod or 1))))
        if most - lowest < MOST_BY_IDS:
            return tuple(sorted({*range(lowest, most + 1), snapshot.count}))
    useful = useful_counts(model.divided_sizes(snapshot.strategy), lowest, highest, snapshot.members_per_pod or 1)
    current = snapshot.count
    return tuple(sorted({*useful, *([current] if current else [])}))


def why_no_more(snapshot: GroupSnapshot, strategy_name: str) -> str | None:
    """Return why no count above the present one can be simulated under this strategy, ``None`` where each can."""
    return group_model(snapshot).why_no_more(strategy_name)


def simulable_counts(snapshot: GroupSnapshot, strategy_name: str, counts: Iterable[int]) -> tuple[int, ...]:
    """Return those of the counts that can be simulated under this strategy: see ``why_no_more``."""
    most = None if why_no_more(snapshot, strategy_name) is None else snapshot.count
    return tuple(count for count in counts if most is None or count <= most)


def check_comparable(snapshot: GroupSnapshot) -> None:
    """Raise ``BadInputError`` when the snapshot has no queue or no consumer."""
    if not snapshot.data_queues:
        raise BadInputError(f"group {snapshot.group} has no queues in its snapshot: check that its topics have a route")
    if not snapshot.clients:
        raise BadInputError(
            f"group {snapshot.group} has no consumers in its snapshot: start one, as moves are counted from what runs"
        )


def simulate_candidate(
    snapshot: GroupSnapshot, count: int, strategy_name: str, staying: Sequence[str] | None = None
) -> CandidateOutcome:
    """Return what ``count`` pods, each with the snapshot's ``members_per_pod``, would mean under ``strategy_name``.

    The ownership before is the one that the group's strategy computes for its present members. What waits in queues
    that stand still, and comes to them, is no work for anybody: it is left out. ``staying`` names the members who are
    left, where that is known; the group's own strategy stays then, too. Raises ``BadInputError`` for a count below 1
    and ``UnknownNameError`` for a strategy not known here.
    """
    if count < 1:
        raise BadInputError(f"count {count} of group {snapshot.group}: expected at least 1 consumer")
    left_out = describe_standing_work(snapshot)
    outcome = _simulate(without_standing_work(snapshot), count, strategy_name, staying)
    return replace(outcome, unknowns=(*outcome.unknowns, *left_out)) if left_out else outcome


def _simulate(
    snapshot: GroupSnapshot, count: int, strategy_name: str, staying: Sequence[str] | None
) -> CandidateOutcome:
    if staying is None and strategy_name == snapshot.strategy:
        staying = known_to_stay(snapshot, count)
    per_pod = snapshot.members_per_pod
    if per_pod is None:
        outcome = group_model(snapshot).simulate(count, strategy_name, staying)
        unknown = f"how many members a pod runs: counts are of members, as {snapshot.members_per_pod_source}"
        return replace(outcome, unknowns=(*outcome.unknowns, unknown))
    if per_pod == 1:
        return group_model(snapshot).simulate(count, strategy_name, staying)
    outcome = _simulate_pods(snapshot, count, strategy_name, staying)
    return replace(
        outcome,
        count=count,
        is_useful=_is_useful_pod_count(snapshot, count, strategy_name),
        members_per_pod=per_pod,
        unknowns=(*outcome.unknowns, *_unknown_of_pod(snapshot, per_pod)),
    )


def _unknown_of_pod(snapshot: GroupSnapshot, per_pod: int) -> Iterator[str]:
    if snapshot.capacity is not None and snapshot.capacity.pod_messages_per_s is None:
        yield (
            f"what one pod can do when all of its {per_pod} consumers are busy: none was seen so, and each is taken to "
            "do as much as alone"
        )


def _simulate_pods(
    snapshot: GroupSnapshot, count: int, strategy_name: str, staying: Sequence[str] | None
) -> CandidateOutcome:
    """Return what the members of ``count`` pods would mean: those of a pod come and go together."""
    members = snapshot.members_at(count)
    if staying is None and members < len(snapshot.clients) and strategy_name == snapshot.strategy:
        leaves = leaving(snapshot)
        moves = pod_leave_range(snapshot, leaves, count)
        if moves is not None:
            least = tuple(leaves.members[position] for position in moves.fewest_stay)
            outcome = group_model(snapshot).simulate(members, strategy_name, least)
            stopped = counted(snapshot.count - count, "pod")
            unknown = f"which {stopped} of {snapshot.count} stop: shown for those that move the fewest queues"
            return replace(
                outcome,
                moved_fewest=moves.fewest,
                moved_most=moves.most,
                unknowns=(unknown, *outcome.unknowns),
            )
        unknown = (
            "which members run in one pod, so that they stop together: the range holds for every choice of members"
        )
        outcome = group_model(snapshot).simulate(members, strategy_name, None)
        return replace(outcome, unknowns=(unknown, *outcome.unknowns))
    return group_model(snapshot).simulate(members, strategy_name, staying)


def _is_useful_pod_count(snapshot: GroupSnapshot, count: int, strategy_name: str) -> bool:
    """Return whether one pod fewer would leave some member with more; where names decide, no count is ruled out."""
    model = group_model(snapshot)
    if model.goes_by_names(strategy_name):
        return True
    return relieves(model.divided_sizes(strategy_name), count, snapshot.members_per_pod or 1)


def leaving(snapshot: GroupSnapshot) -> Leaving:
    """Return what the stop of any members moves under the group's own strategy; ``can_simulate`` must hold."""
    return group_model(snapshot).leaving()
