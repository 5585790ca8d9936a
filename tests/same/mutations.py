"""Wrong requests, made from right ones: each field left out, each replaced by values that no reader should take."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

Document = dict[str, Any]
Path = tuple[str | int, ...]

WRONG: Sequence[object] = (None, "?", -1, True, [], {}, 1e12)
EXTRA = "surprise"


def wrong_versions(document: Document, under: Path = ()) -> Iterator[tuple[str, Document]]:
    """Yield each wrong document with a name that says what is wrong with it, below ``under`` only."""
    for path in _paths(_at(document, under), under):
        for value in WRONG:
            yield f"{_name(path)} = {value!r}", _with(document, path, value)
        if isinstance(path[-1], str):
            yield f"{_name(path)} left out", _without(document, path)
    yield f"{_name((*under, EXTRA))} added", _with(document, (*under, EXTRA), 1)


def _paths(value: object, path: Path) -> Iterator[Path]:
    """Yield the path of everything inside; of a list the first element alone."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, child in inside:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def _with(document: Document, path: Path, value: object) -> Document:
    changed = copy.deepcopy(document)
    _at(changed, path[:-1])[path[-1]] = value
    return changed


def _without(document: Document, path: Path) -> Document:
    changed = copy.deepcopy(document)
    del _at(changed, path[:-1])[path[-1]]
    return changed


def _name(path: Path) -> str:
    return ".".join(map(str, path))
