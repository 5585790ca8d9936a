"""Which systems and clusters the policies of a folder name, read cheaply: a DAG file is parsed every half minute.

Nothing here may break the parse: a folder that is not there gives no tag, a file that is wrong leaves its own out. The
run names it with its reason.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from planner.documents.yaml import load_yaml
from planner.errors import DocumentError

MOST_FILES: Final = 50
"""Files that are read at most, the first by name: each costs every parse some milliseconds."""
MOST_BYTES: Final = 65_536
"""A larger file is no policy."""
LONGEST: Final = 100
"""Characters of a tag that Airflow takes."""


def policy_tags(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the systems and clusters that policy files in the folder name, in order, each once."""
    return tuple(sorted({tag for path in _files(Path(folder)) for tag in _named(path)}))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))[:MOST_FILES]
    except OSError:
        return []


def _named(path: Path) -> Iterator[str]:
    source = _source(path)
    for name in (source.get("system"), source.get("cluster")):
        if isinstance(name, str) and 0 < len(name) <= LONGEST:
            yield name


def _source(path: Path) -> Mapping[str, Any]:
    """Return ``spec.source`` of the file, nothing where there is none or the file cannot be read."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return {}
        document: Any = load_yaml(path.read_text(encoding="utf-8"), str(path))
        source = document["spec"]["source"]
    except (OSError, UnicodeDecodeError, DocumentError, KeyError, TypeError):
        return {}
    return source if isinstance(source, Mapping) else {}
