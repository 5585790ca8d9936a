"""What is known of a change when it is over, and what of it a test may rely on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.conformance.measure import Queue
from tests.conformance.report import Compared, Point
from tests.conformance.rocketmq.collect import HIGHEST_AT_STARTS, Machine

JUDGED = ("pause_s", "duplicates")
HIGHEST_PRESSURE = HIGHEST_AT_STARTS
"""What the collectors ask of a start is asked of every change here: nobody chooses when the tests run."""
_MARKS = {True: "covered", False: "MISSED"}


@dataclass(frozen=True, slots=True)
class Transition:
    """One change beside its forecast; ``owners`` of every queue at its end, by the names that the forecast has.

    ``doubt`` says why its figures tell more of the machine than of the group, empty where they do not.
    """

    name: str
    compared: Compared
    owners: Mapping[Queue, set[str]]
    doubt: str

    @property
    def system(self) -> str:
        """Whose group it was."""
        return self.compared.record.system

    @property
    def points(self) -> tuple[Point, ...]:
        """The figures that are judged, whether or not there is a doubt."""
        return tuple(point for point in self.compared.points if point.measure in JUDGED)

    def lines(self) -> Iterator[str]:
        """Yield what was seen of each figure beside its forecast, and whether it is judged."""
        for point in self.points:
            verdict = f"not judged: {self.doubt}" if self.doubt else _MARKS[point.is_covered]
            expected = f"{point.forecast['p05']:g} to {point.forecast['p95']:g}"
            yield f"{self.name}: {point.measure} {point.seen:g}, forecast {expected}: {verdict}"


def doubt(machine: Machine, since: float, until: float) -> str:
    """Return why what was seen between two epoch seconds tells more of the machine, empty where it does not."""
    pressure = machine.pressure(since, until)
    if pressure <= HIGHEST_PRESSURE:
        return ""
    return f"somebody waited for a processor in {pressure:.0%} of {until - since:.0f} s"


@dataclass(frozen=True, slots=True)
class Watch:
    """What became of some groups: a transition or what kept it from being seen, by name; ``lost`` by group.

    A queue of a group that lost nothing is not in ``lost``; the others have the offsets that nobody was given.
    """

    transitions: Mapping[str, Transition | Exception]
    lost: Mapping[str, Mapping[Queue, Sequence[int]]]


def together(watches: Iterable[Watch]) -> Watch:
    """Return all of them as one."""
    parts = list(watches)
    return Watch(
        {name: seen for part in parts for name, seen in part.transitions.items()},
        {group: lost for part in parts for group, lost in part.lost.items()},
    )


def judged(watch: Watch, system: str, measure: str) -> list[Point]:
    """Return the figures of that name of one system that tell something of its groups."""
    seen = [one for one in watch.transitions.values() if isinstance(one, Transition)]
    points = [point for one in seen if one.system == system and not one.doubt for point in one.points]
    return [point for point in points if point.measure == measure]


def undelivered(produced: Mapping[Queue, int], delivered: Iterable[tuple[Queue, int]]) -> dict[Queue, list[int]]:
    """Return by queue the offsets below ``produced`` that were not delivered; queues without any are left out."""
    given: dict[Queue, set[int]] = {}
    for queue, offset in delivered:
        given.setdefault(queue, set()).add(offset)
    missing = {queue: sorted(set(range(count)) - given.get(queue, set())) for queue, count in produced.items()}
    return {queue: offsets for queue, offsets in missing.items() if offsets}
