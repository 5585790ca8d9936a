"""A part goes on whatever goes wrong, and health is what is really so."""

import threading
import urllib.error
import urllib.request

import pytest

from planner.controller.background import BackgroundTask
from planner.controller.health import serve_health
from planner.errors import BadInputError, OutOfReachError


@pytest.mark.slow
def test_a_part_goes_on_after_what_is_away_and_after_a_fault_of_ours() -> None:
    stop, failed, done = threading.Event(), list[str](), list[int]()

    def act() -> None:
        done.append(len(done))
        if len(done) == 1:
            raise OutOfReachError("away")
        if len(done) == 2:
            raise ValueError("ours")
        stop.set()

    task = BackgroundTask("plans", act, 0.0, stop, failed.append)
    assert not task.is_done
    task.thread.start()
    task.thread.join(60.0)
    assert (done, failed, task.is_done) == ([0, 1, 2], ["plans", "plans"], True)


def test_both_checks_are_asked_each_time_and_say_why() -> None:
    wrong: list[str | None] = [None]
    server = serve_health("127.0.0.1", 0, lambda: None, lambda: wrong[0])
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        assert urllib.request.urlopen(f"{address}/readyz").read() == b"ok\n"
        wrong[0] = "the plans were not yet listed"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/readyz")
        with refused.value as answer:
            assert (answer.code, answer.read()) == (503, b"the plans were not yet listed\n")
        assert urllib.request.urlopen(f"{address}/healthz").status == 200
        with pytest.raises(urllib.error.HTTPError, match="404") as unknown:
            urllib.request.urlopen(f"{address}/secrets")
        unknown.value.close()
        with pytest.raises(BadInputError, match=f"--health-port {server.server_port} cannot be listened on"):
            serve_health("127.0.0.1", server.server_port, lambda: None, lambda: None)
    finally:
        server.shutdown()
        server.server_close()
