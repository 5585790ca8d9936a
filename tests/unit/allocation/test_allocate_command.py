"""``planner allocate`` as a user calls it: files, lists, errors, exit codes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from planner.allocation.registry import KINDS
from planner.cli.allocate import allocate
from planner.documents.allocation import answer_all
from planner.errors import BadInputError
from tests.oracles import topologies

app = typer.Typer()
app.command()(allocate)

QUEUES = [{"topic": "T", "broker": "broker-a", "queue_id": number} for number in range(4)]
REQUEST = {
    "system": "rocketmq",
    "strategy": "AVG",
    "group": "g",
    "queues": QUEUES,
    "clients": ["c1", "c0"],
    "options": {},
}
ANSWER = {
    "assignments": {
        "c0": [["T", "broker-a", 0], ["T", "broker-a", 1]],
        "c1": [["T", "broker-a", 2], ["T", "broker-a", 3]],
    }
}


def run(document: object, *options: str) -> Result:
    """Run the command with the document on standard input."""
    return CliRunner().invoke(app, ["-", *options], input=json.dumps(document))


def answer_of(document: object, *options: str) -> Any:
    result = run(document, "-o", "json", *options)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_one_request() -> None:
    assert answer_of(REQUEST) == ANSWER


def test_a_list_gives_a_list() -> None:
    assert answer_of([REQUEST, REQUEST]) == [ANSWER, ANSWER]
    assert answer_of([]) == []


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST))
    result = CliRunner().invoke(app, [str(file), "-o", "json"])
    assert json.loads(result.stdout) == ANSWER


def test_keys_are_in_javas_order() -> None:
    """U+1F600 is two code units from D83D on, so Java puts it before U+FF21; Python does not."""
    clients = ["\uff21", "\U0001f600", "a"]
    assert list(answer_of({**REQUEST, "clients": clients})["assignments"]) == ["a", "\U0001f600", "\uff21"]


def test_topics_are_allocated_one_by_one_in_javas_order() -> None:
    queues = [{"topic": topic, "broker": "b", "queue_id": 0} for topic in ("\uff21", "\U0001f600", "T")]
    owned = answer_of({**REQUEST, "queues": queues})["assignments"]
    assert owned == {"c0": [["T", "b", 0], ["\U0001f600", "b", 0], ["\uff21", "b", 0]], "c1": []}


def test_without_clients() -> None:
    assert answer_of({**REQUEST, "clients": []})["assignments"] == {}


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("AVG", {}),
        ("CONFIG", {"config": {"c0": QUEUES}}),
        ("CONSISTENT_HASH", {}),
        ("MACHINE_ROOM", {"consumer_rooms": []}),
    ],
)
def test_without_queues(strategy: str, options: dict[str, Any]) -> None:
    request = {**REQUEST, "strategy": strategy, "options": options, "queues": []}
    assert answer_of(request)["assignments"] == {"c0": [], "c1": []}


def test_config_is_answered_once_with_foreign_queues() -> None:
    queues = [*QUEUES, {"topic": "U", "broker": "broker-a", "queue_id": 0}]
    listed = [{"topic": "elsewhere", "broker": "x", "queue_id": 7}, QUEUES[3], QUEUES[0]]
    request = {**REQUEST, "strategy": "CONFIG", "queues": queues, "options": {"config": {"c0": listed}}}
    owned = answer_of(request)["assignments"]
    assert owned == {"c0": [["elsewhere", "x", 7], ["T", "broker-a", 3], ["T", "broker-a", 0]], "c1": []}


def test_a_duplicate_id_is_one_key_and_unowned_queues_stand_beside() -> None:
    found = answer_of({**REQUEST, "clients": ["c0", "c0"]})
    assert found["assignments"] == {"c0": [["T", "broker-a", 0], ["T", "broker-a", 1]]}
    assert found["unowned"] == [["T", "broker-a", 2], ["T", "broker-a", 3]]


def test_pop_shares_the_next_clients_queues() -> None:
    found = answer_of({**REQUEST, "clients": ["c0", "c1", "c2", "c3"], "options": {"pop_share_queues": 1}})
    assert found["assignments"]["c3"] == [["T", "broker-a", 3], ["T", "broker-a", 0]]


def test_pop_of_everything_is_whole_brokers_but_never_the_retry_topic() -> None:
    queues = [*QUEUES, {"topic": "%RETRY%g", "broker": "broker-a", "queue_id": 0}]
    found = answer_of({**REQUEST, "queues": queues, "options": {"pop_share_queues": -1}})
    assert found["assignments"] == {
        "c0": [["%RETRY%g", "broker-a", 0], ["T", "broker-a", -1]],
        "c1": [["T", "broker-a", -1]],
    }


NEARBY = {"brokers": {"broker-a": "r"}, "clients": {"c0": "r", "c1": "r"}}

WRONG: dict[str, tuple[object, list[str]]] = {
    "unknown strategy lists the known ones": ({"strategy": "AVGG"}, ["'AVGG'", "AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY"]),
    "unknown system": ({"system": "pulsar"}, ["system", "pulsar", "rocketmq, kafka"]),
    "no rooms": ({"strategy": "MACHINE_ROOM"}, ["options.consumer_rooms", "missing", "list of room names"]),
    "no config": ({"strategy": "CONFIG"}, ["options.config", "missing"]),
    "no machine rooms": ({"strategy": "MACHINE_ROOM_NEARBY"}, ["options.machine_rooms", "missing"]),
    "broker without room": (
        {"strategy": "MACHINE_ROOM_NEARBY", "options": {"machine_rooms": {**NEARBY, "brokers": {}}}},
        ["broker", "broker-a", "room"],
    ),
    "client without room": (
        {"strategy": "MACHINE_ROOM_NEARBY", "options": {"machine_rooms": {**NEARBY, "clients": {"c0": "r"}}}},
        ["client", "c1", "room"],
    ),
    "client without room and no queues": (
        {"strategy": "MACHINE_ROOM_NEARBY", "queues": [], "options": {"machine_rooms": {**NEARBY, "clients": {}}}},
        ["client", "c1", "room"],
    ),
    "inner of another kind": (
        {"strategy": "MACHINE_ROOM_NEARBY", "options": {"machine_rooms": {**NEARBY, "inner": "CONFIG"}}},
        ["inner", "CONFIG", "AVG, AVG_BY_CIRCLE, CONSISTENT_HASH"],
    ),
    "virtual nodes with another inner": (
        {"strategy": "MACHINE_ROOM_NEARBY", "options": {"machine_rooms": NEARBY, "virtual_nodes": 3}},
        ["virtual_nodes", "CONSISTENT_HASH"],
    ),
    "options of another strategy": ({"options": {"virtual_nodes": 3}}, ["virtual_nodes"]),
    "unknown option": ({"strategy": "CONSISTENT_HASH", "options": {"nodes": 3}}, ["nodes", "virtual_nodes"]),
    "negative virtual nodes": (
        {"strategy": "CONSISTENT_HASH", "options": {"virtual_nodes": -1}},
        ["virtual_nodes", "-1"],
    ),
    "virtual nodes true": (
        {"strategy": "CONSISTENT_HASH", "options": {"virtual_nodes": True}},
        ["virtual_nodes", "true"],
    ),
    "empty id": ({"clients": ["c0", ""]}, ["clients[1]", '""', "not empty"]),
    "id that is no text": ({"clients": [7]}, ["clients[0]", "7", "client id"]),
    "clients no list": ({"clients": "c0"}, ["clients", '"c0"', "list"]),
    "queue twice": ({"queues": [*QUEUES, QUEUES[1]]}, ["queues[4]", "T/broker-a/1", "queues[1]"]),
    "negative queue id": ({"queues": [{**QUEUES[0], "queue_id": -1}]}, ["queues[0].queue_id", "-1", "from 0"]),
    "queue id as text": ({"queues": [{**QUEUES[0], "queue_id": "0"}]}, ["queues[0].queue_id", '"0"']),
    "queue without broker": ({"queues": [{"topic": "T", "queue_id": 0}]}, ["queues[0].broker", "missing"]),
    "queue no object": ({"queues": [["T", "b", 0]]}, ["queues[0]", "an object"]),
    "config list wrong": (
        {"strategy": "CONFIG", "options": {"config": {"c0": [{"topic": "T"}]}}},
        ["options.config['c0'][0].broker", "missing"],
    ),
    "unknown field": ({"client": ["c0"]}, ["client"]),
    "options no object": ({"options": [1]}, ["options", "[1]", "object"]),
    "group no text": ({"group": 1}, ["group", "1", "text"]),
    "too many ring points": (
        {
            "strategy": "CONSISTENT_HASH",
            "options": {"virtual_nodes": 100_000},
            "clients": [f"c{n}" for n in range(201)],
        },
        ["virtual_nodes", "20000000"],
    ),
    "a reserved queue for two": (
        {"strategy": "STATIC", "options": {"reserved": {"a": QUEUES[:1], "b": QUEUES[:1]}}},
        ["reserved", "T/broker-a/0", "each queue once"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_is_one_sentence_with_exit_code_2(case: str) -> None:
    change, expected = WRONG[case]
    assert isinstance(change, dict)
    result = run({**REQUEST, **change})
    assert isinstance(result.exception, BadInputError)
    assert result.exception.exit_code == 2
    sentence = str(result.exception)
    assert "\n" not in sentence
    for part in expected:
        assert part in sentence


@pytest.mark.parametrize("field", ["system", "strategy", "queues", "clients"])
def test_a_missing_field_is_named(field: str) -> None:
    request = {name: value for name, value in REQUEST.items() if name != field}
    assert str(run(request).exception).startswith(f"{field}: missing, expected ")


def test_in_a_list_a_bad_request_stands_in_its_place() -> None:
    result = run([REQUEST, {**REQUEST, "clients": [""]}, 7, REQUEST], "-o", "json")
    first, second, third, last = json.loads(result.stdout)
    assert (first, last) == (ANSWER, ANSWER)
    assert second["error"].startswith("request 1: clients[0]: found")
    assert third["error"].startswith("request 2: request: found 7")
    assert result.exit_code == 2
    assert "2 of 4 requests" in result.stderr


@pytest.mark.parametrize("text", ["{", "", "[1,", "\x00", "[" * 100_000])
def test_broken_json_says_where(text: str) -> None:
    result = CliRunner().invoke(app, ["-"], input=text)
    assert isinstance(result.exception, BadInputError)
    assert "standard input" in str(result.exception)


def test_a_missing_file_is_named() -> None:
    result = CliRunner().invoke(app, ["nowhere.json"])
    assert "nowhere.json" in str(result.exception)


def test_diff_names_what_moves(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**REQUEST, "strategy": "AVG_BY_CIRCLE"}))
    diff = answer_of(REQUEST, "--diff", str(other))["diff"]
    assert diff["moved"] == [["T", "broker-a", 1], ["T", "broker-a", 2]]
    assert diff["changes"][0] == {"queue": ["T", "broker-a", 1], "from": ["c0"], "to": ["c1"]}
    assert diff["kept"] == 2
    assert diff["clients"] == {"c0": {"loses": 1, "gains": 1}, "c1": {"loses": 1, "gains": 1}}


def test_diff_takes_an_answer_too(tmp_path: Path) -> None:
    other = tmp_path / "answer.json"
    other.write_text(json.dumps(ANSWER))
    assert answer_of(REQUEST, "--diff", str(other))["diff"]["changes"] == []


def test_diff_needs_as_many_requests(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps([REQUEST, REQUEST]))
    assert "found 2 requests, expected 1" in str(run(REQUEST, "--diff", str(other)).exception)


def test_the_table_marks_idle_consumers_and_unowned_queues() -> None:
    result = run({**REQUEST, "clients": ["a", "a", "b", "c", "d", "e"]})
    assert result.exit_code == 0
    assert "idle" in result.stdout
    assert "Nobody consumes 1 queue: T/broker-a/1" in result.stdout
    assert "Client id a is there more than once" in result.stdout


def test_many_requests_are_one_line_each() -> None:
    result = run([REQUEST] * 25)
    assert "25 requests" in result.stdout
    assert len(result.stdout.splitlines()) == 30


def test_too_many_queues_are_refused_with_the_limit() -> None:
    assert "found 2000001 entries, expected at most 2000000" in str(
        run({**REQUEST, "queues": [0] * 2_000_001}).exception
    )


def test_many_queues_are_answered() -> None:
    queues = [{"topic": "T", "broker": f"b{broker}", "queue_id": n} for broker in range(100) for n in range(1000)]
    clients = [f"c{number}" for number in range(1000)]
    found = answer_of({**REQUEST, "queues": queues, "clients": clients})["assignments"]
    assert {len(owned) for owned in found.values()} == {100}


def test_four_thousand_requests_are_answered_in_one_call(tmp_path: Path) -> None:
    file = tmp_path / "requests.json"
    file.write_text(json.dumps([topologies.request(number) for number in range(4000)]))
    program = "import typer; from planner.cli.allocate import allocate; typer.run(allocate)"
    run = subprocess.run(
        [sys.executable, "-c", program, str(file), "-o", "json"], capture_output=True, text=True, check=True
    )
    assert len(json.loads(run.stdout)) == 4000


def test_names_from_outside_are_no_markup() -> None:
    result = run({**REQUEST, "group": "[red]g[/red]", "clients": ["[bold]x", "c[/]"]})
    assert "[red]g[/red]" in result.stdout
    assert "[bold]x" in result.stdout


KAFKA: dict[str, Any] = {
    "system": "kafka",
    "strategy": "range",
    "partitions": {"t0": 4, "unread": 1},
    "members": [
        {"id": member, "instance_id": None, "rack": None, "topics": ["t0"], "owned": [], "generation": -1}
        for member in ("c1", "c0")
    ],
    "options": {},
}


def test_kafka_is_answered_too() -> None:
    found = answer_of(KAFKA)
    assert found["assignments"] == {"c0": [["t0", 0], ["t0", 1]], "c1": [["t0", 2], ["t0", 3]]}
    assert found["deterministic"] is True
    assert found["unowned"] == [["unread", 0]]


def test_both_systems_in_one_list() -> None:
    first, second, third = answer_of([REQUEST, KAFKA, {**REQUEST, "clients": ["c0"]}])
    assert first == ANSWER
    assert set(second["assignments"]) == {"c0", "c1"}
    assert len(third["assignments"]["c0"]) == 4


def test_a_bad_kafka_request_is_one_sentence() -> None:
    members = [{**KAFKA["members"][0], "owned": [["t0", "9"]]}]
    result = run({**KAFKA, "members": members})
    assert isinstance(result.exception, BadInputError)
    assert "t0" in str(result.exception)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
OPTION_NAMES = sorted({name for kind in KINDS.values() for name in kind.options})


@given(
    field=st.sampled_from(["system", "strategy", "group", "queues", "clients", "options"]),
    value=JSON,
    strategy=st.sampled_from(sorted(KINDS)),
)
def test_nonsense_in_a_field_is_answered_or_refused_in_one_sentence(field: str, value: Any, strategy: str) -> None:
    _answered_or_refused({**REQUEST, "strategy": strategy, field: value})


@given(
    strategy=st.sampled_from(sorted(KINDS)), options=st.dictionaries(st.sampled_from(OPTION_NAMES), JSON, max_size=4)
)
def test_nonsense_in_options_is_answered_or_refused_in_one_sentence(strategy: str, options: dict[str, Any]) -> None:
    _answered_or_refused({**REQUEST, "strategy": strategy, "options": options})


@given(rooms=st.dictionaries(st.sampled_from(["brokers", "clients", "inner", "virtual_nodes"]), JSON))
def test_nonsense_in_rooms_is_answered_or_refused_in_one_sentence(rooms: dict[str, Any]) -> None:
    _answered_or_refused({**REQUEST, "strategy": "MACHINE_ROOM_NEARBY", "options": {"machine_rooms": rooms}})


def _answered_or_refused(request: object) -> None:
    [found] = answer_all([request]).documents
    if "error" in found:
        assert found["error"].startswith("request 0: ")
        assert "\n" not in found["error"]
    else:
        assert "assignments" in json.loads(json.dumps(found))
