"""The server's time: asked for once, counted on, and never made up."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from planner.deployments.clock import ServerClock
from planner.errors import OutOfReachError

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_it_is_asked_for_again_after_half_a_minute_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [100.0], []
    monkeypatch.setattr("planner.deployments.clock.passed_s", lambda: now[0])

    def server() -> datetime:
        asked.append(now[0])
        return NOON + timedelta(seconds=now[0])

    clock = ServerClock(server)
    assert clock() == NOON + timedelta(seconds=100)
    now[0] = 129.0
    assert clock() == NOON + timedelta(seconds=129)
    assert asked == [100.0]
    now[0] = 131.0
    clock()
    assert asked == [100.0, 131.0]


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="the host's system has no clock that counts on")
def test_a_machine_that_was_suspended_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red with ``time.monotonic``, which stands still meanwhile: a lease that is over would be taken for held."""
    since_boot, asked = [100.0], []
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    monkeypatch.setattr("time.clock_gettime", lambda _: since_boot[0])

    def server() -> datetime:
        asked.append(since_boot[0])
        return NOON

    clock = ServerClock(server)
    clock()
    since_boot[0] += 3_600
    clock()
    assert asked == [100.0, 3_700.0]


def test_a_server_that_does_not_tell_it_is_no_reason_to_use_another_time() -> None:
    def away() -> datetime:
        raise OutOfReachError("away")

    with pytest.raises(OutOfReachError):
        ServerClock(away)()
