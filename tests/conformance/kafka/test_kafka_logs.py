"""From the clients' own callbacks to who owned what."""

import math

from tests.clusters.kafka_load import Event
from tests.conformance.kafka.logs import holds
from tests.conformance.measure import Hold

MOMENT_MS = 100_000


def at(seconds: float, client: str, kind: str, *partitions: int) -> Event:
    return Event(MOMENT_MS + round(seconds * 1000), client, kind, ",".join(f"t/{number}" for number in partitions))


def test_an_eager_member_drops_all_and_gains_all_anew() -> None:
    events = [at(-9, "a", "assigned", 0, 1), at(1, "a", "revoked", 0, 1), at(2, "a", "assigned", 0)]
    assert holds(events, MOMENT_MS, {}) == [
        Hold("a", ("t", 0), -9.0, 1.0),
        Hold("a", ("t", 1), -9.0, 1.0),
        Hold("a", ("t", 0), 2.0, math.inf),
    ]


def test_what_a_cooperative_member_is_not_told_again_it_keeps() -> None:
    events = [at(-9, "a", "assigned", 0, 1), at(2, "a", "revoked", 1), at(2, "a", "assigned")]
    assert holds(events, MOMENT_MS, {}) == [Hold("a", ("t", 1), -9.0, 2.0), Hold("a", ("t", 0), -9.0, math.inf)]


def test_a_killed_member_owns_nothing_from_then_on_though_it_said_no_word() -> None:
    events = [at(-9, "a", "assigned", 0), at(8, "b", "assigned", 0)]
    assert holds(events, MOMENT_MS, {"a": MOMENT_MS}) == [
        Hold("a", ("t", 0), -9.0, 0.0),
        Hold("b", ("t", 0), 8.0, math.inf),
    ]


def test_a_killed_member_that_comes_back_under_its_name_owns_what_it_is_given_then() -> None:
    events = [at(-9, "a", "assigned", 0), at(4, "a", "started"), at(5, "a", "assigned", 0)]
    assert holds(events, MOMENT_MS, {"a": MOMENT_MS}) == [
        Hold("a", ("t", 0), -9.0, 0.0),
        Hold("a", ("t", 0), 5.0, math.inf),
    ]


def test_a_zombie_owns_until_it_is_told_that_it_lost() -> None:
    events = [at(-9, "a", "assigned", 0), at(8, "b", "assigned", 0), at(14, "a", "lost", 0)]
    assert Hold("a", ("t", 0), -9.0, 14.0) in holds(events, MOMENT_MS, {})
