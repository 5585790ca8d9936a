"""``template``: a page's template with the words that it may use."""

from collections.abc import Callable, Mapping
from typing import Any

from planner.printable import printable
from planner.report import words
from planner.report.extra import load


def template(name: str, filters: tuple[str, ...], **others: Callable[..., str]) -> Any:
    """Return the Jinja template of that name: ``filters`` are functions of ``words``, ``others`` its own.

    Everything is escaped, and a name that is not there is an error. Raises ``MissingExtraError`` without the extra.
    """
    jinja2 = load("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("planner.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    known: Mapping[str, Callable[..., str]] = {name: getattr(words, name) for name in filters}
    environment.filters.update({**known, **others})
    return environment.get_template(name)


def _visible(value: Any) -> Any:
    """Return a value of the page, its control characters visible; text that is HTML already stays HTML."""
    return type(value)(printable(value)) if isinstance(value, str) else value
