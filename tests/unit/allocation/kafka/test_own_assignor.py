"""A user's own Kafka assignor: the example is the manual, and a wrong answer is refused in one sentence."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from planner.allocation.answers import reported_name
from planner.allocation.kafka import Member, Request, assign
from planner.allocation.kafka.own import OwnAssignor
from planner.allocation.kafka.request import named_group
from planner.allocation.plugins import ASSIGNOR_ENTRY_POINTS, FILES_VARIABLE, allow
from planner.decision.decision import HoldCause
from planner.documents.allocation import answer_all
from planner.documents.forecast import forecast
from planner.documents.policy import parse_policy
from planner.errors import BadInputError, UnknownNameError
from planner.simulation.candidates import simulate_candidate, unsettled_queues
from planner.simulation.kafka.mixed_partitions import assigned
from planner.simulation.transition import with_transition
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.today import under_policy
from tests import decidable
from tests.builders import kafka_snapshot
from tests.unit.allocation.kafka.worked import member, request
from tests.unit.simulation.test_kafka_conversion import request as forecast_request

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "custom_assignor.py"
ASKED = request("?", {"t": 4, "u": 2}, member("b", "t u"), member("a", "t"))


@pytest.fixture(autouse=True)
def _allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The administrator has listed the example and this test's folder."""
    monkeypatch.setenv(FILES_VARIABLE, os.pathsep.join((str(EXAMPLE), str(tmp_path))))


def written(folder: Path, body: str, more: str = "", before: str = "") -> str:
    """Return the path of an assignor whose method has this body."""
    file = folder / "own.py"
    file.write_text(
        f"{before}\nclass Own:\n    name = 'own'\n    {more}\n    def assign(self, members, partitions, racks):\n"
        f"        {body}\n"
    )
    return str(file)


FIRST = "return {members[0].member_id: [(t, n) for t in partitions for n in range(partitions[t])]}"


def answered(strategy: str, **options: Any) -> dict[str, Any]:
    [found] = answer_all([{**ASKED, "strategy": strategy, "options": options}]).documents
    return found


def test_the_example_runs_as_it_says() -> None:
    run = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.splitlines() == [
        "by-weight: 12 of 18 partitions move, then 5 5 4 4 each",
        "range: 7 of 18 partitions move, then 5 5 4 4 each",
    ]


def test_the_example_answers_requests_by_its_path() -> None:
    assert answered(str(EXAMPLE))["assignments"] == {
        "a": [("t", 0), ("t", 2)],
        "b": [("t", 1), ("t", 3), ("u", 0), ("u", 1)],
    }
    weighted = answered(f"{EXAMPLE}:ByWeight", weights={"a": 3})["assignments"]
    assert [len(weighted[name]) for name in "ab"] == [3, 3]


def test_it_sees_what_an_assignor_sees(tmp_path: Path) -> None:
    body = "raise ValueError([(m.member_id, sorted(m.topics), m.instance_id, m.rack, m.owned) for m in members], {})"
    path = written(tmp_path, body.format("dict(partitions), dict(racks)"))
    seen = Request(
        path,
        {"t": 1, "unread": 9},
        (Member("m", frozenset({"t"}), "static-0", "r1", (("t", 0),), 7),),
        {"t": (frozenset({"r1"}),)},
    )
    with pytest.raises(BadInputError) as plain:
        assign(seen)
    assert str(plain.value) == (
        "assignor own raised ValueError: ([('m', ['t'], 'static-0', 'r1', ())], {'t': 1}, {'t': (frozenset({'r1'}),)})"
    )
    sticky = written(tmp_path, body.format("members[0].generation"), "is_sticky = True")
    with pytest.raises(BadInputError, match=r"'r1', \(\('t', 0\),\)\)\], 7\)"):
        assign(replace(seen, strategy=sticky))


WRONG = {
    "1 / 0": "assignor own raised ZeroDivisionError: division by zero",
    "return 7": "expected a dict",
    "return {}": "forgot 6 of 6 partitions, first t-0: nobody would consume it",
    "return {'x': []}": 'gives partitions to "x", which is no member',
    "return {'a': [('u', 0)]}": "gives u-0 to a, which does not subscribe to u",
    "return {'a': [('t', 0)], 'b': [('t', 0)]}": "gives t-0 to a and to b, expected one owner",
    "return {'a': [('t', 4)]}": "gives t-4 to a: there is no such partition",
    "return {'a': [('t', -1)]}": "gives t--1 to a: there is no such partition",
    "return {'a': ['t']}": "expected partitions such as",
    "return {'a': [('t', True)]}": "expected a partition such as",
    "return {'a': [(['t'], 0)]}": "expected a partition such as",
    "return {'a': 7}": "expected partitions such as",
    "return {'a': __import__('itertools').repeat(('t', 0))}": "gives a more than the 6 partitions that there are",
    "partitions['t'] = 1": "raised TypeError",
    "members[0].topics = ()": "raised FrozenInstanceError",
}


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_answer_is_refused_in_a_sentence_and_stops_no_other(body: str, tmp_path: Path) -> None:
    asked = {**ASKED, "strategy": written(tmp_path, body)}
    found = answer_all([asked, {**ASKED, "strategy": "range"}])
    assert WRONG[body] in found.documents[0]["error"]
    assert "\n" not in found.documents[0]["error"]
    assert "assignments" in found.documents[1]


def test_an_answer_that_differs_the_second_time_is_refused() -> None:
    calls = count()

    class Own:
        name = "own"

        def assign(self, members: Any, partitions: Any, racks: object) -> Any:  # noqa: ARG002
            return {members[next(calls) % 2].member_id: [("t", number) for number in range(partitions["t"])]}

    members = tuple(Member(name, frozenset({"t"})) for name in "ab")
    with pytest.raises(BadInputError, match="answered the same question twice, and t-0 had another owner"):
        OwnAssignor(Own())(named_group(Request("own", {"t": 3}, members)).group)


def test_a_document_runs_no_file_that_nobody_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILES_VARIABLE, str(EXAMPLE))
    ran = tmp_path / "ran"
    path = written(tmp_path, FIRST, before=f"__import__('pathlib').Path({str(ran)!r}).touch()")
    assert "is not to decide what runs here" in answered(path)["error"]
    source = {"system": "kafka", "bootstrapServers": ["127.0.0.1:1"], "cluster": "c", "group": "g"}
    policy = {
        "apiVersion": "consumerplanner.dev/v1alpha1",
        "kind": "ConsumerScalingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "source": source,
            "scaleTargetRef": {"name": "app"},
            "maxReplicas": 8,
            "strategy": path,
            "strategyOptions": {"a": 1},
        },
    }

    with pytest.raises(BadInputError, match="is not to decide what runs here"):
        parse_policy(json.dumps(policy), "policy")
    with pytest.raises(BadInputError, match="is not to decide what runs here"):
        forecast(forecast_request({"kind": "leave", "clients": ["g-m3"], "how": "graceful"}, path))
    assert not ran.exists()
    allow(path)  # a person's own option
    assert "which does not subscribe to u" in answered(path)["error"]
    assert ran.exists()


def test_an_installed_package_brings_an_assignor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "house_assignor.py").write_text(EXAMPLE.read_text())
    information = tmp_path / "house_assignor-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: house-assignor\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{ASSIGNOR_ENTRY_POINTS}]\nhouse = house_assignor:ByWeight\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert len(answered("house")["assignments"]["b"]) == 4
    with pytest.raises(UnknownNameError, match="house"):
        assign(Request("hause", {"t": 1}, (Member("m", frozenset({"t"})),)))


def test_candidates_are_simulated_and_their_change_is_forecast_under_it() -> None:
    taken = kafka_snapshot(str(EXAMPLE))
    # a gives 0 and 2 to the first member, 1 and 3 to the second
    assert unsettled_queues(taken) == 2
    owners = {"t-0": "a", "t-1": "b", "t-2": "a", "t-3": "b"}
    settled = replace(taken, queues=tuple(replace(one, owner=owners[f"t-{one.queue.number}"]) for one in taken.queues))
    assert unsettled_queues(settled) == 0
    more = simulate_candidate(settled, 3, str(EXAMPLE))
    assert more.strategy == str(EXAMPLE)
    assert sorted(load.queues for load in more.loads) == [1, 1, 2]
    assert with_transition(more, settled, "digest").transition is not None
    fewer = simulate_candidate(settled, 1, str(EXAMPLE))
    assert [load.queues for load in fewer.loads] == [4]
    assert (fewer.moved_fewest, fewer.moved_most) == (2, 2)


def test_a_change_is_forecast_under_it() -> None:
    found = forecast(
        forecast_request({"kind": "leave", "clients": ["g-m3"], "how": "graceful"}, str(EXAMPLE), trials=20)
    )
    sizes = {name: len(owned) for name, owned in found["after"].items()}
    assert sizes == {"g-m1": 4, "g-m2": 4}
    assert found["after"]["g-m1"] == [["t", number] for number in (0, 2, 4, 6)]
    # Eager: the queues that stay are stopped as well.
    assert found["total"]["stall_s"]["p50"] > 0
    roll = {"kind": "strategy", "to": str(EXAMPLE), "clients": ["g-m1", "g-m2", "g-m3"], "interval_s": 15}
    assert forecast(forecast_request(roll, trials=20))["after"]["g-m1"] == [["t", number] for number in (0, 3, 6)]


@pytest.mark.parametrize(
    ("more", "changed", "expected"),
    [
        ("is_cooperative = True", {}, "in how many rounds it settles is not known"),
        ("", {"protocol": "consumer"}, "no others run one"),
        ("", {"versions": {"client": "librdkafka 2.16.1", "broker": "4.3.1"}}, "no others run one"),
    ],
)
def test_what_nobody_can_foresee_is_refused_by_name(
    more: str, changed: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    path = written(tmp_path, FIRST, more)
    with pytest.raises(BadInputError, match=expected):
        forecast(forecast_request({"kind": "leave", "clients": ["g-m3"], "how": "graceful"}, path, **changed))
    if more:
        with pytest.raises(BadInputError, match=expected):
            simulate_candidate(kafka_snapshot(path), 3, path)


def test_a_policy_states_the_file_of_the_assignor_that_the_coordinator_reports(tmp_path: Path) -> None:
    assert reported_name("kafka", str(EXAMPLE), {}) == "by-weight"
    assert reported_name("kafka", "range", {}) is None
    assert reported_name("rocketmq", str(EXAMPLE), {}) is None
    other = SnapshotSettings(strategy=written(tmp_path, FIRST), reported_as="own")
    taken = replace(kafka_snapshot("by-weight"), strategy_source="the coordinator (classic protocol)")
    refused = under_policy(taken, replace(other, reported_as=None))
    assert refused.strategy is None
    assert refused.strategy_source.endswith("none that may run here (PLANNER_STRATEGY_FILES) or holds no assignor")
    assert under_policy(taken, other).strategy is None
    assert "PLANNER_STRATEGY_FILES" not in under_policy(taken, other).strategy_source
    assert under_policy(taken, replace(other, reported_as="by-weight")).strategy == other.strategy


def test_the_page_shows_an_assignor_that_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "strategies-kafka.md").read_text()
    shown = page.partition("    def assign(self, members, partitions, racks):\n")[2].partition("\n\n")[0]
    path = written(tmp_path, f"\n{shown}")
    assert answered(path)["assignments"] == answered(str(EXAMPLE))["assignments"]


def test_a_policy_plans_under_it_and_holds_while_owners_are_not_as_the_file_says() -> None:
    """From the name that the coordinator reported to a plan by the file that the policy states."""
    taken = decidable.one_each(random.Random(18), "range")
    taken = replace(taken, strategy="by-weight", strategy_source="the coordinator (classic protocol)")
    load = sum(state.upper_arrival_rate or 0.0 for state in taken.queues)
    settings = SnapshotSettings(
        strategy=str(EXAMPLE),
        reported_as=reported_name("kafka", str(EXAMPLE), {}),
        capacity_messages_per_s=0.8 * load / len(taken.clients),
    )
    stated = under_policy(taken, settings)
    assert stated.strategy == str(EXAMPLE)

    owners = assigned(stated, str(EXAMPLE), stated.members)
    settled = replace(stated, queues=tuple(replace(one, owner=owners[one.queue]) for one in stated.queues))
    found = decidable.ask(str(EXAMPLE), "", settled)
    assert found.answer is decidable.Answer.PLANNED, found

    swapped = dict(zip(stated.clients, reversed(stated.clients), strict=True))
    otherwise = replace(settled, queues=tuple(replace(one, owner=swapped[one.owner or ""]) for one in settled.queues))
    assert decidable.ask(str(EXAMPLE), "", otherwise).cause == HoldCause.UNSETTLED
