"""One ``GroupModel`` for each system: all that a simulated count, and the change to it, owe to the group's system.

A further system is a folder with a model beside ``rocketmq`` and ``kafka``, and its entry in ``_MODELS``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.model.systems import System, system_named
from planner.simulation.kafka.share_model import kafka_model
from planner.simulation.leaving import Leaving
from planner.simulation.need import Need
from planner.simulation.outcome import CandidateOutcome, DrawnAnew
from planner.simulation.rocketmq.model import RocketmqModel

Change = Any
"""What may happen to a group, as its system's forecast has it: only the system's own model looks inside."""

Request = Any
"""A forecast's request of the group's system: a frozen dataclass with ``change``, ``trials`` and ``seed``."""


class GroupModel(Protocol):
    """One group, as its clients and servers would run it with other members."""

    @property
    def snapshot(self) -> GroupSnapshot:
        """The group as it is."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Strategies that every group of the system is simulated under, beside its own."""

    def shares_messages(self) -> bool:
        """Return whether members share the messages of queues, at every count of members, so that none has an owner."""

    def busiest_fraction(self, members: int) -> float | None:
        """Return which part of all that comes in the busiest of so many members may get that share messages.

        ``None`` where each gets the same, and where members do not share messages.
        """

    def most_members(self) -> int | None:
        """Return how many members the group takes by its servers' own bound, ``None`` without one."""

    def can_compute(self) -> bool:
        """Return whether the answer of the group's own strategy is known for other counts."""

    def unsupported_strategy(self) -> str | None:
        """Return in a sentence why no count can be decided on under the group's own strategy; ``None``: one can."""

    def unsettled_queues(self) -> int | None:
        """Return how many data queues are not owned as the group's own strategy gives them; ``None``: unknown."""

    def divided_sizes(self, strategy: str | None) -> tuple[int, ...]:
        """Return the sizes that the strategy divides one by one: of each topic, or of all together."""

    def draws_newcomers(self) -> bool:
        """Return whether what newcomers are decides, so that they are drawn and every count may help."""

    def goes_by_names(self, strategy: str) -> bool:
        """Return whether shares depend on the members' names, so that no count can be ruled out by sizes alone."""

    def why_no_more(self, strategy: str) -> str | None:
        """Return why no count above the present one can be simulated under this strategy, ``None`` where each can."""

    def simulate(self, members: int, strategy: str, staying: Sequence[str] | None) -> CandidateOutcome:
        """Return what so many members would mean; ``staying`` names those who are left, where that is known.

        Raises ``UnknownNameError`` for a strategy not known here, ``BadInputError`` where a newcomer's share is not.
        """

    def fresh_owners(self, clients: Sequence[str]) -> Mapping[Queue, str | None]:
        """Return who owns what when these clients are the group's first."""

    def fresh_unknowns(self) -> tuple[str, ...]:
        """Return in sentences what of that is not known."""

    def leaving(self) -> Leaving:
        """Return what the stop of any members moves under the group's own strategy; ``can_compute`` must hold."""

    def cost_by_rule(self, outcome: CandidateOutcome) -> CandidateOutcome | None:
        """Return the outcome with what the change costs where rules alone say it; ``None``: a forecast does."""

    def request(
        self,
        outcome: CandidateOutcome,
        end: int,
        change: Change | None = None,
        producers: Mapping[str, str] | None = None,
    ) -> Request:
        """Return the change to ``outcome`` as a forecast's request, at one end of what is known as an interval only.

        ``change`` is what happens instead; ``producers`` how those of each topic choose the queue. Raises
        ``BadInputError`` with what is not known and has no interval either.
        """

    def requests(self, outcome: CandidateOutcome, end: int) -> Sequence[Request]:
        """Return ``request`` once, or for each of a few sets of newcomers where what these are decides."""

    def lists_to_write(self, members: int) -> Mapping[str, Sequence[Queue]] | None:
        """Return the lists that must change before there are so many members; ``None`` where none must."""

    def strategies(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield all strategies of the system with the options that they are compared with."""

    def drawn_anew(self, strategy: str, futures: Sequence[tuple[GroupSnapshot, int]]) -> tuple[DrawnAnew, ...] | None:
        """Return what the group's futures mean with the ids of all members drawn, and how many members each has.

        ``None`` where ids decide nothing, or are known. Queues move from those of the first future.
        """

    def assumptions(self, outcome: CandidateOutcome) -> Iterator[str]:
        """Yield in sentences what the forecast of the change takes for granted."""

    def leave_change(self, clients: Sequence[str], how: str) -> Change:
        """Return the change by which these members end: ``graceful``, ``crash`` or ``silent``."""

    def restart_change(self, clients: Sequence[str], how: str, interval_s: float, stagger_s: float) -> Change:
        """Return the change by which these members end, one every ``stagger_s``, and start ``interval_s`` later."""

    def roll_change(self, surge: int, unavailable: int, **seconds: float) -> Change:
        """Return the change by which a Deployment replaces all pods: ``ready_s``, ``min_ready_s`` and ``grace_s``."""

    def with_topics(self, change: Change, topics: Iterable[str]) -> Change:
        """Return a change of ``roll_change`` whose new pods' members subscribe to these topics and to no others.

        Raises ``BadInputError`` where members that subscribe to different topics must not be in one group.
        """

    def broker_loss(self, broker: str) -> Change:
        """Return the death of a broker; raise ``BadInputError`` where the snapshot does not have what that takes."""

    def growth_changes(self, topic: str, each: int) -> Sequence[Change]:
        """Return the changes by which the topic gets ``each`` queues in each place, in the order in which they come."""

    def growth_question(self, topic: str, each: int) -> str:
        """Return the question whose yes says that the topic has them."""

    def shrink_changes(self, topic: str, each: int) -> Sequence[Change]:
        """Return the changes after which no queue of the topic from number ``each`` on is read, in their order.

        Raises ``BadInputError`` where the system takes no queue away.
        """

    def shrink_questions(self, topic: str, each: int, given_up: str) -> tuple[str, str]:
        """Return the questions whose yes says that nothing is sent to the queues, and that nobody reads them.

        ``given_up`` names the queues. Raises ``BadInputError`` as ``shrink_changes`` does.
        """

    def instead_of_pods(self, need: Need) -> str | None:
        """Return in a sentence what another lever of the members would do instead of more pods; ``None`` for nothing.

        It is the most that may come of it, or says why nothing would, or that it is unknown.
        """

    def new_group_conditions(self) -> Iterator[str]:
        """Yield what must be true before the members join another group, of which offsets are all it gets."""


_MODELS: Final[Mapping[str, Callable[[GroupSnapshot], GroupModel]]] = {"rocketmq": RocketmqModel, "kafka": kafka_model}


def group_model(snapshot: GroupSnapshot) -> GroupModel:
    """Return the model of the snapshot's group; raises ``BadInputError`` for a system that is not known."""
    return _MODELS[system_of(snapshot).name](snapshot)


def system_of(snapshot: GroupSnapshot) -> System:
    """Return the system of the snapshot's group."""
    return system_named(snapshot.system)
