"""What is refused, each in one sentence that names field, found and expected."""

import contextlib
from typing import Any

import pytest

from planner.allocation.kafka import ASSIGNORS
from planner.allocation.kafka.request import MOST_MEMBERS, MOST_PARTITIONS
from planner.errors import BadInputError, UnknownNameError
from tests.allocations import assign
from tests.unit.allocation.kafka.worked import Document, member, request

GOOD = request("sticky", {"t": 2}, member("a", "t"), member("b", "t"))


def with_member(**fields: object) -> Document:
    return {**GOOD, "members": [{**member("a", "t"), **fields}, member("b", "t")]}


REFUSALS: dict[str, tuple[Document, str]] = {
    "system": ({**GOOD, "system": "rabbit"}, 'system: found "rabbit", expected kafka'),
    "unknown field": ({**GOOD, "topics": []}, 'request: found "topics", expected one of'),
    "strategy missing": ({name: value for name, value in GOOD.items() if name != "strategy"}, "strategy: missing"),
    "strategy unknown": (
        {**GOOD, "strategy": "Range"},
        'strategy: found "Range", expected one of range, roundrobin, sticky, cooperative-sticky, random, uniform, ',
    ),
    "group no text": ({**GOOD, "group": 1}, "group: found 1, expected a text"),
    "partitions no object": ({**GOOD, "partitions": [1]}, "partitions: found [1], expected an object from topic"),
    "count negative": ({**GOOD, "partitions": {"t": -1}}, "partitions['t']: found -1, expected a whole number from 0"),
    "count no number": ({**GOOD, "partitions": {"t": True}}, "partitions['t']: found true, expected a whole number"),
    "topic empty": ({**GOOD, "partitions": {"": 1}}, 'partitions: found "", expected topic names'),
    "too many": (
        {**GOOD, "partitions": {"t": MOST_PARTITIONS, "u": 1}},
        f"partitions: found {MOST_PARTITIONS + 1} in all, expected at most {MOST_PARTITIONS}",
    ),
    "members no list": ({**GOOD, "members": {}}, "members: found {}, expected a list"),
    "too many members": (
        {**GOOD, "members": [{}] * (MOST_MEMBERS + 1)},
        f"members: found {MOST_MEMBERS + 1} entries, expected at most {MOST_MEMBERS}",
    ),
    "member no object": ({**GOOD, "members": ["a"]}, 'members[0]: found "a", expected an object'),
    "member unknown field": (with_member(owns=[]), 'members[0]: found "owns", expected one of id, instance_id'),
    "id missing": ({**GOOD, "members": [{"topics": []}]}, "members[0].id: missing, expected a text"),
    "id empty": (with_member(id=""), 'members[0].id: found "", expected a text that is not empty'),
    "id no text": (with_member(id=7), "members[0].id: found 7, expected a text that is not empty"),
    "id twice": (with_member(id="b"), 'members[1].id: found "b" again, which is members[0].id already'),
    "topics missing": ({**GOOD, "members": [{"id": "a"}]}, "members[0].topics: missing, expected a list"),
    "topics no list": (with_member(topics="t"), 'members[0].topics: found "t", expected a list of topic names'),
    "topic no text": (with_member(topics=[1]), "members[0].topics[0]: found 1, expected a text"),
    "instance empty": (with_member(instance_id=""), 'members[0].instance_id: found "", expected null or a text'),
    "instance twice": (
        {**GOOD, "members": [member("a", "t", instance="i"), member("b", "t", instance="i")]},
        'members[1].instance_id: found "i" again, which is members[0].instance_id already',
    ),
    "rack no text": (with_member(rack=1), "members[0].rack: found 1, expected null or the name of a rack"),
    "generation no number": (with_member(generation="3"), 'members[0].generation: found "3", expected a whole number'),
    "generation below -1": (with_member(generation=-2), "members[0].generation: found -2, expected a whole number"),
    "claim no pair": (with_member(owned=[["t"]]), 'members[0].owned[0]: found ["t"], expected a topic and'),
    "claim of a text": (with_member(owned=[["t", "0"]]), 'members[0].owned[0]: found ["t", "0"], expected a topic and'),
    "claim negative": (with_member(owned=[["t", -1]]), 'members[0].owned[0]: found ["t", -1], expected a topic and'),
    "claim twice": (
        with_member(owned=[["t", 1], ["t", 1]]),
        'members[0].owned[1]: found ["t", 1] again, which is members[0].owned[0] already',
    ),
    "server: one target, two owners": (
        request("uniform", {"t": 2}, member("a", "t", "t-0"), member("b", "t", "t-0")),
        'members[1].owned: found ["t", 0], which members[0] owns already, expected one owner',
    ),
    "options no object": ({**GOOD, "options": []}, "options: found [], expected an object"),
    "option unknown": ({**GOOD, "options": {"racks": {}}}, 'options: found "racks", expected one of partition_racks'),
    "option of another strategy": (
        {**GOOD, "options": {"cooperative_round": "first"}},
        'options: found "cooperative_round", expected one of partition_racks',
    ),
    "round unknown": (
        {**GOOD, "strategy": "cooperative-sticky", "options": {"cooperative_round": "second"}},
        'options.cooperative_round: found "second", expected first or final',
    ),
    "seed no number": (
        {**GOOD, "strategy": "random", "options": {"seed": "x"}},
        'options.seed: found "x", expected a whole number',
    ),
    "racks too few": (
        {**GOOD, "options": {"partition_racks": {"t": [["r"]]}}},
        "options.partition_racks['t']: found 1 lists of racks, expected 2, one for each partition",
    ),
    "rack list no list": (
        {**GOOD, "options": {"partition_racks": {"t": ["r", "r"]}}},
        "options.partition_racks['t'][0]: found \"r\", expected a list of rack names",
    ),
    "replica rack no text": (
        {**GOOD, "options": {"partition_racks": {"t": [[1], []]}}},
        "options.partition_racks['t'][0][0]: found 1, expected null or the name of a rack",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name: str) -> None:
    document, beginning = REFUSALS[name]
    with pytest.raises(BadInputError) as caught:
        assign(document)
    message = str(caught.value)
    assert message.startswith(beginning)
    assert "\n" not in message


ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "\ud800",
    "x",
    [],
    [None],
    [[]],
    [["t", 0]],
    {},
    {"t": []},
    {"t": [["r"], []]},
)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_no_odd_value_anywhere_gets_further_than_a_refusal(strategy: str) -> None:
    full = {**member("a", "t", "t-0", 3, "i"), "rack": "r"}
    good = {**request(strategy, {"t": 2}, full, member("b", "t"), partition_racks={"t": [["r"], []]}), "group": "g"}
    for odd in ODD:
        documents = [{**good, name: odd} for name in good]
        documents += [{**good, "members": [{**full, name: odd}]} for name in full]
        documents += [{**good, "options": {name: odd}} for name in ("partition_racks", "cooperative_round", "seed")]
        for document in documents:
            with contextlib.suppress(BadInputError):
                assert set(assign(document)) == {"assignments", "deterministic", "warnings"}


def test_an_unknown_strategy_is_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        assign({**GOOD, "strategy": "best"})


@pytest.mark.parametrize("document", [None, 1, "text", []])
def test_a_request_that_is_no_object(document: Any) -> None:
    with pytest.raises(BadInputError, match="request: found"):
        assign(document)


@pytest.mark.parametrize("strategy", ["range", "sticky", "uniform", "random"])
def test_no_members_is_an_empty_answer(strategy: str) -> None:
    assert assign(request(strategy, {"t": 2})) == {"assignments": {}, "deterministic": True, "warnings": []}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "range-server"])
def test_topics_unknown_or_without_partitions_are_skipped(strategy: str) -> None:
    answer = assign(request(strategy, {"t": 2, "empty": 0}, member("a", "t empty unheard-of")))
    assert answer["assignments"] == {"a": [("t", 0), ("t", 1)]}
    nothing = assign(request(strategy, {"empty": 0}, member("a", "empty"), member("b", "unheard-of")))
    assert nothing["assignments"] == {"a": [], "b": []}


def test_generation_null_minus_one_and_absent_are_the_same() -> None:
    owned = [["t", 0], ["t", 1]]
    answers = []
    for given in ({"generation": None}, {"generation": -1}, {}):
        holder = {name: value for name, value in member("a", "t").items() if name != "generation"}
        answers.append(assign(request("sticky", {"t": 2}, {**holder, "owned": owned, **given}, member("b", "t"))))
    assert answers[0] == answers[1] == answers[2]


def test_the_largest_group_that_is_taken_is_answered() -> None:
    members = [member(f"c{number}", "t") for number in range(3)]
    answer = assign(request("sticky", {"t": MOST_PARTITIONS}, *members))
    assert sorted(map(len, answer["assignments"].values())) == [666_666, 666_667, 666_667]
