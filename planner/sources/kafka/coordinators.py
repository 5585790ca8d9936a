"""Asking about groups over our own connections: each group's coordinator, many groups in one request."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from planner.errors import OutOfReachError, PlannerError
from planner.sources.kafka import requests
from planner.sources.kafka.broker_connections import BrokerConnections
from planner.sources.kafka.connection import Address, Connection
from planner.sources.kafka.errors import answer_error
from planner.sources.kafka.library import in_batches

_T = TypeVar("_T")
_TOGETHER: Final = 200  # groups in one request
_NOT_COORDINATOR: Final = 16

Asked = Callable[[Connection, int, Sequence[str]], Mapping[str, _T | PlannerError]]
"""What one broker, the coordinator of some groups, reports of each of them: connection, its number, the groups."""


def ask_coordinators(
    connections: BrokerConnections, groups: Sequence[str], ask: Asked[_T]
) -> dict[str, _T | PlannerError]:
    """Return what each group's coordinator reports of it, or the error that stands in its way."""
    answers: dict[str, _T | PlannerError] = {}
    for batch in in_batches(sorted(set(groups)), _TOGETHER):
        answers |= _ask_once(connections, batch, ask)
        moved = [group for group in batch if _has_moved(answers[group])]
        if moved:  # its coordinator changed between the two requests: once more, as clients do
            answers |= _ask_once(connections, moved, ask)
    return answers


def _has_moved(answer: object) -> bool:
    return getattr(answer, "code", None) == _NOT_COORDINATOR


def _ask_once(connections: BrokerConnections, groups: Sequence[str], ask: Asked[_T]) -> dict[str, _T | PlannerError]:
    coordinators = connections.anywhere(
        lambda link: link.ask(requests.FIND_COORDINATOR, requests.coordinators_request(tuple(groups)))
    )
    answers: dict[str, _T | PlannerError] = {}
    at: dict[tuple[int, Address], list[str]] = defaultdict(list)
    for coordinator in coordinators:
        if coordinator.code:
            answers[coordinator.group] = answer_error(
                f"group {coordinator.group}, its coordinator", coordinator.code, coordinator.remark
            )
        else:
            at[coordinator.node, Address(coordinator.host, coordinator.port)].append(coordinator.group)
    for (node, address), names in at.items():
        try:
            answers |= connections.at(address, partial(_ask_broker, ask=ask, node=node, groups=names))
        except OutOfReachError as error:
            answers |= dict.fromkeys(names, error)
    return answers


def _ask_broker(
    link: Connection, *, ask: Asked[_T], node: int, groups: Sequence[str]
) -> Mapping[str, _T | PlannerError]:
    return ask(link, node, groups)
