"""Applications that poll: what is stored when, who registers when, and what has no forecast.

Rules of ``DefaultLitePullConsumerImpl``, ``RebalanceLitePullImpl`` and ``DefaultMQPullConsumerImpl`` (4.9.8 to 5.5.0).
"""

from typing import Any

import pytest

from planner.cli.forecast import sentence
from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import JOIN, Document, client_id, leave, rocketmq_request

LITE, PULL = {"consumer": "lite_pull"}, {"consumer": "pull"}
NOTHING = {"p05": 0, "p50": 0, "p95": 0}
RATE, MOVED = 10.0, 2
"""Messages a second and queue; queues that the second of two clients leaves behind."""


def polled(change: Document, options: Document = LITE, **more: Any) -> Document:
    """The answer for two clients with two queues each, one thread, 2 ms a message."""
    usual = {"options": options, "clients": 2, "queues": 4, "threads": 1, "rate": RATE, "service_time_s": 0.002}
    return forecast(rocketmq_request(change, **{**usual, **more}))


def twice(change: Document, options: Document = LITE, **more: Any) -> dict[str, int]:
    found: dict[str, int] = polled(change, options, **more)["total"]["duplicates"]
    return found


@pytest.mark.parametrize("client", ["4.9.8", "5.1.4", "5.5.0"])
def test_who_shuts_down_in_order_repeats_what_it_polled_since_its_last_commit(client: str) -> None:
    """``shutdown`` stores offsets and commits nothing: up to 5 s of both queues, all ages alike."""
    found = twice(leave("graceful", 2), client=client)
    assert found["p05"] <= 0.15 * MOVED * RATE * 5
    assert found["p50"] == pytest.approx(0.5 * MOVED * RATE * 5, abs=15)
    assert 0.85 * MOVED * RATE * 5 <= found["p95"] <= MOVED * RATE * 5 + 5


def test_a_commit_before_the_shutdown_avoids_that() -> None:
    assert twice(leave("graceful", 2), {**LITE, "commit_on_shutdown": True}) == NOTHING
    assert twice(leave("crash", 2), {**LITE, "commit_on_shutdown": True})["p50"] > 0


def test_who_dies_repeats_what_was_not_stored_either() -> None:
    """Commits go to memory, which is stored every 5 s: up to 10 s, rarely that many."""
    found = twice(leave("crash", 2))
    assert found["p50"] == pytest.approx(MOVED * RATE * 5, abs=20)
    assert MOVED * RATE * 7.5 <= found["p95"] <= MOVED * RATE * 10 + 5


@pytest.mark.parametrize(
    ("how", "setting", "longest_s"),
    [
        ("graceful", "autoCommitIntervalMillis", 1),
        ("crash", "autoCommitIntervalMillis", 6),
        ("crash", "persistConsumerOffsetInterval", 6),
    ],
)
def test_shorter_intervals_repeat_less(how: str, setting: str, longest_s: float) -> None:
    found = twice(leave(how, 2), settings={setting: 1000})
    assert found["p95"] <= MOVED * RATE * longest_s + 5
    assert found["p95"] < twice(leave(how, 2))["p95"] * 0.8


def test_a_drop_stores_what_memory_has_so_that_storing_more_often_changes_nothing_of_a_move() -> None:
    assert twice(leave("graceful", 2), settings={"persistConsumerOffsetInterval": 500}) == twice(leave("graceful", 2))


def test_who_gives_queues_to_a_newcomer_repeats_as_much() -> None:
    """``removeUnnecessaryMessageQueue`` stores the last commit of a queue that is dropped."""
    moved = polled(JOIN)["total"]["moved_queues"]["p50"]
    found = twice(JOIN)
    assert 0.15 * moved * RATE * 5 < found["p50"] < moved * RATE * 5
    assert polled(JOIN, {}, threads=20)["total"]["duplicates"]["p50"] < found["p50"] / 4


def test_who_has_a_queue_for_a_moment_repeats_no_more_than_that() -> None:
    """Memory has what the owner read as it took the queue; a drop stores that if nothing was committed since."""
    change = {"kind": "restart", "clients": [client_id(2)], "how": "graceful", "interval_s": 3}
    found = twice(change, {**LITE, "commit_on_shutdown": True}, settings={"autoCommitIntervalMillis": 600_000})
    assert 0 < found["p50"] <= found["p95"] <= MOVED * RATE * (3 + 4)


def test_a_commit_comes_with_a_poll_and_polls_lie_a_batch_apart() -> None:
    slow: Document = {"lag": 5000, "service_time_s": 0.5}
    one, many = (
        twice(leave("crash", 2), settings={"autoCommitIntervalMillis": 1000, "pullBatchSize": size}, **slow)
        for size in (1, 100)
    )
    assert one["p95"] <= 15
    assert many["p50"] >= 30


def test_the_rest_of_a_batch_is_delivered_by_who_has_lost_the_queue() -> None:
    """And again by the next owner. No setting of a client that polls waits for it."""
    backlog: Document = {"lag": 5000, "service_time_s": 0.05, "settings": {"autoCommit": False, "pullBatchSize": 100}}
    causes = polled(JOIN, {**LITE, "commit_after_poll": True}, **backlog)["causes"]
    in_flight = next(one for one in causes if one["cause"] == "in_flight")
    assert in_flight["mean"] > 5
    assert "lever" not in in_flight
    ends = polled(leave("graceful", 2), {**LITE, "commit_after_poll": True}, **backlog)["causes"]
    assert all("awaitTerminationMillisWhenShutdown" not in one.get("lever", {}) for one in ends)


def test_a_client_caches_no_more_than_it_may_of_all_its_queues() -> None:
    backlog: Document = {"lag": 5000, "queues": 24, "service_time_s": 0.001, "rate": 1.0}
    usual, less = (
        polled(leave("crash", 2), **backlog, settings=settings)["total"]["pause_s"]["p50"]
        for settings in ({}, {"pullThresholdForAll": 5000})
    )
    assert usual == pytest.approx(10, abs=2.5)
    assert less == pytest.approx(5, abs=1.5)


def test_a_commit_after_each_poll_leaves_the_interval_of_storing() -> None:
    by_poll, by_itself = {**LITE, "commit_after_poll": True}, {"autoCommit": False}
    assert twice(leave("graceful", 2), by_poll, settings=by_itself)["p95"] <= MOVED
    assert twice(leave("crash", 2), by_poll, settings=by_itself)["p95"] <= MOVED * RATE * 5 + 5


def test_nobody_waits_500_ms_before_the_first_pull() -> None:
    """``RebalanceLitePullImpl#dispatchPullRequest`` does nothing; ``updatePullTask`` pulls at once."""
    pushed, lite = (polled(leave("crash", 2), options)["total"]["pause_s"] for options in ({}, LITE))
    assert pushed["p05"] - lite["p05"] == pytest.approx(0.5, abs=0.05)
    assert not [cause for cause in polled(leave("crash", 2))["causes"] if cause["cause"] == "first_pull"]


def test_no_pull_quotes_a_version_that_a_broker_does_not_know() -> None:
    """``RebalanceLitePullImpl#messageQueueChanged`` changes no version: neither race nor stall of 4.9."""
    causes = {cause["cause"] for cause in polled(leave("crash", 2), client="4.9.8")["causes"]}
    assert "version_race" not in causes
    assert "version_race" in {cause["cause"] for cause in polled(leave("crash", 2), {}, client="4.9.8")["causes"]}


def registered(answer: Document) -> float:
    """When a broker lists the newcomer first, at the earliest."""
    return min(float(event["at_s"]["p05"]) for event in answer["timeline"] if event["event"] == "registers")


@pytest.mark.parametrize("client", ["4.9.8", "5.5.0"])
def test_a_newcomer_registers_a_second_late(client: str) -> None:
    """``start()`` sends no heartbeat; the timer's first one comes after a second (``MQClientInstance``)."""
    pushed, lite, pull = (registered(polled(JOIN, options, client=client)) for options in ({}, LITE, PULL))
    assert lite == pull
    assert lite - pushed == pytest.approx(1.0, abs=0.15)


def test_a_newcomer_looks_when_the_first_broker_tells_it_of_itself() -> None:
    """Before that it would find itself in no list, and a client of 5.2+ looks again no sooner than a second later."""
    events = polled(JOIN, brokers=("broker-a",))["timeline"]
    registers, takes = ([one["at_s"] for one in events if one["event"] == name] for name in ("registers", "takes"))
    assert takes[0]["p95"] < registers[0]["p95"] + 0.1


def test_a_newcomer_that_nobody_tells_looks_by_its_tick() -> None:
    quiet = polled(JOIN, settings={"notifyConsumerIdsChangedEnable": False})
    takes = [event["at_s"]["p05"] for event in quiet["timeline"] if event["event"] == "takes"]
    assert min(takes) > 15
    told = [event["at_s"]["p05"] for event in polled(JOIN)["timeline"] if event["event"] == "takes"]
    assert min(told) < 3


def test_a_shutdown_waits_for_the_poll_that_runs() -> None:
    """``poll`` and ``shutdown`` are ``synchronized``: without messages it waits for the poll's time limit."""
    stops = [one for one in polled(leave("graceful", 2), rate=0.0)["timeline"] if one["event"] == "stops"]
    assert stops[0]["at_s"]["p95"] == pytest.approx(4.75, abs=0.3)
    short = polled(leave("graceful", 2), rate=0.0, settings={"pollTimeoutMillis": 1000})["timeline"]
    assert next(one for one in short if one["event"] == "stops")["at_s"]["p95"] < 1.1
    assert next(one for one in polled(leave("graceful", 2))["timeline"] if one["event"] == "stops")["at_s"]["p95"] < 0.5


def test_what_comes_again_delays_what_stays() -> None:
    """One line for all that a client has pulled (``consumeRequestCache``), one thread that works it off."""
    slow = polled(leave("crash", 2), rate=4.0, service_time_s=0.05)["total"]["stall_s"]
    assert slow["p50"] > 0.5
    assert polled(leave("crash", 2), rate=4.0, service_time_s=0.0001)["total"]["stall_s"] == NOTHING


def test_a_batch_is_ten_messages_unless_told() -> None:
    """Ahead of a queue are the first batches of those that were gained with it, 10 messages each, not 32."""
    many: Document = {"lag": 0, "rate": 8.0, "service_time_s": 0.03, "clients": 2, "queues": 8}
    usual, large = (
        polled(leave("crash", 2), **many, settings=settings)["total"]["pause_s"]["p50"]
        for settings in ({}, {"pullBatchSize": 32})
    )
    assert large > usual + 0.1


def test_commits_are_named_with_what_lowers_them() -> None:
    causes = {how: polled(leave(how, 2))["causes"] for how in ("graceful", "crash")}
    levers = {
        how: next(one["lever"] for one in found if one["cause"] == "uncommitted") for how, found in causes.items()
    }
    assert levers["graceful"] == {"autoCommitIntervalMillis": 1000}
    assert levers["crash"] == {"autoCommitIntervalMillis": 1000, "persistConsumerOffsetInterval": 1000}
    quick = polled(leave("crash", 2), settings={"persistConsumerOffsetInterval": 200})["causes"]
    assert next(one["lever"] for one in quick if one["cause"] == "uncommitted") == levers["graceful"]
    lowered = twice(leave("crash", 2), settings=levers["crash"])
    assert lowered["p95"] <= MOVED * RATE * 2 + 5


@pytest.mark.parametrize("change", [JOIN, leave("graceful", 2), leave("crash", 2)])
def test_what_a_pull_consumer_s_application_decides_is_not_told(change: Document) -> None:
    answer = polled(change, PULL)
    usual = polled(change)
    assert (answer["before"], answer["after"], answer["moved"]) == (usual["before"], usual["after"], usual["moved"])
    untold = ("pause_s", "stall_s", "duplicates", "burst_messages", "settle_s", "drained_s")
    assert [answer["total"][name] for name in untold] == [None] * len(untold)
    assert all(queue["pause_s"] is None and queue["duplicates"] is None for queue in answer["queues"])
    assert answer["causes"] == []
    assert "delivers" not in {event["event"] for event in answer["timeline"]}
    assert any("the longest pause is at least" in word for word in answer["warnings"])
    assert sentence(answer) == f"{answer['total']['moved_queues']['p50']} of 4 queues move."


def test_who_commits_by_itself_has_no_figure_unless_it_says_when() -> None:
    answer = polled(leave("crash", 2), settings={"autoCommit": False})
    assert answer["total"]["duplicates"] is None
    assert answer["total"]["burst_messages"] is None
    assert answer["total"]["pause_s"]["p50"] > 0
    assert any("does not say when the application commits" in word for word in answer["warnings"])


def test_what_is_no_part_of_the_forecast_is_told() -> None:
    threads = polled(leave("crash", 2), threads=2)["warnings"]
    assert any("several threads poll one consumer" in word for word in threads)
    queues = polled(leave("crash", 2), queues=100)["warnings"]
    assert any("pulls 100 queues by 20 threads (pullThreadNums)" in word for word in queues)
    assert polled(leave("crash", 2))["warnings"] == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"options": {"consumer": "poll"}}, "expected one of push, lite_pull, pull"),
        ({"orderly": True}, "orderly lite_pull consumers"),
        ({"options": {**LITE, "pop_share_queues": -1}}, "only push consumers pop"),
        ({"options": {**PULL, "commit_after_poll": True}}, "found with pull consumers"),
        ({"options": {**LITE, "commit_after_poll": 1}}, "expected true or false"),
        ({"options": {"commit_after_poll": True}}, "commit_after_poll"),
        ({"settings": {"clientRebalance": False}}, "clientRebalance: found with lite_pull consumers"),
        ({"settings": {"awaitTerminationMillisWhenShutdown": 5000}}, "which do not have it"),
        ({"options": PULL, "settings": {"pullBatchSize": 5}}, "pullBatchSize: found with pull consumers"),
        ({"options": {}, "settings": {"autoCommit": False}}, "autoCommit: found with push consumers"),
        ({"settings": {"autoCommitIntervalMillis": 500}}, "from 1000"),
        ({"versions": {"client": "5.5.0", "broker": "4.9.7"}}, "own queues and get nothing"),
        (
            {
                "versions": {"client": "4.9.8", "broker": "4.9.7"},
                "change": {"kind": "upgrade", "to": "5.1.4", "clients": [client_id(1)], "interval_s": 8},
            },
            "lite pull clients of 5.1.4, expected 5.0",
        ),
    ],
)
def test_what_cannot_be_is_refused(more: Document, why: str) -> None:
    change = more.pop("change", JOIN)
    with pytest.raises(BadInputError, match=why.replace("(", r"\(")):
        polled(change, **more)


def test_the_first_member_polls_by_one_thread_unless_told() -> None:
    backlog: Document = {"clients": 0, "lag": 1000, "rate": 0.0, "service_time_s": 0.1}
    one = polled(JOIN, **backlog)["total"]["drained_s"]["p50"]
    two = polled({"kind": "join", "clients": [{"id": client_id(9), "threads": 2}]}, **backlog)["total"]["drained_s"][
        "p50"
    ]
    assert one == pytest.approx(400, abs=5)
    assert two == pytest.approx(200, abs=5)


def test_old_clients_pull_from_old_brokers_and_pull_consumers_from_all() -> None:
    old = {"client": "4.9.8", "broker": "4.9.7"}
    assert twice(leave("crash", 2), versions=old)["p50"] > 0
    assert polled(leave("crash", 2), PULL, versions={"client": "5.5.0", "broker": "4.9.7"})["moved"]


def test_push_may_be_named_and_changes_nothing() -> None:
    request = rocketmq_request(JOIN)
    assert forecast({**request, "options": {"consumer": "push"}}) == forecast(request)


def test_equal_seeds_give_equal_answers() -> None:
    assert polled(leave("crash", 2), seed=7) == polled(leave("crash", 2), seed=7)
    assert polled(leave("crash", 2), seed=7) != polled(leave("crash", 2), seed=8)
