"""Which pods stop when a group gets smaller: those whose stop moves the fewest queues, and loses least among equals."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from planner.model.deployments import Deployment
from planner.model.pods import Pod
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
    """Return the target's pods with their members, in the order in which its controller would stop them.

    Raises ``RefusedError`` where a stop could hit another pod than the one that is meant: a member without a pod, a
    pod without a member, a pod that is not ready (those go first, whatever their deletion cost), or two templates.
    """
    deployment = snapshot.deployment
    if deployment is None or deployment.pods is None:
        raise _no_victims(
            f"the pods of group {snapshot.group} were not read: let the policy's spec.kubernetes read them"
        )
    pods = _stop_order(deployment, deployment.pods)
    members: defaultdict[str, list[str]] = defaultdict(list)
    for link in snapshot.pods:
        members[link.pod].append(link.client)
    _check_joined(snapshot, deployment, pods, members)
    return tuple(Victim(pod.name, tuple(sorted(members[pod.name]))) for pod in pods)


def _stop_order(deployment: Deployment, pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """Return the pods in the order in which they stop: by the ReplicaSet's rules, or a StatefulSet's highest first.

    Raises ``RefusedError`` where a StatefulSet lacks one of its numbers: the highest pod is then not who goes first.
    """
    if deployment.ordinals is None:
        return stop_order(pods, deployment.at)
    live = {pod.name: pod for pod in pods if not pod.is_ending and not pod.has_finished}
    expected = deployment.pod_names(deployment.replicas)
    if set(live) != set(expected):
        others = sorted(set(live) ^ set(expected))
        raise _no_victims(
            f"{deployment.workload} asks for {deployment.replicas} pods, {expected[0] if expected else 'none'} and on, "
            f"but {_list_names('pod', others)} is missing or too many: wait until it has the pods that it asks for"
        )
    return tuple(live[name] for name in reversed(expected))


def choose_victims(
    snapshot: GroupSnapshot,
    stop: int,
    loss: Callable[[Sequence[str]], Loss] | None = None,
    stops: Mapping[str, int] | None = None,
) -> Choice:
    """Return which ``stop`` pods should go; the same snapshot gives the same choice. A StatefulSet leaves none.

    ``stops`` says how many of them each of several Deployments stops, by its name.

    Members of one pod go together. ``loss`` returns for the members that stay what the stop of the others loses; it
    decides among choices that move equally many queues, after it what the ReplicaSet would take first. All choices are
    weighed where that is quick; else the cheapest is computed where the strategy allows, and searched for where it does
    not.

    Raises ``RefusedError`` as ``pods_of_members`` does, ``ValueError`` for a count that is not between 1 and all.
    """
    pods = pods_of_members(snapshot)
    if not 1 <= stop <= len(pods):
        raise ValueError(f"group {snapshot.group} to stop 1 to {len(pods)} pods, not {stop}")
    weigh = _scale(leaving(snapshot), pods, _quotas(snapshot, pods, stop, stops))
    if snapshot.deployment is not None and snapshot.deployment.ordinals is not None:
        return _highest(weigh, stop)
    choices, is_best = weigh.choices(stop)
    moved = weigh.moved(choices)
    equal = weigh.in_order(choices[moved == moved.min()])[:_EQUALS]
    best = min(equal, key=lambda choice: loss(weigh.staying(choice))) if loss and len(equal) > 1 else equal[0]
    fewest, unmarked = int(moved.min()), int(weigh.moved(weigh.own_pick())[0])
    return Choice(
        victims=tuple(sorted((pods[index] for index in np.flatnonzero(best)), key=lambda victim: victim.pod)),
        staying=weigh.staying(best),
        moved=MovedQueues(fewest, fewest),
        unmarked=MovedQueues(unmarked, unmarked),
        is_best=is_best,
    )


def _highest(weigh: "_Scale", stop: int) -> Choice:
    """Return the only choice that a StatefulSet leaves: its last pods, the very last first."""
    own = weigh.own_pick()
    moved = int(weigh.moved(own)[0])
    return Choice(
        victims=tuple(weigh.pods[:stop]),
        staying=weigh.staying(own[0]),
        moved=MovedQueues(moved, moved),
        unmarked=MovedQueues(moved, moved),
        is_best=True,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """Choices of pods, weighed by the members in them; ``pod_of`` is the index of each member's pod.

    ``quotas`` has for each Deployment the indices of its pods, and how many of these stop.
    """

    leaving: Leaving
    pods: Sequence[Victim]
    pod_of: NDArray[np.intp]
    quotas: Sequence["_Quota"]

    def moved(self, choices: Choices) -> Counts:
        return self.leaving.moved(~choices[:, self.pod_of])

    def staying(self, choice: NDArray[np.bool_]) -> tuple[str, ...]:
        stops = choice[self.pod_of].tolist()
        return tuple(member for member, gone in zip(self.leaving.members, stops, strict=True) if not gone)

    def own_pick(self) -> Choices:
        """What the ReplicaSets would stop: the pods come in their order."""
        return _row(self._first(range(len(self.pods))), len(self.pods))

    def _first(self, order: Iterable[int]) -> list[int]:
        """Return the pods that stop where they stop in this order, as many of each Deployment as it stops."""
        listed = list(order)
        return [index for pods, stop in self.quotas for index in [index for index in listed if index in pods][:stop]]

    def in_order(self, choices: Choices) -> Choices:
        """Return the choices, those first that the ReplicaSet is nearest to: their marks have least to reverse."""
        indices = [tuple(np.flatnonzero(choice).tolist()) for choice in choices]
        return choices[sorted(range(len(choices)), key=lambda row: (sum(indices[row]), indices[row]))]

    def choices(self, stop: int) -> tuple[Choices, bool]:
        """Return the choices to weigh, and whether the best of all is among them."""
        count = len(self.pods)
        if prod(comb(len(pods), each) for pods, each in self.quotas) <= self.leaving.most_choices:
            by_deployment = (combinations(sorted(pods), each) for pods, each in self.quotas)
            return _rows([tuple(chain(*choice)) for choice in product(*by_deployment)], count), True
        cheapest = self._cheapest(stop)
        if cheapest is not None:
            return np.concatenate([cheapest, self.own_pick()]), True
        return self._search(stop), False

    def _cheapest(self, stop: int) -> Choices | None:
        """Return the cheapest choice where every pod is one member, so that the strategy's own order holds for pods.

        Not of several Deployments: that order says nothing of how many each stops.
        """
        if len(self.leaving.members) != len(self.pods) or len(self.quotas) > 1:
            return None
        stays = self.leaving.cheapest(len(self.pods) - stop)
        return None if stays is None else _row(self.pod_of[~stays], len(self.pods))

    def _search(self, stop: int) -> Choices:
        """Return choices by rules and by chance, and the best of them with pods exchanged until nothing gets better."""
        tried = np.concatenate([self._by_rules(), self._greedy(stop), self._draw()])
        order = np.argsort(self.moved(tried), kind="stable")[:_IMPROVED]
        return np.concatenate([tried, *(self._improve(tried[index]) for index in order)])

    def _by_rules(self) -> Choices:
        """The ReplicaSet's pick, those who own least, and the last and the first in the members' order."""
        count, pod_of = len(self.pods), self.pod_of
        owned = np.bincount(pod_of, weights=self.leaving.owned, minlength=count)
        by_member = list(dict.fromkeys(pod_of.tolist()))
        least = np.argsort(owned, kind="stable").tolist()
        orders: list[Iterable[int]] = [range(count), least, by_member[::-1], by_member]
        return _rows([self._first(order) for order in orders], count)

    def _greedy(self, stop: int) -> Choices:
        """Stop one pod after the other, each time the one that then moves fewest."""
        chosen: list[int] = []
        for _ in range(stop):
            left = [index for index in self._may_stop(chosen) if index not in chosen]
            moved = self.moved(_rows([[*chosen, index] for index in left], len(self.pods)))
            chosen.append(left[int(moved.argmin())])
        return _row(chosen, len(self.pods))

    def _may_stop(self, chosen: Sequence[int]) -> list[int]:
        """Return the pods of the Deployments of which more stop than are chosen."""
        may = (pods for pods, stop in self.quotas if len(pods.intersection(chosen)) < stop)
        return sorted(chain(*may))

    def _draw(self) -> Choices:
        random, count = np.random.default_rng(_SEED), len(self.pods)
        return _rows([self._first(random.permutation(count).tolist()) for _ in range(DRAWN)], count)

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
        pairs = np.array(
            [
                (gone, left)
                for pods, _ in self.quotas
                for gone in np.flatnonzero(choice)
                for left in np.flatnonzero(~choice)
                if gone in pods and left in pods
            ]
        )
        if len(pairs) > _MOST_SWAPS:
            pairs = pairs[random.choice(len(pairs), _MOST_SWAPS, replace=False)]
        swapped = np.repeat(choice[None], len(pairs), axis=0)
        rows = np.arange(len(pairs))
        swapped[rows, pairs[:, 0]], swapped[rows, pairs[:, 1]] = False, True
        return swapped


_Quota = tuple[frozenset[int], int]


def _scale(departure: Leaving, pods: Sequence[Victim], quotas: Sequence[_Quota]) -> _Scale:
    pod_index_of = {member: index for index, pod in enumerate(pods) for member in pod.members}
    pod_of = np.array([pod_index_of[member] for member in departure.members], dtype=np.intp)
    return _Scale(departure, pods, pod_of, quotas)


def _quotas(
    snapshot: GroupSnapshot, pods: Sequence[Victim], stop: int, stops: Mapping[str, int] | None
) -> Sequence[_Quota]:
    """Return which pods each Deployment has, by index, and how many of them stop. Raises ``ValueError``."""
    if stops is None:
        return [(frozenset(range(len(pods))), stop)]
    deployment_of = deployments_of_pods(snapshot)
    quotas = [
        (frozenset(index for index, pod in enumerate(pods) if deployment_of[pod.pod] == name), each)
        for name, each in stops.items()
    ]
    if sum(stops.values()) != stop or any(len(indices) < each for indices, each in quotas):
        raise ValueError(f"group {snapshot.group} to stop {stop} pods, of each Deployment as many as it has")
    return quotas


def deployments_of_pods(snapshot: GroupSnapshot) -> dict[str, str]:
    """Return pod -> the name of the Deployment that it belongs to, for the pods that were read."""
    pods = (snapshot.deployment.pods if snapshot.deployment else None) or ()
    return {pod.name: pod.workload.name if pod.workload else "" for pod in pods}


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
    templates = Counter(
        workload for workload, _ in {(pod.workload, pod.label(deployment.template_label or "")) for pod in pods}
    )
    most = max(templates.values(), default=0)
    if len(set(snapshot.clients)) < len(snapshot.clients):
        raise _no_victims(f"group {snapshot.group} has a member id twice: give each process an id of its own")
    if homeless:
        raise _no_victims(f"no pod of {deployment.workload} is known to run {_list_names('member', homeless)}")
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
    if most > 1:
        raise _no_victims(f"{deployment.workload} has pods of {most} templates: wait until its rollout is done")


def _no_victims(sentence: str) -> Exception:
    return refused(Refusal.VICTIMS_CANNOT_BE_CHOSEN, sentence)


def _list_names(noun: str, names: Sequence[str]) -> str:
    return f"{noun} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
