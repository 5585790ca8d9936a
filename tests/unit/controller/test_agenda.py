"""Which plan has its turn next: woken ones at once, none twice at a time, none forgotten."""

from concurrent.futures import ThreadPoolExecutor

from planner.controller.agenda import Agenda, Key

ONE, TWO = ("shop", "one"), ("shop", "two")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_plan_that_was_woken_has_its_turn_and_then_rests() -> None:
    agenda = Agenda(Clock())
    agenda.trigger(ONE)
    assert agenda.take(0.0) == ONE
    agenda.put_back(ONE, None)
    assert agenda.take(0.0) is None


def test_whoever_is_due_first_comes_first() -> None:
    clock = Clock()
    agenda = Agenda(clock)
    for key, after in ((ONE, 9.0), (TWO, 5.0)):
        agenda.trigger(key)
        assert agenda.take(0.0) == key
        agenda.put_back(key, after)
    assert agenda.take(0.0) is None, "none is due yet"
    clock.now += 10.0
    assert agenda.take(0.0) == TWO
    assert agenda.take(0.0) == ONE


def test_one_plan_never_has_two_turns_at_once() -> None:
    agenda = Agenda(Clock())
    agenda.trigger(ONE)
    assert agenda.take(0.0) == ONE
    agenda.trigger(ONE)
    assert agenda.take(0.0) is None


def test_who_is_woken_during_a_turn_has_another_whatever_the_turn_says() -> None:
    for after in (None, 60.0):
        agenda = Agenda(Clock())
        agenda.trigger(ONE)
        assert agenda.take(0.0) == ONE
        agenda.trigger(ONE)
        agenda.put_back(ONE, after)
        assert agenda.take(0.0) == ONE
        agenda.put_back(ONE, None)
        assert agenda.take(0.0) is None, "woken once, one more turn"


def test_who_waits_hears_of_a_plan_that_is_woken_meanwhile() -> None:
    agenda = Agenda()
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(agenda.take, 60.0)
        agenda.trigger(TWO)
        assert taken.result(30.0) == TWO


def test_many_at_once_lose_none_and_never_share_one() -> None:
    agenda, keys = Agenda(), [("shop", str(number)) for number in range(40)]
    busy: set[Key] = set()
    turns: list[Key] = []

    def work(_: int) -> None:
        while (key := agenda.take(0.2)) is not None:
            assert key not in busy
            busy.add(key)
            turns.append(key)
            busy.discard(key)
            agenda.put_back(key, 0.0 if turns.count(key) < 3 else None)

    for key in keys:
        agenda.trigger(key)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert {turns.count(key) for key in keys} <= {3, 4, 5, 6}
    assert set(turns) == set(keys)
