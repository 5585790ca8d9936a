"""Steps that change nothing: they wait, ask and check."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from planner.model.machine_rooms import room_of
from planner.model.snapshot import POP, SHARE
from planner.rollout.queue_ranges import MOST_QUEUES, count_queues
from planner.rollout.steps.sense import check_limit, check_names
from planner.rollout.steps.words import grouped, named, pods
from planner.text.words import some

MOST_LAG: Final = 2**53
"""Messages or seconds: beyond it JSON readers disagree on a number."""

_SHARED: Final = {
    POP: ("take messages of every queue", "takes messages of every queue"),
    SHARE: ("share the records of all partitions", "has the records of all partitions"),
}
"""What members have under strategies by which none owns a queue, and what a single member has."""


@dataclass(frozen=True, slots=True)
class AwaitReady:
    """Wait until the Deployment has exactly that many pods, all of its newest template and ready; changes nothing."""

    is_final: ClassVar[bool] = False
    undo: ClassVar[None] = None

    replicas: int
    time_limit_seconds: int
    kind: Literal["awaitReady"] = "awaitReady"
    deployment: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        if self.replicas < 0:
            raise ValueError(f"{self.kind} to name 0 replicas or more, not {self.replicas}")

    @property
    def action(self) -> str:
        """What it does."""
        return f"wait until {self.done_when}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"{named(self.deployment)} asks for {self.replicas} replicas"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        if not self.replicas:
            return f"{named(self.deployment)} has no pod left"
        return f"{named(self.deployment)} has {pods(self.replicas)} of its newest template, all ready, and no other"


@dataclass(frozen=True, slots=True)
class AwaitSettled:
    """Wait until that many members each own what the strategy gives them, seen twice with no rebalance in between.

    ``options`` are the strategy's parameters, spelt as ``planner allocate`` takes them, where members that come with
    this plan bring them; ``None`` for those that are known of the group. Under ``MACHINE_ROOM_NEARBY`` members whose
    room they do not name are in ``new_room``: ids are not known before pods run.
    """

    is_final: ClassVar[bool] = False
    undo: ClassVar[None] = None

    members: int
    strategy: str
    time_limit_seconds: int
    kind: Literal["awaitSettled"] = "awaitSettled"
    group: str | None = None
    options: dict[str, Any] | None = None
    new_room: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "strategy", [self.strategy])
        if self.new_room is not None and not isinstance(self._rooms.get("clients"), Mapping):
            raise ValueError(f"{self.kind} to have options.machine_rooms.clients beside newRoom {self.new_room!r}")
        if self.members < 0:
            raise ValueError(f"{self.kind} to name 0 members or more, not {self.members}")

    @property
    def action(self) -> str:
        """What it does."""
        return f"wait until {self.done_when}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"no other plan changes {grouped(self.group)}"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        if not self.members:
            return f"{grouped(self.group)} has no member left, seen twice in a row"
        of_group = f" of group {self.group}" if self.group else ""
        where = f", new ones in machine room {self.new_room}," if self.new_room else ""
        return f"{self.everybody}{of_group}{where} {self.share}, seen twice with no rebalance in between"

    @property
    def everybody(self) -> str:
        """All the members, as a subject; ``share`` is its predicate."""
        return "the only member" if self.members == 1 else f"all {self.members} members"

    @property
    def share(self) -> str:
        """What every member has then, as a predicate."""
        alone = self.members == 1
        if self.strategy in _SHARED:
            return _SHARED[self.strategy][alone]
        verb, whom = ("owns", "it") if alone else ("own", "them")
        return f"{verb} what {self.strategy} {'so set up ' if self.options else ''}gives {whom}"

    def options_for(self, members: Iterable[str]) -> dict[str, Any]:
        """Return the strategy's parameters, as these members have them: each has a room where rooms count."""
        options = self.options or {}
        if self.new_room is None:
            return options
        known = self._rooms["clients"]
        rooms = {**self._rooms, "clients": {member: room_of(known, member) or self.new_room for member in members}}
        return {**options, "machine_rooms": rooms}

    @property
    def _rooms(self) -> Mapping[str, Any]:
        rooms = (self.options or {}).get("machine_rooms")
        return rooms if isinstance(rooms, Mapping) else {}


@dataclass(frozen=True, slots=True)
class AwaitLag:
    """Wait until the group's lag over all its queues is at most ``messages``, and its oldest wait ``seconds``.

    With ``queues``, as plans spell them, only what waits in these counts.
    """

    is_final: ClassVar[bool] = False
    undo: ClassVar[None] = None

    time_limit_seconds: int
    messages: int | None = None
    seconds: int | None = None
    kind: Literal["awaitLag"] = "awaitLag"
    group: str | None = None
    queues: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        bounds = [bound for bound in (self.messages, self.seconds) if bound is not None]
        if not bounds or min(bounds) < 0 or max(bounds) > MOST_LAG:
            raise ValueError(f"{self.kind} to name a bound from 0 to {MOST_LAG}, in messages, seconds or both")
        if self.queues is not None and not 0 < count_queues(self.queues) <= MOST_QUEUES:
            raise ValueError(f"{self.kind} to name 1 to {MOST_QUEUES} queues, or none to mean all")
        if self.queues is not None and self.seconds is not None:
            raise ValueError(f"{self.kind} to bound messages alone where it names queues")

    @property
    def action(self) -> str:
        """What it does."""
        return f"wait until {self.done_when}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"the lag of {grouped(self.group)} is known"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        bounds = [
            *([f"at most {self.messages} messages wait{self._where}"] if self.messages is not None else []),
            *([f"none waits longer than {self.seconds} s"] if self.seconds is not None else []),
        ]
        return f"in {grouped(self.group)} {' and '.join(bounds)}"

    @property
    def _where(self) -> str:
        return "" if self.queues is None else f" in {some(self.queues)}"


@dataclass(frozen=True, slots=True)
class PauseForPerson:
    """Wait until a person answers the question by letting the plan go on, or by aborting it."""

    is_final: ClassVar[bool] = False
    undo: ClassVar[None] = None

    question: str
    time_limit_seconds: int
    kind: Literal["pauseForPerson"] = "pauseForPerson"

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        if not self.question.strip().endswith("?"):
            raise ValueError(f"{self.kind} to ask a question, not {self.question!r}")

    @property
    def action(self) -> str:
        """What it does."""
        return f"ask a person “{self.question}”"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return "an approver is notified"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return "a person has let the plan go on"


@dataclass(frozen=True, slots=True)
class CheckForecast:
    """Compare the plan's forecast with what was observed. A miss is a verdict, it takes nothing back."""

    is_final: ClassVar[bool] = False
    undo: ClassVar[None] = None

    time_limit_seconds: int
    kind: Literal["checkForecast"] = "checkForecast"

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)

    @property
    def action(self) -> str:
        """What it does."""
        return "compare the forecast with what was observed"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return "the steps before are done"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return "each figure of the forecast has its verdict: inside, outside or unknown"
