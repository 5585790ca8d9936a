"""Which systems and clusters the policies name, read cheaply: a DAG file is parsed every half minute.

Nothing here may break the parse: a folder that is not there gives no tag, a file that is wrong leaves its own out. The
run names it with its reason.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from planner.documents.yaml import load_yaml
from planner.errors import DocumentError

MOST_FILES: Final = 50
"""Files that are read at most, the first by name: each costs every parse some milliseconds."""
MOST_BYTES: Final = 65_536
"""A larger file is no policy."""
SCHEME: Final = "k8s://"
RUNS: Final = "runs"
_RUN: Final = re.compile(r"\d{8}T\d{6}\.\d{3}Z")
LONGEST: Final = 100
"""Characters of a tag that Airflow takes."""


def policy_tags(policies: str | os.PathLike[str], data: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the systems and clusters that the policies name, in order, each once.

    ``policies`` is a folder, or ``k8s://NAMESPACE``: no parse asks a cluster, so there it is the policies that the last
    run has kept below the folder ``data``, where the DAG processor sees it.
    """
    folder = _kept_by_last_run(Path(data)) if str(policies).startswith(SCHEME) else Path(policies)
    return tuple(sorted({tag for path in _files(folder) for tag in _named(path)}))


def _kept_by_last_run(data: Path) -> Path:
    try:
        names = [path.name for path in (data / RUNS).iterdir() if _RUN.fullmatch(path.name)]
    except OSError:
        names = []
    return data / RUNS / max(names, default="none") / "policies"


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
