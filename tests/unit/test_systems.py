"""RocketMQ and Kafka are systems with files of their own: no other room asks which of them a group runs on.

A fork by a system's name, or by the class of a queue or member, would have to be found for every further system. Facts
stand in ``planner/model/systems.py``; behaviour in each room's folder of the system.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.model.systems import SYSTEMS

ROOT = Path(__file__).parents[2]
OF_ONE_SYSTEM = (
    "planner/*/rocketmq/**/*.py",
    "planner/*/kafka/**/*.py",
    "planner/**/rocketmq.py",
    "planner/**/kafka.py",
    "planner/sources/**/*.py",
)
ALLOWED = {
    "planner/model/queues.py": "the classes themselves, and what filters by them",
    "planner/model/membership.py": "the classes themselves, and what filters by them",
}
CLASSES = {"MessageQueue", "TopicPartition", "Member", "KafkaMember"}


def forks(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every comparison with a system's name, and of every check of a class of ``CLASSES``."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare() if any(
                isinstance(operand, ast.Constant) and operand.value in SYSTEMS
                for operand in (node.left, *node.comparators)
            ):
                yield node.lineno, ast.unparse(node)
            case ast.MatchValue(value=ast.Constant(value=str(name))) if name in SYSTEMS:
                yield node.lineno, f"case {name!r}"
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]) if CLASSES & {
                name.id for name in ast.walk(classes) if isinstance(name, ast.Name)
            }:
                yield node.lineno, ast.unparse(node)
            case ast.MatchClass(cls=ast.Name(id=name)) if name in CLASSES:
                yield node.lineno, f"case {name}()"


def common_files() -> Iterator[Path]:
    own = {path for pattern in OF_ONE_SYSTEM for path in ROOT.glob(pattern)}
    for room in ("planner", "spark_apps", "dags"):
        yield from (path for path in sorted((ROOT / room).rglob("*.py")) if path not in own)


def test_no_room_forks_by_the_system() -> None:
    shown = [
        f"{name}:{line}: {text}"
        for path in common_files()
        if (name := path.relative_to(ROOT).as_posix()) not in ALLOWED
        for line, text in forks(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert shown == []


@pytest.mark.parametrize(
    "code",
    [
        "if group.system == 'kafka': pass",
        "x = 1 if 'rocketmq' != snapshot.system else 2",
        "isinstance(queue, MessageQueue)",
        "[member for member in members if isinstance(member, KafkaMember)]",
        "isinstance(state.queue, (int, TopicPartition))",
        "match system:\n    case 'kafka': pass",
        "match queue:\n    case MessageQueue(): pass",
    ],
)
def test_a_fork_is_found_however_it_is_written(code: str) -> None:
    assert len(list(forks(ast.parse(code)))) == 1


@pytest.mark.parametrize("path", sorted(ALLOWED))
def test_what_is_allowed_is_needed(path: str) -> None:
    assert list(forks(ast.parse((ROOT / path).read_text(encoding="utf-8"))))
