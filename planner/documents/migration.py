"""A migration that somebody asks for, as a document: ``{"kind": "update", "change": …}``, spelt in camelCase."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Final, get_args

from pydantic import Field, TypeAdapter, ValidationError

from planner.documents.format import canonical, document_error
from planner.documents.spelling import spell_in_camel_case
from planner.documents.yaml import load_yaml
from planner.errors import DocumentError
from planner.rollout import template as template_types
from planner.rollout.migrations import requests as request_types
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


def parse_request(document: Mapping[str, Any], where: str) -> Request:
    """Return what the document asks for; ``where`` names it in errors. Raises ``DocumentError``."""
    try:
        return _REQUEST.validate_json(canonical(dict(document)), strict=True, extra="forbid")
    except ValidationError as error:
        raise document_error(error, where, ("migration",)) from error


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
