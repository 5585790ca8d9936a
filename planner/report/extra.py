"""The optional dependencies of the report, asked for only when a page is made."""

from importlib import import_module
from types import ModuleType
from typing import Any

from planner.errors import MissingExtraError


def load(module: str) -> ModuleType:
    """Return the module. Raises ``MissingExtraError`` when it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"the report ({module})", "report") from error


def vegalite_to_svg(spec: dict[str, Any]) -> str:
    """Return the specification drawn as SVG."""
    return str(load("vl_convert").vegalite_to_svg(spec))
