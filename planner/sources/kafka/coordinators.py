"""Asking about groups over our own connections: each group's coordinator, many groups in one request."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from planner.errors import OutOfReachError, PlannerError
from planner.sources.kafka import requests
from planner.sources.kafka.connection import Address, Connection
from planner.sources.kafka.errors import answer_error
from planner.sources.kafka.library import in_parts
from planner.sources.kafka.links import Links

_T = TypeVar("_T")
_TOGETHER: Final = 200  # groups in one request
_NOT_COORDINATOR: Final = 16

Asked = Callable[[Connection, int, Sequence[str]], Mapping[str, _T | PlannerError]]
"""What one broker, the coordinator of some groups, says of each of them: connection, its number, the groups."""


def ask_coordinators(links: Links, groups: Sequence[str], ask: Asked[_T]) -> dict[str, _T | PlannerError]:
    """Return what each group's coordinator says of it, or the error that stands in its way."""
    found: dict[str, _T | PlannerError] = {}
    for part in in_parts(sorted(set(groups)), _TOGETHER):
        found |= _asked(links, part, ask)
        moved = [group for group in part if _has_moved(found[group])]
        if moved:  # its coordinator changed between the two requests: once more, as clients do
            found |= _asked(links, moved, ask)
    return found


def _has_moved(answer: object) -> bool:
    return getattr(answer, "code", None) == _NOT_COORDINATOR


def _asked(links: Links, groups: Sequence[str], ask: Asked[_T]) -> dict[str, _T | PlannerError]:
    coordinators = links.anywhere(
        lambda link: link.ask(requests.FIND_COORDINATOR, requests.coordinators_request(tuple(groups)))
    )
    found: dict[str, _T | PlannerError] = {}
    at: dict[tuple[int, Address], list[str]] = defaultdict(list)
    for one in coordinators:
        if one.code:
            found[one.group] = answer_error(f"group {one.group}, its coordinator", one.code, one.remark)
        else:
            at[one.node, Address(one.host, one.port)].append(one.group)
    for (node, address), names in at.items():
        try:
            found |= links.at(address, partial(_one_broker, ask=ask, node=node, groups=names))
        except OutOfReachError as error:
            found |= dict.fromkeys(names, error)
    return found


def _one_broker(
    link: Connection, *, ask: Asked[_T], node: int, groups: Sequence[str]
) -> Mapping[str, _T | PlannerError]:
    return ask(link, node, groups)
