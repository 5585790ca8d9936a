"""Where a user's own strategies and assignors are found: by path to a ``.py`` file, or by entry point.

The one module of this room that reads anything: it runs the user's code, with the rights of the caller.
"""

import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from planner.allocation.custom import CheckedStrategy
from planner.errors import BadInputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINTS = "consumer_planner.strategies"
ASSIGNOR_ENTRY_POINTS = "consumer_planner.assignors"
FILES_VARIABLE = "PLANNER_STRATEGY_FILES"
"""The administrator's list of files, or folders, whose strategies any document may name; split as ``PATH`` is."""

_allowed: set[Path] = set()


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a user may bring: the method of their class, how it is called, the example, and its entry point group."""

    noun: str
    method: str
    call: str
    example: str
    entry_points: str


STRATEGY = Plugin(
    "strategy", "allocate", "allocate(client, queues, clients)", "examples/custom_strategy.py", ENTRY_POINTS
)
ASSIGNOR = Plugin(
    "assignor", "assign", "assign(members, partitions, racks)", "examples/custom_assignor.py", ASSIGNOR_ENTRY_POINTS
)


def is_path(name: str) -> bool:
    """True for ``strategy.py`` and ``folder/strategy.py:ClassName``."""
    return name.endswith(".py") or ".py:" in name


def allow(name: str | None) -> None:
    """Let the file of a strategy run that a person has named as a command's option; other names change nothing."""
    if name is not None and is_path(name):
        _allowed.add(_file_of(name).resolve())


def check_allowed(name: str) -> None:
    """Raise ``BadInputError`` for a file that neither a command's option nor the administrator named.

    Policies, snapshots, plans and requests come from others: what they name is not run with our rights.
    """
    path = _file_of(name).resolve()
    listed = (Path(entry).resolve() for entry in os.environ.get(FILES_VARIABLE, "").split(os.pathsep) if entry)
    if path not in _allowed and not any(path.is_relative_to(entry) for entry in listed):
        raise BadInputError(
            f"strategy {name}: a document names a Python file, and is not to decide what runs here: install it as an "
            f"entry point ({ENTRY_POINTS}; Kafka: {ASSIGNOR_ENTRY_POINTS}), or allow it by "
            f"{FILES_VARIABLE}={path}"
        )


def _file_of(name: str) -> Path:
    stem, _, class_name = name.partition(".py:")
    return Path(f"{stem}.py" if class_name else name)


def from_path(name: str, options: Mapping[str, Any]) -> CheckedStrategy:
    """Return the strategy of ``file.py`` (its only class with ``allocate``) or ``file.py:ClassName``."""
    return build(*class_from_path(name, STRATEGY), options)


def from_entry_point(name: str, options: Mapping[str, Any]) -> CheckedStrategy | None:
    """Return the installed strategy of that entry point name, ``None`` when there is none."""
    installed = class_from_entry_point(name, STRATEGY)
    return None if installed is None else build(*installed, options)


def class_from_path(name: str, plugin: Plugin) -> tuple[Any, str]:
    """Return the user's class of ``file.py`` (its only one with the method) or ``file.py:ClassName``, and the file."""
    _, _, class_name = name.partition(".py:")
    path = _file_of(name)
    module = _load(path)
    if not class_name:
        return _only_class(module, path, plugin), str(path)
    kind = getattr(module, class_name, None)
    if not inspect.isclass(kind):
        raise BadInputError(f"{plugin.noun} {name}: found no class {class_name} in {path}, expected one there")
    return kind, str(path)


def class_from_entry_point(name: str, plugin: Plugin) -> tuple[Any, str] | None:
    """Return the installed class of that entry point name and where it is, ``None`` when there is none."""
    for entry_point in _entry_points(plugin).select(name=name):
        try:
            return entry_point.load(), entry_point.value
        except Exception as error:
            raise BadInputError(
                f"{plugin.noun} {name} (entry point {entry_point.value}) cannot be loaded: {error}"
            ) from error
    return None


def installed_names(plugin: Plugin = STRATEGY) -> list[str]:
    """Return the entry point names of installed strategies, or of installed assignors."""
    return sorted(entry_point.name for entry_point in _entry_points(plugin))


def _entry_points(plugin: Plugin) -> "EntryPoints":
    return _entry_points_below(tuple(sys.path), plugin.entry_points)


@lru_cache(maxsize=8)
def _entry_points_below(_: tuple[str, ...], group: str) -> "EntryPoints":
    """Return those of the packages on this path: to read the metadata of some hundred takes most of a second."""
    from importlib.metadata import entry_points  # noqa: PLC0415  it brings mail and sockets, for a rare need

    return entry_points(group=group)


def build(kind: Any, where: str, options: Mapping[str, Any]) -> CheckedStrategy:
    """Return an instance of the class, its options as keyword arguments, behind checks."""
    user = instance(kind, options, where, STRATEGY)
    return CheckedStrategy(user, is_positional=getattr(user, "is_positional", False) is True)


def instance(kind: Any, options: Mapping[str, Any], where: str, plugin: Plugin) -> Any:
    """Return an instance of the user's class, its options as keyword arguments; it has a name and the method."""
    try:
        user = kind(**options)
    except Exception as error:
        raise BadInputError(f"options: {plugin.noun} {where} does not take {sorted(options)}: {error}") from error
    if not isinstance(getattr(user, "name", None), str) or not callable(getattr(user, plugin.method, None)):
        raise BadInputError(
            f"{plugin.noun} {where}: class {type(user).__name__} needs a name and a method {plugin.call}; "
            f"{plugin.example} shows both"
        )
    return user


def _load(path: Path) -> ModuleType:
    """Return the file as a module; loaded once for each content, so that a changed file is read again."""
    try:
        digest = sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise BadInputError(f"strategy file {path} cannot be read: {error.strerror}; check the path") from error
    name = f"planner_custom_strategy_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInputError(f"strategy file {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadInputError(f"strategy file {path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _only_class(module: ModuleType, path: Path, plugin: Plugin) -> Any:
    kinds = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and callable(getattr(kind, plugin.method, None))
    ]
    if len(kinds) != 1:
        names = ", ".join(kind.__name__ for kind in kinds) or "none"
        raise BadInputError(
            f"{plugin.noun} file {path}: found {names} with a method {plugin.method}, expected one; name it as "
            f"{path}:ClassName"
        )
    return kinds[0]
