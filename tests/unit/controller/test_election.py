"""Of several replicas one leads; who cannot renew stops before another may begin."""

from planner.controller.election import Election
from planner.execution.lease import DURATION_S, MARGIN
from tests.unit.execution.fake import FakeCluster, FakeLeases

LEADS_S = DURATION_S - MARGIN.total_seconds()


def elections(cluster: FakeCluster, *names: str) -> list[Election]:
    return [Election(FakeLeases(cluster), "leader", name, lambda: cluster.now, lambda: cluster.now_s) for name in names]


def test_the_first_leads_and_the_second_stands_by() -> None:
    first, second = elections(FakeCluster(), "first", "second")
    assert not first.leads()
    first.attempt()
    second.attempt()
    assert (first.leads(), second.leads()) == (True, False)


def test_who_renews_goes_on_leading() -> None:
    cluster = FakeCluster()
    first, second = elections(cluster, "first", "second")
    for _ in range(60):
        first.attempt()
        second.attempt()
        assert (first.leads(), second.leads()) == (True, False)
        cluster.advance(2.0)


def test_who_does_not_renew_stops_by_himself_before_another_may_begin() -> None:
    cluster = FakeCluster()
    first, second = elections(cluster, "first", "second")
    first.attempt()
    for _ in range(2 * DURATION_S):
        second.attempt()
        assert not (first.leads() and second.leads())
        if first.leads():
            assert cluster.now_s < 1000.0 + LEADS_S
        cluster.advance(1.0)
    assert (first.leads(), second.leads()) == (False, True)
    first.attempt()
    assert not first.leads()


def test_what_is_given_back_is_taken_at_once() -> None:
    first, second = elections(FakeCluster(), "first", "second")
    first.attempt()
    first.give_back()
    second.attempt()
    assert (first.leads(), second.leads()) == (False, True)
    first.give_back()
    second.attempt()
    assert second.leads(), "nobody gives back what is another's"


def test_of_two_who_are_as_quick_one_leads() -> None:
    cluster = FakeCluster()
    (second,) = elections(cluster, "second")

    def overtake(what: str) -> None:
        if what == "write lease":
            second.attempt()

    first = Election(FakeLeases(cluster, overtake), "leader", "first", lambda: cluster.now, lambda: cluster.now_s)
    first.attempt()
    assert (first.leads(), second.leads()) == (False, True)


def test_it_knows_for_how_long_the_server_was_silent() -> None:
    cluster = FakeCluster()
    (first,) = elections(cluster, "first")
    assert first.silent_s == float("inf")
    first.attempt()
    cluster.advance(7.0)
    assert first.silent_s == 7.0
