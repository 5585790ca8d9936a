"""Which pods stop when a group gets smaller: those whose stop moves the fewest queues, and loses least among equals."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from planner.model.deployments import Deployment, Pod
from planner.model.snapshot import GroupSnapshot
from planner.rollout.ranking import stop_order
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import MovedQueues, Victim
from planner.simulation.candidates import leaving
from planner.simulation.leaving import Counts, Leaving

Choices = NDArray[np.bool_]
"""One row a choice, one flag a pod: true for those that stop."""

Loss = tuple[float, ...]
"""What a choice loses beside the queues that move, less is better: duplicates, then seconds of pause."""

DRAWN = 200
"""Choices drawn at random where not all can be weighed, beside those that a rule names."""
_IMPROVED = 3
_ROUNDS = 12
_MOST_SWAPS = 200
"""Choices that are improved by exchanging pods, how often, and the exchanges that are weighed each time."""
_EQUALS = 6
"""Equally good choices whose losses are compared."""
_SEED = 7
_TEMPLATE = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Choice:
    """The pods that stop, by name. ``moved`` is exact as long as just they stop; ``staying`` are the members left.

    ``unmarked`` is what would move if the ReplicaSet chose. ``is_best`` says that no other choice moves fewer
    queues; without it many were weighed, but not all.
    """

    victims: tuple[Victim, ...]
    staying: tuple[str, ...]
    moved: MovedQueues
    unmarked: MovedQueues
    is_best: bool


def pods_of_members(snapshot: GroupSnapshot) -> tuple[Victim, ...]:
    """Return the Deployment's pods with their members, in the order in which its ReplicaSet would stop them.

    Raises ``RefusedError`` where a stop could hit another pod than the one that is meant: a member without a pod, a
    pod without a member, a pod that is not ready (those go first, whatever their deletion cost), or two templates.
    """
    deployment = snapshot.deployment
    if deployment is None or deployment.pods is None:
        raise _no_victims(
            f"the pods of group {snapshot.group} were not read: let the policy's spec.kubernetes read them"
        )
    pods = stop_order(deployment.pods, deployment.at)
    members: defaultdict[str, list[str]] = defaultdict(list)
    for link in snapshot.pods:
        members[link.pod].append(link.client)
    _check_joined(snapshot, deployment, pods, members)
    return tuple(Victim(pod.name, tuple(sorted(members[pod.name]))) for pod in pods)


def choose_victims(snapshot: GroupSnapshot, stop: int, loss: Callable[[Sequence[str]], Loss] | None = None) -> Choice:
    """Return which ``stop`` pods should go; the same snapshot gives the same choice.

    Members of one pod go together. ``loss`` returns for the members that stay what the stop of the others loses; it
    decides among choices that move equally many queues, after it what the ReplicaSet would take first. All choices are
    weighed where that is quick; else the cheapest is computed where the strategy allows, and searched for where it does
    not.

    Raises ``RefusedError`` as ``pods_of_members`` does, ``ValueError`` for a count that is not between 1 and all.
    """
    pods = pods_of_members(snapshot)
    if not 1 <= stop <= len(pods):
        raise ValueError(f"group {snapshot.group} to stop 1 to {len(pods)} pods, not {stop}")
    weigh = _scale(leaving(snapshot), pods)
    choices, is_best = weigh.choices(stop)
    moved = weigh.moved(choices)
    equal = weigh.in_order(choices[moved == moved.min()])[:_EQUALS]
    best = min(equal, key=lambda choice: loss(weigh.staying(choice))) if loss and len(equal) > 1 else equal[0]
    fewest, unmarked = int(moved.min()), int(weigh.moved(weigh.own_pick(stop))[0])
    return Choice(
        victims=tuple(sorted((pods[index] for index in np.flatnonzero(best)), key=lambda victim: victim.pod)),
        staying=weigh.staying(best),
        moved=MovedQueues(fewest, fewest),
        unmarked=MovedQueues(unmarked, unmarked),
        is_best=is_best,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """Choices of pods, weighed by the members in them; ``pod_of`` is the index of each member's pod."""

    leaving: Leaving
    pods: Sequence[Victim]
    pod_of: NDArray[np.intp]

    def moved(self, choices: Choices) -> Counts:
        return self.leaving.moved(~choices[:, self.pod_of])

    def staying(self, choice: NDArray[np.bool_]) -> tuple[str, ...]:
        stops = choice[self.pod_of].tolist()
        return tuple(member for member, gone in zip(self.leaving.members, stops, strict=True) if not gone)

    def own_pick(self, stop: int) -> Choices:
        """What the ReplicaSet would stop: the pods come in its order."""
        return _row(range(stop), len(self.pods))

    def in_order(self, choices: Choices) -> Choices:
        """Return the choices, those first that the ReplicaSet is nearest to: their marks have least to reverse."""
        indices = [tuple(np.flatnonzero(choice).tolist()) for choice in choices]
        return choices[sorted(range(len(choices)), key=lambda row: (sum(indices[row]), indices[row]))]

    def choices(self, stop: int) -> tuple[Choices, bool]:
        """Return the choices to weigh, and whether the best of all is among them."""
        count = len(self.pods)
        if comb(count, stop) <= self.leaving.most_choices:
            return _rows(list(combinations(range(count), stop)), count), True
        cheapest = self._cheapest(stop)
        if cheapest is not None:
            return np.concatenate([cheapest, self.own_pick(stop)]), True
        return self._search(stop), False

    def _cheapest(self, stop: int) -> Choices | None:
        """Return the cheapest choice where every pod is one member, so that the strategy's own order holds for pods."""
        if len(self.leaving.members) != len(self.pods):
            return None
        stays = self.leaving.cheapest(len(self.pods) - stop)
        return None if stays is None else _row(self.pod_of[~stays], len(self.pods))

    def _search(self, stop: int) -> Choices:
        """Return choices by rules and by chance, and the best of them with pods exchanged until nothing gets better."""
        tried = np.concatenate([self._by_rules(stop), self._greedy(stop), self._draw(stop)])
        order = np.argsort(self.moved(tried), kind="stable")[:_IMPROVED]
        return np.concatenate([tried, *(self._improve(tried[index]) for index in order)])

    def _by_rules(self, stop: int) -> Choices:
        """The ReplicaSet's pick, those who own least, and the last and the first in the members' order."""
        count, pod_of = len(self.pods), self.pod_of
        owned = np.bincount(pod_of, weights=self.leaving.owned, minlength=count)
        by_member = list(dict.fromkeys(pod_of.tolist()))
        least = np.argsort(owned, kind="stable")[:stop].tolist()
        return _rows([range(stop), least, by_member[-stop:], by_member[:stop]], count)

    def _greedy(self, stop: int) -> Choices:
        """Stop one pod after the other, each time the one that then moves fewest."""
        chosen: list[int] = []
        for _ in range(stop):
            left = [index for index in range(len(self.pods)) if index not in chosen]
            moved = self.moved(_rows([[*chosen, index] for index in left], len(self.pods)))
            chosen.append(left[int(moved.argmin())])
        return _row(chosen, len(self.pods))

    def _draw(self, stop: int) -> Choices:
        random, count = np.random.default_rng(_SEED), len(self.pods)
        return _rows([random.permutation(count)[:stop].tolist() for _ in range(DRAWN)], count)

    def _improve(self, choice: NDArray[np.bool_]) -> Choices:
        """Return the choice with single pods exchanged for others, as long as that moves fewer queues."""
        random, moved = np.random.default_rng(_SEED), int(self.moved(choice[None])[0])
        for _ in range(_ROUNDS):
            swapped = self._swap(choice, random)
            moves = self.moved(swapped)
            if moves.min() >= moved:
                break
            choice, moved = swapped[int(moves.argmin())], int(moves.min())
        return choice[None]

    def _swap(self, choice: NDArray[np.bool_], random: np.random.Generator) -> Choices:
        """Return the choice with one pod exchanged, every pair; in a large group some pairs drawn at random."""
        pairs = np.array([(gone, left) for gone in np.flatnonzero(choice) for left in np.flatnonzero(~choice)])
        if len(pairs) > _MOST_SWAPS:
            pairs = pairs[random.choice(len(pairs), _MOST_SWAPS, replace=False)]
        swapped = np.repeat(choice[None], len(pairs), axis=0)
        rows = np.arange(len(pairs))
        swapped[rows, pairs[:, 0]], swapped[rows, pairs[:, 1]] = False, True
        return swapped


def _scale(departure: Leaving, pods: Sequence[Victim]) -> _Scale:
    pod_index_of = {member: index for index, pod in enumerate(pods) for member in pod.members}
    return _Scale(departure, pods, np.array([pod_index_of[member] for member in departure.members], dtype=np.intp))


def _row(indices: Sequence[int] | NDArray[np.intp], count: int) -> Choices:
    return _rows([indices], count)


def _rows(index_sets: Sequence[Sequence[int] | NDArray[np.intp]], count: int) -> Choices:
    rows = np.zeros((len(index_sets), count), dtype=np.bool_)
    chosen = np.array(index_sets, dtype=np.intp).reshape(len(index_sets), -1)
    rows[np.arange(len(index_sets))[:, None], chosen] = True
    return rows


def _check_joined(
    snapshot: GroupSnapshot, deployment: Deployment, pods: Sequence[Pod], members: dict[str, list[str]]
) -> None:
    placed = {link.client for link in snapshot.pods}
    homeless = [client for client in snapshot.clients if client not in placed]
    empty = [pod.name for pod in pods if pod.name not in members]
    unready = [pod.name for pod in pods if not pod.is_ready or not pod.node]
    ending = [pod.name for pod in deployment.pods or () if pod.is_ending and not pod.has_finished]
    templates = {pod.label(_TEMPLATE) for pod in pods}
    if len(set(snapshot.clients)) < len(snapshot.clients):
        raise _no_victims(f"group {snapshot.group} has a member id twice: give each process an id of its own")
    if homeless:
        raise _no_victims(f"no pod of {deployment.workload} could be told to run {_list_names('member', homeless)}")
    if empty:
        raise _no_victims(
            f"{_list_names('pod', empty)} of {deployment.workload} runs no member that could be recognised"
        )
    if unready or ending:
        blocking = [*unready, *ending]
        raise _no_victims(
            f"{_list_names('pod', blocking)} of {deployment.workload} is not ready or is ending: such pods go first, "
            "whatever they are marked with; wait until all are ready"
        )
    if len(templates) > 1:
        raise _no_victims(
            f"{deployment.workload} has pods of {len(templates)} templates: wait until its rollout is done"
        )


def _no_victims(sentence: str) -> Exception:
    return refused(Refusal.VICTIMS_CANNOT_BE_CHOSEN, sentence)


def _list_names(noun: str, names: Sequence[str]) -> str:
    return f"{noun} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
