"""A migration that somebody asks for, as a document: ``{"kind": "update", "change": …}``, spelt in camelCase."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Final, get_args

from pydantic import Field, TypeAdapter, ValidationError

from planner.documents.format import canonical, document_error, shown
from planner.documents.spelling import spell_in_camel_case
from planner.documents.yaml import load_yaml
from planner.errors import BadInputError, DocumentError
from planner.rollout import template as template_types
from planner.rollout.migrations import requests as request_types
from planner.rollout.migrations.request_names import check_names
from planner.rollout.migrations.requests import Request, ResetMessages

spell_in_camel_case([*vars(template_types).values(), *vars(request_types).values()])

KINDS: Final[tuple[str, ...]] = tuple(
    str(field.default) for request in get_args(Request) for field in fields(request) if field.name == "kind"
)
"""The kinds of migrations, as ``kind`` spells them."""

REQUEST_ANNOTATION: Final = "consumerplanner.dev/request"
"""What somebody asked for, in the plan that came of it, so that it can be asked again. No digest covers it."""

_REQUEST: Final[TypeAdapter[Request]] = TypeAdapter(Annotated[Request, Field(discriminator="kind")])

_RESET_MESSAGES: Final[TypeAdapter[ResetMessages]] = TypeAdapter(ResetMessages)


def reset_messages_document(messages: ResetMessages) -> dict[str, Any]:
    """Return what brokers said of a reset in the form in which its request has it."""
    document: dict[str, Any] = _RESET_MESSAGES.dump_python(messages, mode="json", by_alias=True, exclude_none=True)
    return document


MOST_BYTES: Final = 65_536
"""Of a request as JSON: the plan keeps it in an annotation, and the API server takes 262 144 of all annotations."""
_SENTENCE: Final = 190
"""Characters of a refusal, so that a form and a list of runs show it whole."""


def parse_request(document: Mapping[str, Any], where: str) -> Request:
    """Return what the document asks for; ``where`` names it in errors. Raises ``DocumentError``.

    Names and counts that no broker and no API server takes are refused here, too, as are more than ``MOST_BYTES``.
    """
    try:
        text = canonical(dict(document))
    except DocumentError as error:
        raise DocumentError(f"{where}: {error}") from error
    if len(text) > MOST_BYTES:
        raise DocumentError(f"{where}: found {len(text)} bytes of JSON, expected {MOST_BYTES} at most")
    try:
        request = _REQUEST.validate_json(text, strict=True, extra="forbid")
        check_names(request)
    except ValidationError as error:
        raise _request_error(error, where) from error
    except BadInputError as error:
        raise DocumentError(f"{where}: {error}") from error
    return request


def _request_error(error: ValidationError, where: str) -> DocumentError:
    """Return pydantic's complaints as one sentence; where a reset goes to is one field, whatever may stand there."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":  # it was JSON, so pydantic's bound of levels is what it met
        return DocumentError(f"{where}: it has too many levels: write it as the form's examples are written")
    if first["loc"][:2] == ("reset", "to") and len(first["loc"]) > len(("reset", "to")):
        expected = "a time with its zone (2026-11-21T10:00:00Z), earliest, latest, or the offset of a queue"
        return DocumentError(f"{where}: field migration.to: found {shown(first['input'], 40)}, expected {expected}")
    return document_error(error, where, ("migration",), at_most=_SENTENCE)


def with_request(document: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a migration's plan document that keeps what was asked for."""
    metadata = document["metadata"]
    annotations = {**metadata["annotations"], REQUEST_ANNOTATION: canonical(dict(request)).decode()}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def request_in(document: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """Return what the plan document keeps of the request, ``None`` where it keeps nothing.

    Raises ``DocumentError`` for what is no request.
    """
    text = document["metadata"]["annotations"].get(REQUEST_ANNOTATION)
    if text is None:
        return None
    request = load_yaml(str(text), f"{where}: annotation {REQUEST_ANNOTATION}")
    if not isinstance(request, dict):
        raise DocumentError(f"{where}: annotation {REQUEST_ANNOTATION} holds no mapping: make the plan anew")
    return request
