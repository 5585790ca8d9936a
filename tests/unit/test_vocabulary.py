"""No room that is done names a thing by a word of the old dialect; docs/glossary.md has the words to use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DONE = (
    "dags",
    "planner/*.py",
    "planner/advice",
    "planner/allocation",
    "planner/approval",
    "planner/backtest",
    "planner/cli",
    "planner/controller",
    "planner/decision",
    "planner/demand",
    "planner/deployments",
    "planner/diagnosis",
    "planner/documents",
    "planner/execution",
    "planner/forecast",
    "planner/history",
    "planner/inference",
    "planner/model",
    "planner/orchestration",
    "planner/policies",
    "planner/report",
    "planner/rollout",
    "planner/runs",
    "planner/simulation",
    "planner/snapshot",
    "planner/sources",
    "planner/storage",
    "planner/text",
    "planner/verification",
    "planner/workload",
    "spark_apps",
)
"""Grows room by room, until it is everything in ``planner``, ``spark_apps`` and ``dags``."""


def _set_of(words: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", words))


REFUSED = _set_of(
    "again asleep awake book course found ground held hold holds life lives look looks one part parts picture place "
    "places roster rosters said says scene seen sees sheet sight spread spreads told tell tells torn traits turn turns "
    "twice untold wake wakes wanted way ways who whose woken world worlds there "
    "board consent plant"
)
"""Each stands for several ideas: see the glossary for the noun that is meant. Whole words of a name are refused."""

REFUSED_OF = {
    "planner/forecast/kafka": _set_of("deaf dropped gained heard heir heirs hosted loses"),
    "planner/forecast/rocketmq": _set_of("severed tables"),
}
"""Where the system has a word of its own: rejoin notified, missed sync, fenced, revoked, assigned; registrations."""

OF_OTHER_ROOMS = {"one_line", "parts", "place"}
"""Names that rooms which are not done give or use: ``MessageQueue.place``; ``GroupSnapshot.parts`` is in JSON."""

UPSTREAM = _set_of(
    "AirflowNotFoundException FileNotFoundError NOT_FOUND PackageNotFoundError QUERY_NOT_FOUND "
    "QUERY_TOPIC_CONSUME_BY_WHO"
)
"""Of Python, HTTP, Airflow and RocketMQ."""

THE_DECISION = _set_of(
    "HOLD_RUNS HoldCause HoldReason _hold _of_hold as_hold explain_hold first_reason_to_hold held_since hold "
    "hold_cause hold_reasons hold_runs holds is_hold"
)
"""The decision to change nothing is a hold: see the glossary."""

OF_STATUS = _set_of("held seen seen_at last_look_at next_look_at")
"""Fields of a plan's status, as they are stored."""

ALLOWED_IN = {
    "planner/cli": OF_STATUS,
    "planner/controller": OF_STATUS,
    "planner/deployments": OF_STATUS | _set_of("look"),
    "planner/diagnosis": _set_of("looks"),
    "planner/documents": _set_of("next_look_at"),
    "planner/execution": OF_STATUS | _set_of("tell_moves tell_step"),
    "planner/policies": _set_of("next_look_at"),
    "planner/report": _set_of("course ground held picture said seen seen_high seen_low tell_moves told twice"),
    "planner/rollout": _set_of("tell_moves tell_step ways"),
    "planner/verification": _set_of("seen_low seen_high"),
}
"""What stays in one room: names that rooms which are not done give or use, fields of documents, of pages' templates."""


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every name with its line: variables, attributes, arguments, functions, classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def words(name: str) -> list[str]:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_")


def old_names(code: str, refused: frozenset[str]) -> list[tuple[int, str]]:
    return sorted({(line, name) for line, name in names(ast.parse(code)) if refused.intersection(words(name))})


def test_a_word_of_the_dialect_is_seen_in_whatever_is_named() -> None:
    code = (
        "class World:\n    a_life: int\ndef f(told: int) -> None:\n    found = told.heldBack\n    f(part=foundation)\n"
    )
    seen = [name for _, name in old_names(code, REFUSED)]
    assert seen == ["World", "a_life", "told", "found", "heldBack", "told", "part"]


def test_every_path_in_the_glossary_is_there() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:planner|spark_apps|dags)/[\w/.]+)`", page)
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("room", [*DONE, *REFUSED_OF])
def test_no_name_is_of_the_old_dialect(room: str) -> None:
    refused, old = REFUSED_OF.get(room, REFUSED), []
    allowed = OF_OTHER_ROOMS | UPSTREAM | THE_DECISION | ALLOWED_IN.get(room, frozenset())
    for path in sorted(ROOT.glob(room) if "*" in room else (ROOT / room).rglob("*.py")):
        file = path.relative_to(ROOT)
        is_old = path.stem not in allowed and refused.intersection(words(path.stem))
        old += [f"{file}: the file's name"] if is_old else []
        lines = old_names(path.read_text(encoding="utf-8"), refused)
        old += [f"{file}:{line}: {name}" for line, name in lines if name not in allowed]
    assert old == [], "name the thing itself: docs/glossary.md"
