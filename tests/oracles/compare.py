"""Our answer against the real classes' answer, and a failing request made small."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from planner.allocation.request import answer_document
from planner.documents.allocation import read_rocketmq
from tests.oracles.rocketmq import RocketMQOracle

Document = dict[str, Any]
Ask = Callable[[Document], Document]


def our_answer(request: Document) -> Document:
    """Return what ``planner allocate`` answers under ``assignments``."""
    assignments: Document = answer_document(read_rocketmq(request).allocate())["assignments"]
    return assignments


def expected_answer(request: Document, answer: Document) -> Document:
    """Return the classes' answer in the contract's form: keys sorted as Java sorts, no queues means empty lists."""
    if not request["queues"]:
        return {client: [] for client in answer}
    return answer


def first_difference(oracle: RocketMQOracle, requests: Sequence[Document]) -> Document | None:
    """Return the first request that is answered differently, ``None`` when all agree."""
    for request, answer in zip(requests, oracle.answers(requests), strict=True):
        if differs(request, answer):
            return request
    return None


def differs(request: Document, answer: Document) -> bool:
    """True when we answer otherwise than the classes; the order of queues and of clients counts."""
    ours, theirs = our_answer(request), expected_answer(request, answer)
    return ours != theirs or list(ours) != list(theirs)


def shrink(request: Document, oracle: RocketMQOracle) -> Document:
    """Return a small request that is still answered differently: nothing can be left out of it any more."""
    smaller: Document | None = request
    while smaller is not None:
        request = smaller
        smaller = next((one for one in _simpler(request) if differs(one, oracle.answer(one))), None)
    return request


def explain(request: Document, oracle: RocketMQOracle) -> str:
    """Return the shrunk request with both answers, as a failing test shows it."""
    small = shrink(request, oracle)
    return (
        f"client {oracle.version} disagrees on\n  {json.dumps(small)}\n"
        f"  class: {json.dumps(oracle.answer(small))}\n  ours:  {json.dumps(our_answer(small))}"
    )


def _simpler(request: Document) -> Iterator[Document]:
    for field in ("clients", "queues"):
        items = request[field]
        size = len(items) // 2
        while size:
            for start in range(0, len(items), size):
                yield {**request, field: items[:start] + items[start + size :]}
            size //= 2
    if request["options"].get("virtual_nodes", 1) > 1:
        yield {**request, "options": {**request["options"], "virtual_nodes": 1}}
