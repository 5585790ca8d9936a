"""``python -m scripts.yardstick``: what can be counted of the structure; figures of issue notes come from here.

Lines, long modules, long or branching functions, forks by system, sites that ask which kind of change or step
something is, and words of the old dialect. It measures and refuses nothing: ``tests/unit/test_systems.py`` and
``tests/unit/test_vocabulary.py`` refuse forks and old words. That a sample has, or lacks, what one system alone reports
(``sample.kafka``) is no fork by name or class, and is not counted.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from tests.unit.test_systems import ALLOWED, common_files, forks
from tests.unit.test_vocabulary import ALLOWED_IN, DONE, OF_OTHER_ROOMS, REFUSED, THE_DECISION, UPSTREAM, old_names

ROOT = Path(__file__).parents[1]
PRODUCT = ("planner", "spark_apps", "dags")
FOLDERS = (*PRODUCT, "tests", "benchmarks", "scripts")
LONG_MODULE, LONG_FUNCTION, BRANCHING = 400, 40, 15
KINDS = (*ROOT.glob("planner/forecast/*/request/changes.py"), ROOT / "planner/rollout/steps/__init__.py")
"""Where unions of classes say what a change and a step are."""

BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)


@dataclass(frozen=True, slots=True)
class Function:
    """One function: where it is, how many lines it has without its docstring, and how many paths lead through it."""

    place: str
    lines: int
    paths: int


def main() -> None:
    """Print the figures."""
    for folder in FOLDERS:
        sizes = {path: lines_of(path) for path in sources(folder)}
        print(f"{folder}: {sum(sizes.values()):,} lines in {len(sizes)} modules")
    product = [path for folder in PRODUCT for path in sources(folder)]
    show(
        f"modules over {LONG_MODULE} lines",
        [f"{named(path)}: {lines_of(path)}" for path in product if lines_of(path) > LONG_MODULE],
    )
    of_product = [function for path in product for function in functions(path)]
    print(f"{len(of_product):,} functions, the median one of {median(each.lines for each in of_product):g} lines")
    show(
        f"functions over {LONG_FUNCTION} lines",
        [f"{each.place}: {each.lines}" for each in of_product if each.lines > LONG_FUNCTION],
    )
    show(
        f"functions with more than {BRANCHING} paths",
        [f"{each.place}: {each.paths}" for each in of_product if each.paths > BRANCHING],
    )
    show("forks by system outside sources and the systems' own files", list(forks_by_system()))
    counts = Counter(named(path) for path in product for _ in dispatches(path))
    show(
        f"modules that ask for the kind of a change or step, {sum(counts.values())} sites",
        [f"{name}: {count}" for name, count in counts.most_common()],
    )
    show("words of the old dialect", list(old_words()))


def show(title: str, lines: Sequence[str]) -> None:
    """Print how many there are, and each in a line of its own."""
    print(f"{title}: {len(lines)}", *lines, sep="\n  ")


def sources(folder: str) -> list[Path]:
    """Return the Python files of a folder, in order."""
    return sorted((ROOT / folder).rglob("*.py"))


def named(path: Path) -> str:
    """Return the path as seen from the repository."""
    return path.relative_to(ROOT).as_posix()


def lines_of(path: Path) -> int:
    """Return how many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path: Path) -> Iterator[Function]:
    """Yield the functions of a file, methods and inner ones among them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            lines = (node.end_lineno or node.lineno) - first.lineno + 1
            yield Function(f"{named(path)}:{node.lineno} {node.name}", lines, paths_through(node))


def paths_through(function: ast.AST) -> int:
    """Return McCabe's number: one, and one for each branch, loop and further operand of a condition."""
    nodes = list(ast.walk(function))
    operands = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + sum(isinstance(node, BRANCHES) for node in nodes) + operands


def forks_by_system() -> Iterator[str]:
    """Yield each fork with the reason why it is allowed."""
    for path in common_files():
        for line, text in forks(ast.parse(path.read_text(encoding="utf-8"))):
            yield f"{named(path)}:{line}: {text} ({ALLOWED.get(named(path), 'not allowed')})"


def dispatches(path: Path) -> Iterator[int]:
    """Yield the line of each check of a class among ``KINDS``: ``isinstance`` and patterns of ``match``."""
    kinds = {name for file in KINDS for name in united(file)}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
                asked = {each.id for each in ast.walk(classes) if isinstance(each, ast.Name)}
            case ast.MatchClass(cls=ast.Name(id=name)):
                asked = {name}
            case _:
                continue
        if asked & kinds:
            yield node.lineno


@cache
def united(path: Path) -> frozenset[str]:
    """Return the names of the classes, and of the unions, of which a file makes unions: ``Change = Join | Leave``."""
    unions = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    of_classes = [node for node in unions if isinstance(node.value, ast.BinOp)]
    return frozenset(each.id for node in of_classes for each in ast.walk(node) if isinstance(each, ast.Name))


def old_words() -> Iterator[str]:
    """Yield each name that holds a word of the old dialect, as the test that refuses them sees it."""
    for room in DONE:
        allowed = OF_OTHER_ROOMS | UPSTREAM | THE_DECISION | ALLOWED_IN.get(room, frozenset())
        for path in ROOT.glob(room) if "*" in room else (ROOT / room).rglob("*.py"):
            for line, name in old_names(path.read_text(encoding="utf-8"), REFUSED):
                if name not in allowed:
                    yield f"{named(path)}:{line}: {name}"


if __name__ == "__main__":
    main()
