"""What the requests of ``planner allocate`` and ``planner forecast`` share: how a wrong one is refused.

A field's description says what it holds, and is what the refusal expects. A part without a description is spoken of by
what it is part of: the number in ``["t0", -1]`` by the partition.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from planner.allocation import fields
from planner.documents.format import UNKNOWN_FIELD, below, known_fields
from planner.errors import BadInputError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

OF_A_KEY = "[key]"
"""What pydantic puts behind the key of an object that is itself wrong."""


class RequestModel(BaseModel):
    """Part of a request: an unknown name is refused. It is built when it is first read, as each command reads few."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


Model = TypeVar("Model", bound=RequestModel)


def at_most(count: int) -> BeforeValidator:
    """Refuse a list of more entries before the first of them is looked at."""

    def check(value: object) -> object:
        if isinstance(value, list) and len(value) > count:
            raise PydanticCustomError("too_long", "at most {max_length} entries", {"max_length": count})
        return value

    return BeforeValidator(check)


def validated(model: type[Model], document: object, place: str = "") -> Model:
    """Return the document, which stands at ``place`` of a request, as its model.

    Raises ``BadInputError`` naming the first wrong field, found and expected.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False), (place, document), _schema(model)) from error


@cache
def _schema(model: type[RequestModel]) -> Mapping[str, Any]:
    """Return a model's schema: making it takes a hundred times as long as reading a request."""
    return model.model_json_schema()


def _refusal(errors: "Sequence[ErrorDetails]", whole: tuple[str, object], schema: Mapping[str, Any]) -> BadInputError:
    """Return the complaint about a name that is not known, else about one that is missing, else the first."""
    first = min(errors, key=lambda error: (error["type"] not in UNKNOWN_FIELD, error["type"] != "missing"))
    *around, last = path = first["loc"] or ("",)
    if first["type"] in UNKNOWN_FIELD:
        known = known_fields(schema, [str(step) for step in around])
        return fields.refusal(_described(around, whole, schema)[0], last, f"one of {', '.join(known)}")
    if last == OF_A_KEY:
        *holder, key = around
        return fields.refusal(_described(holder, whole, schema)[0], key, _keys(schema, holder))
    place, value, expected = _described(path if first["loc"] else (), whole, schema)
    if first["type"] == "missing" and isinstance(last, str):
        return fields.missing(place, expected)
    if first["type"] == "too_long":
        return BadInputError(
            f"{place}: found {len(value)} entries, expected at most {first['ctx']['max_length']} in one request"
        )
    return fields.refusal(place, value, expected or first["msg"])


def _described(
    path: "Sequence[int | str]", whole: tuple[str, object], schema: Mapping[str, Any]
) -> tuple[str, Any, str]:
    """Return the innermost described part on the path: its place as a user writes it, its value, its description."""
    nodes: Sequence[Mapping[str, Any]] = [schema]
    place, value = whole
    described: tuple[str, Any, str] = (place or "request", value, "")
    for step in path:
        place += _spelled(step, nodes, "." if place else "")
        nodes, value = below(schema, nodes, str(step)), _inside(value, step)
        words = next((node["description"] for node in nodes if "description" in node), None)
        described = described if words is None else (place, value, words)
    return described


def _spelled(step: "int | str", nodes: "Sequence[Mapping[str, Any]]", dot: str) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f"{dot}{step}" if any(step in node.get("properties", {}) for node in nodes) else f"[{step!r}]"


def _inside(value: Any, step: "int | str") -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):  # what is missing has no value
        return None


def _keys(schema: Mapping[str, Any], path: "Sequence[int | str]") -> str:
    """Return what an object's keys should be."""
    nodes: Sequence[Mapping[str, Any]] = [schema]
    for step in path:
        nodes = below(schema, nodes, str(step))
    return next((node["propertyNames"]["description"] for node in nodes if "propertyNames" in node), "another name")
