"""Our answer against the real classes' answer, and a failing request made small."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from planner.allocation.kafka import Answer
from planner.allocation.kafka.assignment import assignments_of, find_assignor
from planner.allocation.kafka.request import named_group
from planner.allocation.ordering import java_sorted
from planner.documents.allocation import read_kafka
from tests.allocations import assign
from tests.oracles.kafka.oracle import KafkaOracle

Document = dict[str, Any]
Assignments = dict[str, list[tuple[str, int]]]


def disagreement(request: Document, answer: Document, *, in_any_walk: bool = True) -> str | None:
    """Return in what our answer differs from the class's beyond what it may, ``None`` when it does not.

    ``in_any_walk`` looks also at an answer that we make with the members in another hash order.
    """
    ours = assign(request)
    if not request["members"]:
        return None if ours["assignments"] == {} else "without members the answer must be empty"
    found = _difference(request, ours, answer)
    return found or (_difference_in_another_walk(request, ours, answer) if in_any_walk else None)


def _difference(request: Document, ours: Answer, answer: Document) -> str | None:
    """Our walk follows the order of Java's hash map for these ids, so all answers must be equal, determined or not.

    Only where the class fails or hands a partition to somebody who does not subscribe, ours must warn instead.
    """
    if flaw := _flaw(request, ours["assignments"]):
        return f"ours is not valid: {flaw}"
    if "error" in answer or _flaw(request, as_pairs(answer)):
        return None if ours["warnings"] else f"the class fails ({answer}), ours says nothing"
    return None if ours["assignments"] == as_pairs(answer) else "the owners differ"


def _difference_in_another_walk(request: Document, ours: Answer, answer: Document) -> str | None:
    """A determined answer must be the same in any hash order; another one as balanced, and keep as much."""
    other = answer_walking(request, Random(len(json.dumps(request))))
    if ours["deterministic"]:
        return None if other == ours["assignments"] else "the walk decides, yet the answer is called determined"
    if flaw := _flaw(request, other):
        return f"ours in another walk is not valid: {flaw}"
    if ours["warnings"] or _is_disputed(request) or _is_unequal(request) or "error" in answer:
        return None
    if "partition_racks" not in request["options"]:
        return _figures_differ(request, other, as_pairs(answer))
    # A partition that is given up for its rack can come back to its owner, or not, as others fill up.
    if request["options"].get("cooperative_round") == "first" or _loads(other) == _loads(as_pairs(answer)):
        return None
    return "in another walk the loads differ"


def answer_walking(request: Document, random: Random | None) -> Assignments:
    """Return our assignments with the members walked in a random order, or by id when ``random`` is None."""
    named = named_group(read_kafka(request))
    walk = list(range(named.group.member_count))
    if random is not None:
        random.shuffle(walk)
    group = replace(named.group, walk=np.array(walk, dtype=np.intp))
    if not walk:
        return {}
    assignor = find_assignor(request["strategy"], request.get("options") or {})
    return assignments_of(named, assignor(group))


def as_pairs(answer: Document) -> Assignments:
    """Return the class's answer in our form: ids sorted, partitions sorted."""
    ranks = {topic: rank for rank, topic in enumerate(java_sorted({one[0] for got in answer.values() for one in got}))}
    return {
        member: sorted(((topic, number) for topic, number in answer[member]), key=lambda one: (ranks[one[0]], one[1]))
        for member in java_sorted(answer)
    }


def properties_differ(request: Document, ours: Answer, answer: Document) -> str | None:
    """Return in what two answers differ beyond names: validity, loads, how many partitions were kept."""
    return _flaw(request, ours["assignments"]) or _figures_differ(request, ours["assignments"], as_pairs(answer))


def _flaw(request: Document, assignments: Assignments) -> str | None:
    """Return what is wrong with an answer by itself: an owner too many or too few, or one that does not subscribe."""
    topics = {member["id"]: set(member["topics"]) for member in request["members"]}
    owners: dict[tuple[str, int], str] = {}
    for member, got in assignments.items():
        for one in got:
            if one in owners:
                return f"{one} belongs to {owners[one]} and {member}"
            if one[0] not in topics[member]:
                return f"{member} does not subscribe to {one}"
            owners[one] = member
    if request["strategy"] == "cooperative-sticky":
        return None
    wanted = {topic for one in topics.values() for topic in one}
    missing = [
        (topic, number)
        for topic, count in request["partitions"].items()
        if topic in wanted
        for number in range(count)
        if (topic, number) not in owners
    ]
    return f"nobody owns {missing}" if missing else None


def _figures_differ(request: Document, ours: Assignments, theirs: Assignments) -> str | None:
    mine, other = _figures(request, ours), _figures(request, theirs)
    return None if mine == other else f"loads and kept: ours {mine}, the class's {other}"


def _figures(request: Document, assignments: Assignments) -> tuple[list[int], int]:
    """Return the loads, smallest first, and how many partitions stay with a member that claims them.

    After a cooperative first round only the sum of the loads: whose share is withheld is a matter of order.
    """
    kept = 0
    for member in request["members"]:
        claims = {(topic, number) for topic, number in member.get("owned") or ()}
        kept += len(claims.intersection(assignments[member["id"]]))
    loads = _loads(assignments)
    return ([sum(loads)] if request["options"].get("cooperative_round") == "first" else loads), kept


def _loads(assignments: Assignments) -> list[int]:
    return sorted(map(len, assignments.values()))


def _is_disputed(request: Document) -> bool:
    """Return whether two members claim one partition: what is kept then depends on who is met first."""
    claims = [(topic, number) for member in request["members"] for topic, number in member.get("owned") or ()]
    return len(set(claims)) < len(claims)


def _is_unequal(request: Document) -> bool:
    return len({frozenset(member["topics"]) for member in request["members"]}) > 1


def first_disagreement(oracle: KafkaOracle, requests: Sequence[Document], walk_every: int = 1) -> Document | None:
    """Return the first request that is answered otherwise, ``None`` when all agree.

    Every ``walk_every``-th is looked at in another hash order too.
    """
    for index, (request, answer) in enumerate(zip(requests, oracle.answers(requests), strict=True)):
        if disagreement(request, answer, in_any_walk=index % walk_every == 0):
            return request
    return None


def shrink(request: Document, oracle: KafkaOracle) -> Document:
    """Return a small request that is still answered otherwise: nothing can be left out of it any more."""
    smaller: Document | None = request
    while smaller is not None:
        request = smaller
        smaller = next((one for one in _simpler(request) if disagreement(one, oracle.answer(one))), None)
    return request


def explain(request: Document, oracle: KafkaOracle) -> str:
    """Return the shrunk request with both answers, as a failing test shows it."""
    small = shrink(request, oracle)
    answer = oracle.answer(small)
    return (
        f"Kafka {oracle.version} disagrees ({disagreement(small, answer)}) on\n  {json.dumps(small)}\n"
        f"  class: {json.dumps(answer)}\n  ours:  {json.dumps(assign(small))}"
    )


def _simpler(request: Document) -> Iterator[Document]:
    members = request["members"]
    for start, end in _cuts(len(members)):
        yield {**request, "members": members[:start] + members[end:]}
    for topic, count in request["partitions"].items():
        yield _without_partitions(request, topic, 0)
        if count > 1:
            yield _without_partitions(request, topic, count - 1)
    for index, member in enumerate(members):
        for less in _simpler_members(member):
            yield {**request, "members": [*members[:index], less, *members[index + 1 :]]}
    for option in request["options"]:
        yield {**request, "options": {name: value for name, value in request["options"].items() if name != option}}


def _simpler_members(member: Document) -> Iterator[Document]:
    for field in ("rack", "instance_id", "generation", "owned"):
        if member.get(field):
            yield {name: value for name, value in member.items() if name != field}
    for field in ("owned", "topics"):
        items = member.get(field) or []
        for start, end in _cuts(len(items)):
            if field != "topics" or end - start < len(items):
                yield {**member, field: items[:start] + items[end:]}


def _cuts(count: int) -> Iterator[tuple[int, int]]:
    size = max(1, count // 2)
    while size and count:
        yield from ((start, min(start + size, count)) for start in range(0, count, size))
        size //= 2


def _without_partitions(request: Document, topic: str, count: int) -> Document:
    """Return the request with fewer partitions of one topic, claims and racks cut to match."""
    partitions = {name: size for name, size in request["partitions"].items() if name != topic}
    if count:
        partitions[topic] = count
    members = [
        {**member, "owned": [one for one in member.get("owned") or [] if one[1] < partitions.get(one[0], 0)]}
        for member in request["members"]
    ]
    options = dict(request["options"])
    if "partition_racks" in options:
        racks = options["partition_racks"]
        options["partition_racks"] = {
            name: lists[: partitions[name]] for name, lists in racks.items() if name in partitions
        }
    return {**request, "partitions": partitions, "members": members, "options": options}
