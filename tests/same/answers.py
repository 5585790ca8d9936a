"""Every answer that must not change, in groups: what is asked, and the text that comes back."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.every_forecast import requests
from planner.documents.allocation import answer as allocate
from planner.documents.crd import manifests
from planner.documents.forecast import forecast
from planner.documents.plan import PLAN
from planner.documents.policy import parse_policy
from planner.errors import PlannerError
from tests.conformance.store import all_records
from tests.oracles import topologies
from tests.oracles.kafka.requests import random_request
from tests.same.commands import OTHERS, PATHS, ROOT, golden, help_of, help_of_module, words_of_commands
from tests.same.mutations import wrong_versions
from tests.same.texts import sentences
from tests.unit.dynamics.small_groups import JOIN, client_id, kafka_request, rocketmq_request

ALLOCATIONS = 1_500
FEW = {"queues": 4, "clients": 2}
STRATEGIES = (*topologies.CLIENT_STRATEGIES, *topologies.OUR_STRATEGIES)


@dataclass(frozen=True, slots=True)
class Question:
    """Something that is asked once; ``ask`` yields the name and text of each answer, in the same order always."""

    group: str
    ask: Callable[[], Iterator[tuple[str, str]]]


def questions() -> Iterator[Question]:
    """Yield everything that is asked; the slow ones first, so that two processes end at once."""
    for system in PATHS:
        yield Question(f"recording, {system}", lambda system=system: golden(system))
    for name, request in requests():
        yield _one(
            f"kinds x groups, {name.partition(',')[0]}", name, lambda request=request: _document(forecast, request)
        )
    for record in all_records():
        yield _one(
            f"observations, {record.system}, {record.kind}",
            record.id,
            lambda record=record: _document(forecast, record.request),
        )
    yield from _wrong_forecasts()
    yield from _allocations()
    yield from _documents()
    for words in words_of_commands():
        yield _one("--help", words, lambda words=words: help_of(words))
    for module in OTHERS:
        yield _one("--help", module, lambda module=module: help_of_module(module))
    yield Question("sentences in the code", _sentences)


def _one(group: str, name: str, text: Callable[[], str]) -> Question:
    return Question(group, lambda: iter([(name, text())]))


def _document(ask: Callable[[Any], object], request: object) -> str:
    """Return the answer as canonical JSON, or the sentence that refuses the request."""
    try:
        return json.dumps(ask(request), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except PlannerError as refusal:
        return f"{type(refusal).__name__}: {refusal}"


def _refusals(
    group: str, right: str, ask: Callable[[Any], object], document: Any, under: Sequence[str] = ()
) -> Question:
    """Return the question what comes of each wrong version of the document that is named ``right``."""

    def answers() -> Iterator[tuple[str, str]]:
        for name, wrong in wrong_versions(document, tuple(under)):
            yield f"{right}: {name}", _document(ask, wrong)

    return Question(group, answers)


def _wrong_forecasts() -> Iterator[Question]:
    """Yield wrong requests of a join, everywhere, and of every other change, in the change."""
    for system, first, changes in (
        ("rocketmq", rocketmq_request(JOIN, **FEW, trials=1), _changes("RocketMQ, push, ")),
        ("kafka", kafka_request(JOIN, partitions=4, members=2, trials=1), _changes("Kafka, cooperative, ")),
    ):
        yield _refusals(f"refusals, forecast, {system}", "whole", forecast, first)
        for change in changes:
            wrong = {**first, "change": change}
            yield _refusals(f"refusals, forecast, {system}", change["kind"], forecast, wrong, ("change",))


def _changes(prefix: str) -> Iterator[dict[str, Any]]:
    """Yield the first change of every kind, for two members."""
    done = set()
    for name, request in requests():
        change = request["change"]
        if name.startswith(prefix) and change["kind"] not in done:
            done.add(change["kind"])
            known = [client_id(1)] if request["system"] == "rocketmq" else ["c1"]
            named = [client for client in change.get("clients", ()) if isinstance(client, str)]
            yield {**change, "clients": known} if named else change


def _allocations() -> Iterator[Question]:
    def rocketmq() -> Iterator[tuple[str, str]]:
        for number in range(ALLOCATIONS):
            yield f"{number}", _document(allocate, topologies.request(number, STRATEGIES))
            yield f"{number}, popping", _document(allocate, topologies.pop_request(number))

    def kafka() -> Iterator[tuple[str, str]]:
        for number in range(ALLOCATIONS):
            yield f"{number}", _document(allocate, random_request(number))

    yield Question("allocations, rocketmq", rocketmq)
    yield Question("allocations, kafka", kafka)
    for number in range(len(STRATEGIES)):
        request = topologies.request(number, STRATEGIES)
        yield _refusals("refusals, allocate", request["strategy"], allocate, request)
    yield _refusals("refusals, allocate", "kafka", allocate, random_request(0))


def _documents() -> Iterator[Question]:
    yield Question("custom resource definitions", manifests)
    for policy, _ in PATHS.values():
        document = yaml.safe_load((ROOT / "examples" / policy).read_text(encoding="utf-8"))
        yield _refusals("refusals, policy", policy, _read_policy, document)
    plan = yaml.safe_load(Path(__file__).with_name("plan.yaml").read_text(encoding="utf-8"))
    yield _refusals("refusals, plan", "plan", _read_plan, plan)


def _read_policy(document: object) -> None:
    parse_policy(json.dumps(document), "policy.yaml")


def _read_plan(document: Any) -> None:
    PLAN.parse(document, "plan.yaml")


def _sentences() -> Iterator[tuple[str, str]]:
    for (folder, text), times in sorted(Counter(sentences(ROOT)).items()):
        yield f"{folder}: {text}", str(times)
