"""One group under test: started, seen to be at work, changed, seen to be at work again."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.clusters.errors import StartFailedError
from tests.clusters.kafka_load import Delivery, Partition, PartitionCurve
from tests.conformance.kafka.cells import Case, Document
from tests.conformance.kafka.coordinator import Picture, committed, configure_group, ends, look
from tests.conformance.kafka.logs import delivered, holds
from tests.conformance.kafka.stage import Stage, await_true
from tests.conformance.measure import Hold, Log, measure, parts

SPREAD_S = 6.0
"""Groups start, and change, somewhere within this time, so that their timers have any phase."""
CALM_S = 3.0
FRESH_S = 0.25
"""What came within this time is on its way, and no backlog."""
PATIENCE_S = 100.0
LOOK_BACK_S = 5.0
_LONGEST_S = 600.0
COMING, GOING = ("join", "rolling_update", "blue_green"), ("leave", "rolling_update", "blue_green")
"""Kinds of change that bring members, and that take some away for good."""


class DisturbedError(Exception):
    """The group was not what it should be, so that nothing can be learned from it."""


@dataclass(frozen=True, slots=True)
class Before:
    """How a group was just before its change; ``lags`` are records not delivered yet, by partition."""

    picture: Picture
    lags: Sequence[int]
    last_event_ms: int


@dataclass
class Group:
    """A case on a stage; one thread calls ``start``, ``look``, a change of ``changes``, ``await_settled``, ``end``.

    ``done_s``: when parts of the change were really done, in seconds since its moment.
    """

    case: Case
    stage: Stage
    members: list[str] = field(init=False)
    newcomers: list[str] = field(init=False)
    victims: list[str] = field(init=False)
    gone_ms: dict[str, int] = field(default_factory=dict)
    done_s: Document = field(default_factory=dict)
    moment_ms: int = 0
    end_ms: int = 0
    busy: float = 0.0
    _unrest: str = ""

    def __post_init__(self) -> None:
        cell = self.case.cell
        self.cell, self.dice = cell, self.case.dice
        self.name, self.topic = f"g{self.case.id}", f"t{self.case.id}"
        self.current = self.name
        self.partitions = cell.partitions
        numbers = sorted(self.dice.sample(range(100, 1000), cell.members))
        self.members = [f"{self.name}-m{number}" for number in numbers]
        # Where a newcomer's name sorts decides what range and roundrobin move.
        newcomers = cell.count if cell.kind in COMING else 0
        self.newcomers = [f"{self.name}-{self.dice.choice('bz')}{number}" for number in range(newcomers)]
        self.victims = self.dice.sample(self.members, cell.count) if cell.kind != "join" else []

    def start(self) -> None:
        """Create topic and members, and return when every partition is delivered by its owner."""
        cell, cluster = self.cell, self.stage.cluster
        time.sleep(self.dice.uniform(0, SPREAD_S))
        cluster.create_topic(self.topic, cell.partitions)
        if cell.group:
            configure_group(cluster, self.name, cell.group)
        if cell.backlog:
            cluster.produce(self.topic, dict.fromkeys(range(cell.partitions), cell.backlog))
        self.produce(range(cell.partitions), cell.rate)
        for member in self.members:
            self.start_member(member, is_victim=bool(cell.blow[0]) and member in self.victims)
        self._await_calm(self.members, since_ms=0)
        if not cell.backlog:
            await_true("end of what waited", self._is_drained, PATIENCE_S)
        # What a young group delivered before its first commit would come again, however often it commits later.
        due = ends(cluster, self.topic, cell.partitions)
        await_true("commit", lambda: self._has_committed(due), PATIENCE_S)
        time.sleep(self.dice.uniform(0, SPREAD_S))

    def look(self) -> Before:
        """Return how it is now; raise DisturbedError when it is not at rest."""
        picture = self._calm_picture(self.members, 0)
        if picture is None:
            raise DisturbedError("not at rest just before the change")
        return Before(picture, self._lags(), self._last_event_ms())

    @property
    def heir(self) -> str:
        """The group that takes over in a blue-green change."""
        return f"{self.name}-heir"

    def start_member(
        self, member: str, *, is_victim: bool = False, is_renewed: bool = False, assignors: Sequence[str] = ()
    ) -> None:
        """Start a member where the victims, those of the new release, or the others are, and return at once.

        It supports these assignors, unless told the group's one alone.
        """
        self.stage.process_of(is_victim=is_victim, is_renewed=is_renewed).start_consumer(
            member,
            group=self.current,
            topics=[self.topic],
            config=self.cell.config(assignors or [self.cell.assignor], self.instance_id(member)),
            service_ms=self.cell.service_ms,
            commit=self.cell.commit,
        )

    def instance_id(self, member: str) -> str | None:
        """Return the ``group.instance.id`` of a member, ``None`` where it has none."""
        return member if [*self.members, *self.newcomers].index(member) < self.cell.named else None

    def produce(self, partitions: Sequence[int], rate: float) -> None:
        """Send so many records a second to each of these partitions until ``end_producers``."""
        points = ((0.0, rate), (_LONGEST_S, rate))
        curves = [PartitionCurve(self.topic, number, points) for number in partitions]
        self.stage.producers.produce(f"{self.name}-p{len(curves)}", curves)

    def end_producers(self) -> None:
        """Ask all that send to the group's topic to stop, and return at once."""
        for event in self.stage.producers.events():
            if event.kind == "sending" and event.client.startswith(f"{self.name}-"):
                self.stage.producers.ask_to_stop(event.client)

    def await_settled(self, since_ms: int) -> None:
        """Return when the group is at work again after ``since_ms``, with all its partitions."""
        left = self.victims if self.cell.kind in GOING else ()
        self._await_calm([*(one for one in self.members if one not in left), *self.newcomers], since_ms)
        self.end_ms = now_ms()

    def observed(self) -> Document:
        """Return what was seen, as ``measure`` tells it; raise DisturbedError when a client failed."""
        events = self.stage.events(self.name)
        if failed := [f"{one.client} {one.detail}" for one in events if one.kind == "failed"]:
            raise DisturbedError("; ".join(failed[:3]))
        seen = delivered(self.stage.deliveries(self.topic), self.moment_ms)
        owned = [part for hold in holds(events, self.moment_ms, self.gone_ms) for part in self._parts(hold)]
        return measure(Log(seen, owned, -LOOK_BACK_S, (self.end_ms - self.moment_ms) / 1000))

    def _parts(self, hold: Hold) -> Iterable[Hold]:
        """Return what is left of a hold: who is cut off holds nothing meanwhile, whatever it believes."""
        is_cut = self.cell.blow[0] == "cut" and hold.member in self.victims
        return parts(hold, [(0.0, self.cell.blow[1])] if is_cut else [])

    def end(self) -> None:
        """Ask producers and members that still run to stop."""
        self.end_producers()
        for member in (*self.members, *self.newcomers):
            self.stage.ask_to_stop(member)

    def _await_calm(self, members: Sequence[str], since_ms: int) -> Picture:
        try:
            return await_true("rest", lambda: self._calm_picture(members, since_ms), PATIENCE_S)
        except StartFailedError as error:
            raise DisturbedError(
                f"{error} of {self.cell.client} {self.cell.assignor} {self.cell.change}: {self._unrest}"
            ) from error

    def _calm_picture(self, members: Sequence[str], since_ms: int) -> Picture | None:
        """Return the picture when these are the members, each partition has an owner, and its owner delivers it."""
        quiet_since_ms = max(since_ms, self._last_event_ms())
        if now_ms() - quiet_since_ms < CALM_S * 1000:
            self._unrest = "events of a moment ago"
            return None
        picture = look(self.stage.cluster, self.current)
        self._unrest = self._why_not(picture, members, quiet_since_ms)
        return None if self._unrest else picture

    def _why_not(self, picture: Picture | None, members: Sequence[str], quiet_since_ms: int) -> str:
        """Return what keeps the group from being at rest, nothing when it is."""
        if picture is None or not picture.is_stable:
            return f"the coordinator says {picture}"
        if set(picture.ids) != set(members):
            return f"its members are {sorted(picture.ids)}"
        if len(picture.owners) != self.partitions or self._last_event_ms() > quiet_since_ms:
            return f"{len(picture.owners)} of {self.partitions} partitions have owners"
        last = self._last_deliveries()
        silent = [
            key
            for key, owner in picture.owners.items()
            if key not in last or last[key].client != owner or last[key].epoch_ms <= quiet_since_ms
        ]
        return f"not delivered by their owners: {sorted(silent)}" if silent else ""

    def _last_deliveries(self) -> dict[Partition, Delivery]:
        return {(one.topic, one.partition): one for one in self.stage.deliveries(self.topic)}

    def _last_event_ms(self) -> int:
        return max((one.epoch_ms for one in self.stage.events(self.name)), default=0)

    def _has_committed(self, due: Sequence[int]) -> bool:
        found = committed(self.stage.cluster, self.name)
        margin = self.cell.rate * FRESH_S + self.cell.backlog
        return all(found.get((self.topic, number), 0) >= end - margin for number, end in enumerate(due))

    def _is_drained(self) -> bool:
        return max(self._lags()) <= 2 + FRESH_S * self.cell.rate

    def _lags(self) -> list[int]:
        """Return what waits, records not delivered yet, by partition; what is just being sent counts as delivered."""
        due = ends(self.stage.cluster, self.topic, self.partitions)
        last = self._last_deliveries()
        return [max(0, due[number] - last[self.topic, number].offset - 1) for number in range(self.partitions)]


def now_ms() -> int:
    """Return the clock that all logs use."""
    return time.time_ns() // 1_000_000
