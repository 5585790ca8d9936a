"""Events of a plan: what occurs again is counted at one event, and many alike share one."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from planner.deployments.events import ClusterEvents
from planner.execution.ports import Requests, StoredPlan
from planner.execution.progress import RolloutStatus
from planner.rollout.steps import AwaitReady
from tests.pod_groups import plan_for

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


@dataclass
class Server:
    """An API server that keeps events, until somebody lets them expire."""

    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0

    def create_event(self, _: str, body: dict[str, Any]) -> dict[str, Any]:
        self.made += 1
        name = f"{body['metadata']['generateName']}{self.made}"
        self.events[name] = {**body, "metadata": {"name": name}}
        return self.events[name]

    def patch_event(self, _: str, name: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if name not in self.events:
            return None
        self.events[name].update(body)
        return self.events[name]


@dataclass
class Desk:
    """Events about one plan, and a clock."""

    server: Server = field(default_factory=Server)
    at: datetime = START

    def __post_init__(self) -> None:
        self.events = ClusterEvents(self.server, "shop", lambda: self.at)  # type: ignore[arg-type]
        plan = plan_for("app", ["a", "b"], (AwaitReady(2, 60),))
        self.stored = StoredPlan("plan", "uid", plan, "sha256:1", "1", RolloutStatus(), Requests())

    def tell(self, sentence: str, reason: str = "Held", seconds: float = 1.0) -> None:
        self.at += timedelta(seconds=seconds)
        self.events.record(self.stored, reason, sentence)

    def shown(self) -> list[tuple[str, str, int]]:
        return [(one["reason"], one["message"], one["count"]) for one in self.server.events.values()]


def test_what_occurs_again_is_counted_at_its_event() -> None:
    desk = Desk()
    for sentence in ("no right", "no right", "no lease", "no right"):
        desk.tell(sentence)
    desk.tell("no right", "Forbidden")
    assert desk.shown() == [("Held", "no right", 3), ("Held", "no lease", 1), ("Forbidden", "no right", 1)]
    first = next(iter(desk.server.events.values()))
    assert (first["firstTimestamp"], first["lastTimestamp"]) == ("2026-11-21T10:00:01Z", "2026-11-21T10:00:04Z")


def test_an_event_that_the_server_keeps_no_longer_begins_anew() -> None:
    desk = Desk()
    desk.tell("no right")
    desk.server.events.clear()
    desk.tell("no right")
    desk.tell("no right")
    assert desk.shown() == [("Held", "no right", 2)]


def test_ever_new_sentences_for_one_reason_share_an_event_until_it_is_quiet() -> None:
    desk = Desk()
    for number in range(15):
        desk.tell(f"{number} of 15 pods")
    shown = desk.shown()
    assert len(shown) == 11
    assert shown[-1] == ("Held", "combined from similar events: 14 of 15 pods", 5)
    desk.tell("another reason", "Resumed")
    assert desk.shown()[-1] == ("Resumed", "another reason", 1)
    desk.tell("later", seconds=601.0)
    assert desk.shown()[-1] == ("Held", "later", 1)


def test_what_is_remembered_is_bounded() -> None:
    desk = Desk()
    for number in range(300):
        desk.tell("same", f"Reason{number}")
    desk.tell("same", "Reason0")
    assert desk.server.made == 301, "the first was forgotten, so its event begins anew"
    desk.tell("same", "Reason299")
    assert desk.server.made == 301
