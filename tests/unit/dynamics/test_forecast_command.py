"""``planner forecast`` as a user calls it: the contract's answer, people's text, refusals, exit codes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from planner.cli.forecast import forecast
from planner.documents.forecast import forecast as answer_of
from planner.errors import BadInputError
from planner.forecast.words import CAUSES
from tests.unit.dynamics.small_groups import JOIN, Document, client_id, leave, rocketmq_request

ROOT = Path(__file__).parents[3]
app = typer.Typer()
app.command()(forecast)


def run(document: object, *options: str) -> Result:
    """Run the command with the document on standard input."""
    return CliRunner().invoke(app, ["-", *options], input=json.dumps(document))


def refused(document: Any) -> str:
    with pytest.raises(BadInputError) as caught:
        answer_of(document)
    return str(caught.value)


def changed(**fields: Any) -> Document:
    return {**rocketmq_request(JOIN), **fields}


def test_the_answer_has_the_contracts_names() -> None:
    result = run(rocketmq_request(leave("graceful", 2)), "-o", "json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert {"before", "after", "moved", "queues", "total", "warnings"} <= found.keys()
    assert {"pause_s", "stall_s", "duplicates", "burst_messages", "settle_s"} <= found["total"].keys()
    assert found["after"][client_id(1)] == [["T", broker, n] for broker in ("broker-a", "broker-b") for n in range(4)]
    queue = found["queues"][-1]
    assert (queue["from"], queue["to"]) == (client_id(2), client_id(1))
    assert all(isinstance(value, int) for value in queue["duplicates"].values())
    assert list(queue["pause_s"]) == ["p05", "p50", "p95"]


@pytest.mark.parametrize("file", sorted((ROOT / "examples/changes").glob("*.json")), ids=lambda file: file.stem)
def test_the_examples_have_an_answer(file: Path) -> None:
    result = CliRunner().invoke(app, [str(file)])
    assert result.exit_code == 0, result.stderr
    assert " move; " in result.stdout


def test_the_request_of_the_page_has_an_answer() -> None:
    page = (ROOT / "docs/dynamics.md").read_text()
    request = json.loads(page.split("```json")[1].split("```")[0])
    found = answer_of(request)
    assert found["after"] == {"10.0.0.1@c1": [["T", "broker-a", 0]], "10.0.0.2@c2": []}
    assert found["moved"] == []


def test_a_list_gives_a_list_and_a_bad_one_keeps_no_other() -> None:
    result = run([rocketmq_request(JOIN), {"system": "rocketmq"}, rocketmq_request(JOIN)], "-o", "json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert found[0] == found[2]
    assert found[1].keys() == {"error"}
    assert "request 1: versions: missing" in found[1]["error"]
    assert "1 of 3 requests" in result.stderr


def test_an_empty_list() -> None:
    assert json.loads(run([], "-o", "json").stdout) == []


def test_people_read_a_sentence_a_timeline_and_what_would_help() -> None:
    text = " ".join(run(rocketmq_request(leave("graceful", 2))).stdout.split())
    assert "4 of 8 queues move" in text
    assert "settled after" in text
    assert "takes T/broker-b/0" in text
    assert "with awaitTerminationMillisWhenShutdown=5000: 0 messages instead of" in text


def remedies(document: Document) -> list[str]:
    """Return what the command says would help."""
    words = " ".join(run(document).stdout.split()).split("•")
    return [f"with {told.rstrip()}" for one in words for told in one.split(" with ")[1:] if "=" in told.split()[0]]


def test_a_remedy_that_the_whole_does_not_show_is_told_by_the_causes_own_mean() -> None:
    found = remedies(json.loads((ROOT / "examples/changes/add-one.json").read_text()))
    (one,) = (told for told in found if "heartbeatBrokerInterval=5000" in told)
    assert re.fullmatch(r"with heartbeatBrokerInterval=5000: 0\.\d+ s of it instead of 0\.\d+ s, on the average", one)


def test_what_falls_out_of_the_told_causes_is_told_by_its_bound() -> None:
    found = remedies(json.loads((ROOT / "examples/changes/switch-strategy.json").read_text()))
    assert any(re.search(r": under 0\.\d+ s of it instead of 0\.\d+ s, on the average", told) for told in found)


@pytest.mark.parametrize("file", sorted((ROOT / "examples/changes").glob("*.json")), ids=lambda file: file.stem)
def test_no_remedy_of_the_examples_leaves_all_as_it_is(file: Path) -> None:
    for told in remedies(json.loads(file.read_text())):
        new, old = told.split(": ")[1].removesuffix(", on the average").split(" instead of ")
        assert new != old


def test_a_remedy_that_gains_nothing_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    request = rocketmq_request(leave("graceful", 2))
    worse = answer_of({**request, "service_time_s": 0.2})
    assert any("awaitTermination" in told for told in remedies(request))
    for other in (answer_of(request), worse):
        answers = [answer_of(request), other]
        monkeypatch.setattr("planner.documents.forecast.forecast", lambda _, told=answers: told.pop(0))
        assert not [told for told in remedies(request) if "awaitTermination" in told]


@pytest.mark.parametrize("digits", [400, 4000])
def test_a_number_of_hundreds_of_digits_is_refused_and_keeps_no_other_from_its_answer(digits: int) -> None:
    huge = 10**digits
    for fields in ({"service_time_s": huge}, {"service_time_s": -huge}, {"trials": huge}, {"seed": huge}):
        assert f"{next(iter(fields))}: found" in refused(changed(**fields))
    queues = [{"topic": "T", "broker": "b", "queue_id": 0, "rate": huge, "lag": 0}]
    assert "queues[0].rate: found 1000" in refused(changed(queues=queues))
    result = run([rocketmq_request(JOIN), changed(service_time_s=huge)], "-o", "json")
    assert result.exit_code == 2
    assert [list(found) == ["error"] for found in json.loads(result.stdout)] == [False, True]


def test_people_read_errors_of_a_list_beside_the_answers() -> None:
    result = run([rocketmq_request(JOIN), 7])
    assert result.exit_code == 2
    assert "found 7" in result.stdout
    assert "queues move" in result.stdout


def test_every_cause_and_event_has_words() -> None:
    for change in (JOIN, leave("graceful", 2), leave("silent", 1), {"kind": "broker_down", "broker": "broker-a"}):
        for orderly in (False, True):
            found = answer_of(rocketmq_request(change, "4.9.4", orderly=orderly))
            assert {cause["cause"] for cause in found["causes"]} <= CAUSES.keys()
            for effect in ("pause_s", "duplicates"):
                assert sum(cause["share"] for cause in found["causes"] if cause["effect"] == effect) <= 1.001


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"system": "pulsar"}, "system: found"),
        ({"strategy": "NO_SUCH"}, "NO_SUCH"),
        ({"versions": {"client": "new", "broker": "5.5.0"}}, "versions.client: found"),
        ({"versions": {"client": "5.5.0"}}, "versions.broker: missing"),
        ({"queues": []}, "found no data queue"),
        ({"queues": [{"topic": "%RETRY%g", "broker": "b", "queue_id": 0, "rate": 1}]}, "found no data queue"),
        ({"queues": [{"topic": "T", "broker": "b", "queue_id": 0}]}, "queues[0].rate: missing"),
        ({"service_time_s": -1}, "service_time_s: found -1"),
        ({"service_time_s": float("nan")}, "service_time_s: found NaN"),
        ({"trials": 0}, "trials: found 0"),
        ({"trials": 10**9}, "trials: found"),
        ({"seed": -1}, "seed: found -1"),
        ({"settings": {"awaitTermination": 1}}, "awaitTermination"),
        ({"settings": {"consumeThreadMin": 2000}}, "consumeThreadMin: found 2000"),
        ({"settings": {"heartbeatBrokerInterval": 200_000}}, "between two heartbeats"),
        ({"settings": {"rocketmq.client.rebalance.lockInterval": 40_000}}, "between two renewals"),
        ({"settings": {"messageModel": "BOTH"}}, "messageModel: found"),
        ({"settings": {"popInvisibleTime": 1}}, "popInvisibleTime: found 1"),
        ({"settings": {"consumeThreadMin": 30}}, "the client refuses to start"),
        ({"clients": [{"id": None}]}, "clients[0].id: found null"),
        ({"clients": [{"id": "a"}, {"id": "a"}]}, "twice"),
        ({"clients": [{"id": "a"}, {"id": "b", "orderly": True}]}, "orderly"),
        ({"clients": [{"id": "a", "threads": 0}]}, "clients[0].threads: found 0"),
        ({"change": {"kind": "explode"}}, "change.kind: found"),
        ({"change": {"kind": ["join"]}}, "change.kind: found"),
        ({"change": {"kind": "join", "clients": []}}, "found none"),
        ({"change": {"kind": "join", "clients": [{"id": client_id(1)}]}}, "in the group already"),
        ({"change": {"kind": "leave", "clients": ["nobody"], "how": "crash"}}, "nobody"),
        ({"change": {"kind": "leave", "clients": [client_id(1)], "how": "politely"}}, "change.how: found"),
        ({"change": {"kind": "leave", "clients": [client_id(1)]}}, "change.how: missing"),
        ({"change": {"kind": "restart", "clients": [client_id(1)], "how": "crash"}}, "change.interval_s: missing"),
        ({"change": {"kind": "broker_down", "broker": "nowhere"}}, "nowhere"),
        ({"change": {"kind": "queues", "topic": "U", "broker": "broker-a", "read_queues": 1}}, "change.topic"),
        (
            {"change": {"kind": "queues", "topic": "T", "broker": "broker-a", "read_queues": -1}},
            "read_queues: found -1",
        ),
        ({"change": {"kind": "strategy", "to": "X", "clients": [client_id(1)], "interval_s": 1}}, "X"),
        ({"change": {"kind": "join", "clients": [{"id": None}], "how": "crash"}}, "how"),
    ],
)
def test_refusals_name_the_field(fields: Document, words: str) -> None:
    assert words in refused(changed(**fields))


@pytest.mark.parametrize("rate", [-1, float("nan"), float("inf"), None, True, "25"])
def test_rates_that_are_none(rate: object) -> None:
    queues = [{"topic": "T", "broker": "b", "queue_id": 0, "rate": rate, "lag": 0}]
    assert "queues[0].rate: found" in refused(changed(queues=queues))


def test_settings_belong_to_the_versions_that_have_them() -> None:
    gap = {"rocketmq.client.rebalance.minInterval": 500}
    assert "since 5.2.0" in refused(rocketmq_request(JOIN, "5.1.4", settings=gap))
    answer_of(rocketmq_request(JOIN, "5.2.0", settings=gap))
    batched = {"versions": {"client": "5.5.0", "broker": "4.9.7"}, "settings": {"realTimeNotifyConsumerChange": False}}
    assert "broker 4.9.7" in refused(changed(**batched))


def test_a_strategy_that_reads_names_needs_them() -> None:
    rooms = {"machine_rooms": {"brokers": {"broker-a": "r", "broker-b": "r"}, "clients": {client_id(1): "r"}}}
    request = changed(strategy="MACHINE_ROOM_NEARBY", options=rooms, clients=[{"id": client_id(1)}])
    assert "reads names" in refused({**request, "change": {"kind": "join", "clients": [{"id": None}]}})


def test_a_queue_with_two_owners_already_is_refused() -> None:
    queue = {"topic": "T", "broker": "broker-a", "queue_id": 0}
    options = {"config": {client_id(1): [queue], client_id(2): [queue]}}
    assert "several clients before the change" in refused(changed(strategy="CONFIG", options=options))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"versions": {"client": "6.1.0", "broker": "5.5.0"}}, "client 6.1.0 has no model"),
        ({"versions": {"client": "4.8.0", "broker": "5.5.0"}}, "client 4.8.0 has no model"),
        ({"change": leave("graceful", 1, 2)}, "leaves nobody"),
        ({"settings": {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}}, "without influence"),
        ({"clients": [], "change": JOIN}, "nobody consumes before"),
        ({"queues": [{"topic": "T", "broker": "b", "queue_id": 0, "rate": 1}]}, "lag of 1 of 1 queues is not known"),
        ({"queues": [{"topic": "T", "broker": "b", "queue_id": 0, "rate": 1, "lag": 0}]}, "will be idle"),
        ({"change": {"kind": "join", "clients": [{"id": None}]}}, "1 id is not known"),
    ],
)
def test_oddities_are_warnings_not_errors(fields: Document, words: str) -> None:
    found = answer_of(changed(**fields))
    assert any(words in warning for warning in found["warnings"])
    json.dumps(found, allow_nan=False)


def test_a_change_that_leaves_nobody_has_no_pause_to_tell() -> None:
    found = answer_of(rocketmq_request(leave("crash", 1, 2)))
    assert found["after"] == {}
    assert (found["total"]["pause_s"], found["total"]["settle_s"]) == (None, None)
    assert {queue["to"] for queue in found["queues"]} == {None}
    assert all(queue["pause_s"] is None for queue in found["queues"])


def test_what_does_not_fit_into_memory_says_how_many_trials_do() -> None:
    huge = rocketmq_request(JOIN, queues=2_000, clients=8, trials=10_000)
    huge["clients"] = [{"id": f"c{number}"} for number in range(2_000)]
    assert "expected 49 trials at most" in refused(huge)


def test_retry_queues_are_left_out() -> None:
    request = rocketmq_request(JOIN)
    retry = {"topic": "%RETRY%g", "broker": "broker-a", "queue_id": 0, "rate": 0, "lag": 0}
    assert answer_of({**request, "queues": [*request["queues"], retry]}) == answer_of(request)


def test_a_broadcasting_group_moves_nothing() -> None:
    found = answer_of(rocketmq_request(JOIN, settings={"messageModel": "BROADCASTING"}))
    assert (found["moved"], found["queues"]) == ([], [])
    assert all(len(queues) == 8 for queues in found["after"].values())
    assert len(found["after"]) == 3


def test_the_text_says_who_owns_what_after_each_step_and_what_is_lost() -> None:
    result = CliRunner().invoke(app, [str(ROOT / "examples/changes/subscription.json")])
    first = "orders: 10.0.0.1@c1 2, 10.0.0.2@c2 2; refunds: 10.0.0.1@c1 2, nobody 2."
    assert f"After step 1, 10.0.0.1@c1 at 0 s, queues by owner: {first}" in result.stdout
    assert "orders: filtered away for good may be messages with tag sent, at most " in result.stdout
    assert "After step 1 brokers refuse pulls of refunds for " in result.stdout
