"""What inference answers: which strategies explain what was observed, which do not and why, in values and in
sentences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

Options = Mapping[str, Any]
"""One set of parameters, as ``find_strategy`` takes them and the user writes them."""

_SHOWN = 4


class Freedom(IntEnum):
    """How much was fitted to make a strategy explain what was observed; of two that do, the one with less is
    likelier."""

    NONE = 0
    """Nothing: no parameter, or its default."""
    NUMBER = 1
    """One number."""
    SETS = 2
    """Sets of names: rooms, hosts, clients; or a history of which one step was observed."""
    LISTS = 3
    """A list for each client or queue, or a history that nobody saw, which fits nearly any ownership."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer rests on: queues whose owner is known (or known to be nobody), summed over the snapshots.

    ``queues_explained`` of ``queues_observed`` are owned by whom the strategy gives them to.
    """

    queues_explained: int
    queues_observed: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """One strategy that explains everything that was observed.

    ``parameters`` are all sets of options under which it does, the likeliest first: ``find_strategy(strategy,
    parameters[0])`` runs it. ``is_exact`` is False where the strategy goes by its own history: what was observed is
    then consistent with it, which is less than explained.
    """

    strategy: str
    parameters: tuple[Options, ...]
    freedom: Freedom
    evidence: Evidence
    is_exact: bool = True

    @property
    def options(self) -> Options:
        """The likeliest parameters."""
        return self.parameters[0]

    @property
    def words(self) -> str:
        """The strategy with its parameters, such as ``CONSISTENT_HASH with 9 to 12 or 31 virtual nodes``."""
        name = self.strategy
        if "virtual_nodes" in self.options and self.freedom < Freedom.SETS:
            return f"{name} with {_ranges([options['virtual_nodes'] for options in self.parameters])} virtual nodes"
        if "pop_share_queues" in self.options:
            return f"{name} in POP mode with popShareQueueNum {_shares(self.parameters)}"
        if "consumer_rooms" in self.options and len(self.parameters) == 1:
            return f"{name} for rooms {', '.join(self.options['consumer_rooms']) or 'none'}"
        if self.freedom >= Freedom.SETS and len(self.parameters) > 1:
            return f"{name} with any of {len(self.parameters)} sets of parameters"
        return name


@dataclass(frozen=True, slots=True)
class Refuted:
    """One strategy that does not explain what was observed, and the sentence that says why."""

    strategy: str
    reason: str


@dataclass(frozen=True, slots=True)
class MemberExplanation:
    """What one member runs, by its own list alone: every RocketMQ client allocates for itself.

    ``named`` is the strategy that it names, or its class where that is a user's own; ``None`` when it reports nothing.
    """

    client: str
    named: str | None
    explanations: tuple[Explanation, ...]

    @property
    def strategy(self) -> str | None:
        """The strategy that it runs; ``None`` when several with as little freedom explain its list, or none does."""
        return simplest(self.explanations)


@dataclass(frozen=True, slots=True)
class Inference:
    """Which strategy a group runs, as far as is known from outside.

    ``explanations`` hold for the whole group, those with the least fitted first. ``members`` is filled where none does,
    or only one that fits nearly anything: each member for itself. ``is_mixed`` says that they run different strategies,
    by their own word or by what they own: a split brain. ``named`` are the names by the members' own word, ``custom``
    the classes of users' own. ``unsearched`` names strategies with more parameters than were tried.
    """

    system: str
    evidence: Evidence
    explanations: tuple[Explanation, ...] = ()
    refuted: tuple[Refuted, ...] = ()
    members: tuple[MemberExplanation, ...] = ()
    is_mixed: bool = False
    named: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()

    @property
    def strategy(self) -> str | None:
        """The strategy's name; ``None`` when it is unknown, ambiguous, or members run different ones."""
        return None if self.is_mixed else simplest(self.explanations)

    @property
    def options(self) -> Options:
        """The likeliest parameters of ``strategy``; empty where that is ``None``."""
        return self.explanations[0].options if self.strategy else {}

    @property
    def is_determined(self) -> bool:
        """True when one strategy with one set of parameters, and nothing else, explains what was observed."""
        alone = len(self.explanations) == 1 and len(self.explanations[0].parameters) == 1
        return alone and self.explanations[0].is_exact and not self.unsearched and not self.is_mixed

    @property
    def sentence(self) -> str:
        """What was found and on what evidence, in one sentence."""
        if self.is_mixed:
            return self._mixed()
        if not self.evidence.queues_observed:
            return "nothing is known of who owns what"
        return self._explained() if self.explanations else self._unknown()

    def _mixed(self) -> str:
        unless = _joined([explanation.strategy for explanation in self.explanations], "or")
        but = f", unless all run {unless}, which would explain it too" if unless else ""
        return f"members run different strategies ({'; '.join(map(_member_words, self.members))}): a split brain{but}"

    def _explained(self) -> str:
        fewest = self.explanations[0].freedom
        likely = _joined(
            [explanation.words for explanation in self.explanations if explanation.freedom == fewest], "or"
        )
        verb = "explains" if self.explanations[0].is_exact else "is consistent with"
        own = f"the members run {self.custom[0]}, which is not known here; " if self.custom else ""
        evidence = self.evidence
        queues, snapshots = _count(evidence.queues_observed, "queue"), _count(evidence.snapshots, "snapshot")
        return f"{own}{likely} {verb} the owners of all {queues} seen in {snapshots}"

    def _unknown(self) -> str:
        if self.custom:
            return f"the members run {self.custom[0]}, which is not known here and behaves like nothing that is"
        reason = f": {self.refuted[0].reason}" if self.refuted else ""
        if self.named:
            return f"{self.named[0]}, which the group names, does not explain what its members own{reason}"
        return f"no known strategy explains what the members own{reason}"


def simplest(explanations: Sequence[Explanation]) -> str | None:
    """Return the name of the one explanation with the least freedom; ``None`` when there is none, or several."""
    if not explanations:
        return None
    fewest = min(explanation.freedom for explanation in explanations)
    names = {explanation.strategy for explanation in explanations if explanation.freedom == fewest}
    return names.pop() if len(names) == 1 else None


def contradiction(stated: str, inferred: Inference) -> str | None:
    """Return what speaks against the strategy that a policy states, ``None`` when nothing does.

    ``MACHINE_ROOM_NEARBY`` stands for itself over any inner strategy. Nothing speaks against it where nothing is known.
    """
    if inferred.is_mixed:
        return f"the policy states {stated}, but {inferred.sentence}"
    if _names(stated, [*(explanation.strategy for explanation in inferred.explanations), *inferred.unsearched]):
        return None
    if inferred.named and not _names(stated, inferred.named):
        return f"the policy states {stated}, but the members run {_joined(inferred.named, 'and')}"
    reasons = [refuted.reason for refuted in inferred.refuted if _is_same(stated, refuted.strategy)]
    if reasons or inferred.explanations:
        return f"the policy states {stated}, but {reasons[0] if reasons else inferred.sentence}"
    return None


def _names(stated: str, names: Iterable[str]) -> bool:
    return any(_is_same(stated, name) for name in names)


def _is_same(stated: str, name: str) -> bool:
    return stated == name or name.startswith(f"{stated}-") or stated.startswith(f"{name}-")


def _member_words(member: MemberExplanation) -> str:
    if member.explanations:
        fewest = member.explanations[0].freedom
        likely = _joined(
            [explanation.words for explanation in member.explanations if explanation.freedom == fewest], "or"
        )
        return f"{member.client} runs {likely}"
    if member.named is not None:
        return f"{member.client} says {member.named}"
    return f"nothing explains {member.client}"


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as ``9 to 12, 31 or 40``; of many stretches the first few."""
    stretches: list[list[int]] = []
    for number in sorted(numbers):
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    words = [str(low) if low == high else f"{low} to {high}" for low, high in stretches]
    if len(words) > _SHOWN:
        return f"{', '.join(words[:_SHOWN])} or one of {sum(b - a + 1 for a, b in stretches[_SHOWN:])} more numbers of"
    return _joined(words, "or")


def _shares(parameters: Sequence[Options]) -> str:
    return _joined(
        ["0" if options["pop_share_queues"] == 0 else str(options["pop_share_queues"]) for options in parameters], "or"
    )


def _joined(words: Sequence[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
