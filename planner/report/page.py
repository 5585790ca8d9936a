"""``template``: a page's template with the words that it may use."""

from collections.abc import Callable
from functools import cache
from typing import Any

from planner.report import words
from planner.report.extra import load
from planner.text.printable import printable


def template(name: str, filters: tuple[str, ...], **others: Callable[..., str]) -> Any:
    """Return the Jinja template of that name: ``filters`` are functions of ``words``, ``others`` its own.

    Everything is escaped, and a name that is not there is an error. Raises ``MissingExtraError`` without the extra.
    """
    load("jinja2")
    return _environment(filters, tuple(others.items())).get_template(name)


@cache
def _environment(filters: tuple[str, ...], others: tuple[tuple[str, Callable[..., str]], ...]) -> Any:
    """Return one environment for all pages of a kind: it compiles a template once, which takes as long as a page."""
    jinja2 = load("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("planner.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters.update({**{name: getattr(words, name) for name in filters}, **dict(others)})
    return environment


def _visible(value: Any) -> Any:
    """Return a value of the page, its control characters visible; text that is HTML already stays HTML."""
    return type(value)(printable(value)) if isinstance(value, str) else value
