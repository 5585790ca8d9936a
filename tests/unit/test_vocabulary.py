"""No room that is done names a thing by a word of the old dialect; docs/glossary.md has the words to use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DONE = (
    "planner/allocation",
    "planner/diagnosis",
    "planner/execution",
    "planner/forecast",
    "planner/history",
    "planner/inference",
    "planner/model",
    "planner/snapshot",
    "planner/sources",
    "planner/verification",
    "planner/workload",
)
"""Grows room by room, until it is everything in ``planner``, ``spark_apps`` and ``dags``."""


def _set_of(words: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", words))


REFUSED = _set_of(
    "again asleep awake book course found ground held hold holds life lives look looks one part parts picture place "
    "places roster rosters said says scene seen sees sheet sight spread spreads told tell tells torn traits turn turns "
    "twice untold wake wakes wanted way ways who whose woken world worlds there"
)
"""Each stands for several ideas: see the glossary for the noun that is meant. Whole words of a name are refused."""

REFUSED_OF = {
    "planner/forecast/kafka": _set_of("deaf dropped gained heard heir heirs hosted loses"),
    "planner/forecast/rocketmq": _set_of("severed tables"),
}
"""Where the system has a word of its own: rejoin notified, missed sync, fenced, revoked, assigned; registrations."""

OF_OTHER_ROOMS = {"Ground", "Wanted", "one_line", "parts", "place"}
"""``GroupSnapshot.parts``, which JSON has, and names that rooms which are not done give or use."""

UPSTREAM = {"FileNotFoundError", "NOT_FOUND", "QUERY_NOT_FOUND", "QUERY_TOPIC_CONSUME_BY_WHO"}
"""Of Python, HTTP and RocketMQ."""

GIVEN_TO = {
    "planner/diagnosis": _set_of("looks Ground"),
    "planner/execution": _set_of("held seen seen_at last_look_at tell_moves tell_step"),
    "planner/verification": _set_of("seen_low seen_high"),
}
"""More of the kind, by room: fields of documents as they are stored, and what rooms that are not done give it."""


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
    for path in sorted((ROOT / room).rglob("*.py")):
        place = path.relative_to(ROOT)
        old += [f"{place}: the file's name"] if refused.intersection(words(path.stem)) else []
        lines = old_names(path.read_text(encoding="utf-8"), refused)
        given = OF_OTHER_ROOMS | UPSTREAM | GIVEN_TO.get(room, frozenset())
        old += [f"{place}:{line}: {name}" for line, name in lines if name not in given]
    assert old == [], "name the thing itself: docs/glossary.md"
