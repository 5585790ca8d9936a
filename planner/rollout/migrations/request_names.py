"""What is wrong with a request that no group could make right: names, counts and kinds, before anybody watches one."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from planner.allocation.plugins import is_path
from planner.allocation.registry import find_strategy
from planner.errors import BadInputError
from planner.rollout.migrations.kafka import JAVA_ASSIGNORS, SERVER_ASSIGNORS
from planner.rollout.migrations.requests import (
    AssignorRequest,
    ClusterRequest,
    ConsumerProtocolRequest,
    RenameRequest,
    Request,
    ResetRequest,
    ShrinkRequest,
    StrategyRequest,
)
from planner.rollout.plan import GroupRef
from planner.rollout.template import ContainerChange, TemplateChange

MOST_SURGE: Final = 10_000
MOST_QUEUES: Final = 65_536
"""As many as a topic may have on one broker, wherever they are read."""
MOST_OFFSET: Final = 2**63 - 1
YEARS: Final = range(2000, 3000)
SHOWN: Final = 40
"""Characters of a wrong value that its refusal repeats."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_QUEUES: Final = {"rocketmq": "orders/broker-a/3", "kafka": "orders/3"}

_Rule = tuple[re.Pattern[str], str]

_OBJECT: Final[_Rule] = (
    re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"),
    "a name of Kubernetes: small letters, digits, - and ., 253 at most",
)
_CONTAINER: Final[_Rule] = (
    re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"),
    "a container's name: small letters, digits and -, 63 at most",
)
_IMAGE: Final[_Rule] = (
    re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,511}"),
    "an image such as registry/shop:2, 512 characters at most",
)
_VARIABLE: Final[_Rule] = (re.compile(r"[!-<>-~]{1,253}"), "a variable's name without blank and =")
_KEY: Final[_Rule] = (
    re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"),
    "a key of Kubernetes such as zone or example.com/zone",
)
_LABEL: Final[_Rule] = (
    re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"),
    "a label's value: letters, digits, -, _ and ., 63 at most",
)
_TEXT: Final[_Rule] = (re.compile(r"(?=\S)[^\x00-\x1f\x7f-\x9f]{1,255}(?<=\S)"), "a name of 1 to 255 characters")
_TAGS: Final[_Rule] = (re.compile(r".{1,4096}"), "tags of 1 to 4096 characters")
_SYSTEM_NAMES: Final[dict[str, tuple[_Rule, _Rule]]] = {
    "rocketmq": (
        (re.compile(r"[%|A-Za-z0-9_-]{1,255}"), "a RocketMQ group: letters, digits, _, -, % and |, 255 at most"),
        (re.compile(r"[%|A-Za-z0-9_-]{1,127}"), "a RocketMQ topic: letters, digits, _, -, % and |, 127 at most"),
    ),
    "kafka": (
        _TEXT,
        (re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}"), "a Kafka topic: letters, digits, ., _ and -, 249 at most"),
    ),
}
"""System -> what it takes as the name of a group, and of a topic."""
_ONLY: Final[Mapping[type, tuple[str, str]]] = {
    StrategyRequest: ("rocketmq", "assignor or consumerProtocol"),
    ShrinkRequest: ("rocketmq", "another kind, as no partition of Kafka is ever taken away"),
    AssignorRequest: ("kafka", "strategy"),
    ConsumerProtocolRequest: ("kafka", "strategy"),
}
"""Kind -> the only system that has it, and what to ask for in the other."""


def check_names(request: Request) -> None:
    """Raise ``BadInputError`` for the first name or count that no broker and no API server would take."""
    for field, value, (pattern, expected) in _names(request):
        if not pattern.fullmatch(value) or not value.isprintable():
            raise _wrong(field, value, expected)
    for field, count, most in _counts(request):
        least = 0 if field == "to" else 1
        if not least <= count <= most:
            raise _wrong(field, count, f"{least} to {most}")
    if isinstance(time := getattr(request, "to", None), datetime) and time.year not in YEARS:
        raise _wrong("to", time.isoformat(), f"a time of the years {YEARS[0]} to {YEARS[-1]}")


def check_fit(request: Request, group: GroupRef, deployments: tuple[str, ...], now: datetime) -> None:
    """Raise for what policy and clock alone show not to fit: the policy's ``group`` and ``deployments``, and ``now``.

    ``BadInputError``, ``UnknownNameError`` for a strategy not known here.
    """
    only, instead = _ONLY.get(type(request), (group.system, ""))
    if group.system != only:
        raise BadInputError(f"field migration.kind: {request.kind} is not for {group.system}: ask for {instead}")
    if len(deployments) > 1:
        raise BadInputError(
            f"the group is split over {len(deployments)} Deployments: a migration changes one that runs all members"
        )
    if (green := getattr(request, "green", None)) in deployments:
        raise _wrong("green", green, "another Deployment than the one that it takes over from")
    _check_names_of_brokers(request, group)
    if isinstance(request, ResetRequest) and isinstance(request.to, datetime) and request.to > now:
        raise _wrong("to", request.to.isoformat(), "a time that has come, as no broker knows a later message")
    _check_strategy(request)


def _check_names_of_brokers(request: Request, group: GroupRef) -> None:
    of_group, of_topic = _SYSTEM_NAMES[group.system]
    if isinstance(request, ClusterRequest) and request.to == group.cluster:
        raise _wrong("to", request.to, "another cluster than the one where the group is")
    for field, value in _group_names(request):
        if value == group.group:
            raise _wrong(field, value, "another name than the group has")
        _check(field, value, of_group)
    for field, value in _topics(request):
        _check(field, value, of_topic)
    if (queue := getattr(request, "queue", None)) is not None:
        example = _QUEUES[group.system]
        topic, *_, number = queue.split("/") if "/" in queue else (queue, "")
        if queue.count("/") != example.count("/") or not _NUMBER.fullmatch(number):
            raise _wrong("queue", queue, f"a queue such as {example}")
        _check("queue", topic, of_topic)


def _check(field: str, value: str, rule: _Rule) -> None:
    if not rule[0].fullmatch(value):
        raise _wrong(field, value, rule[1])


def _check_strategy(request: Request) -> None:
    if isinstance(request, StrategyRequest):
        try:
            find_strategy(request.to, request.options)
        except BadInputError:
            if is_path(request.to):
                raise _wrong("to", request.to, "a strategy's name: a request brings no Python file") from None
            raise
    known = {AssignorRequest: tuple(JAVA_ASSIGNORS), ConsumerProtocolRequest: SERVER_ASSIGNORS}.get(type(request))
    if known and isinstance(request, AssignorRequest | ConsumerProtocolRequest) and request.to not in known:
        raise _wrong("to", request.to, f"one of {', '.join(known)}")


def _names(request: Request) -> Iterator[tuple[str, str, _Rule]]:
    """Yield each name of a request with its field and its rule."""
    for field, rule in (("green", _OBJECT), ("room", _TEXT), ("new_group", _TEXT), ("topic", _TEXT), ("queue", _TEXT)):
        if (value := getattr(request, field, None)) is not None:
            yield field.replace("new_group", "newGroup"), value, rule
    if isinstance(to := getattr(request, "to", None), str):
        yield "to", to, _TEXT
    elif isinstance(to, dict):
        yield from (("to", topic, _TEXT) for topic in to)
        yield from (("to", tags, _TAGS) for tags in to.values())
    if (variable := getattr(request, "variable", None)) is not None:
        yield "variable.container", variable.container, _CONTAINER
        yield "variable.name", variable.name, _VARIABLE
    if (change := getattr(request, "change", None)) is not None:
        yield from _changed(change)


def _changed(change: TemplateChange) -> Iterator[tuple[str, str, _Rule]]:
    for number, container in enumerate(change.containers):
        yield from _in_container(f"change.containers.{number}", container)
    yield from (("change.annotations", setting.name, _KEY) for setting in change.annotations)
    for setting in change.node_labels:
        yield "change.nodeLabels", setting.name, _KEY
        yield "change.nodeLabels", setting.value, _LABEL


def _in_container(field: str, change: ContainerChange) -> Iterator[tuple[str, str, _Rule]]:
    yield f"{field}.container", change.container, _CONTAINER
    if change.image is not None:
        yield f"{field}.image", change.image, _IMAGE
    yield from ((f"{field}.env", setting.name, _VARIABLE) for setting in change.env)
    yield from ((f"{field}.removedEnv", name, _VARIABLE) for name in change.removed_env)


def _counts(request: Request) -> Iterator[tuple[str, int, int]]:
    """Yield each number of a request with its field and the most that it may be."""
    bounds = {"surge": MOST_SURGE, "queues": MOST_QUEUES, "consumers": MOST_QUEUES, "to": MOST_OFFSET}
    for field, most in bounds.items():
        if isinstance(value := getattr(request, field, None), int):
            yield field, value, most


def _group_names(request: Request) -> Iterator[tuple[str, str]]:
    if isinstance(request, RenameRequest):
        yield "to", request.to
    if (new_group := getattr(request, "new_group", None)) is not None:
        yield "newGroup", new_group


def _topics(request: Request) -> Iterator[tuple[str, str]]:
    if (topic := getattr(request, "topic", None)) is not None:
        yield "topic", topic
    if isinstance(to := getattr(request, "to", None), dict):
        yield from (("to", name) for name in to)


def _wrong(field: str, value: object, expected: str) -> BadInputError:
    text = repr(value)
    short = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
    return BadInputError(f"field migration.{field}: found {short}, expected {expected}")
