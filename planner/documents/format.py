"""What all documents share: API version, canonical JSON, digest, and errors as one sentence."""

import hashlib
import json
from typing import Any, Literal

from pydantic import ValidationError

from planner.errors import DigestError, DocumentError, NewerVersionError

API_GROUP = "consumerplanner.dev"
API_VERSION: Literal["consumerplanner.dev/v1alpha1"] = "consumerplanner.dev/v1alpha1"
DIGEST_PREFIX = "sha256:"

_MIGRATIONS = ("update", "strategy", "rename", "relocate", "cluster", "reset", "expand", "assignor", "consumerProtocol")
_KINDS = {("source", "rocketmq"), ("source", "kafka"), *(("migration", kind) for kind in _MIGRATIONS)}

_WORDS = {
    "missing": "nothing",
    "missing_argument": "nothing",
}


def canonical(value: object) -> bytes:
    """Return the one JSON text of ``value``: keys sorted, no blanks, UTF-8; equal values give equal bytes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def digest_of(value: object) -> str:
    """Return ``sha256:`` and the hexadecimal digest of the canonical text."""
    return DIGEST_PREFIX + hashlib.sha256(canonical(value)).hexdigest()


def check_digest(value: object, claimed: object, where: str) -> None:
    """Raise ``DigestError`` unless ``claimed`` is the digest of ``value``."""
    actual = digest_of(value)
    if claimed != actual:
        raise DigestError(
            f"{where}: its content has digest {actual}, the document says {claimed}: it was edited after it was made, "
            "so make it again"
        )


def check_header(document: object, kind: str, where: str) -> dict[str, Any]:
    """Return ``document`` as a mapping of that kind and of this API version.

    Raises ``NewerVersionError`` for a later version of our API group, ``DocumentError`` for anything else.
    """
    if not isinstance(document, dict):
        raise DocumentError(f"{where}: found {_shown(document)}, expected a {kind} document")
    version, found = document.get("apiVersion"), document.get("kind")
    if isinstance(version, str) and version.startswith(f"{API_GROUP}/") and version != API_VERSION:
        raise NewerVersionError(
            f"{where}: field apiVersion is {version}, this planner reads {API_VERSION}: "
            "use the planner version that wrote it"
        )
    if version != API_VERSION:
        raise DocumentError(f"{where}: field apiVersion is {_shown(version)}, expected {API_VERSION}")
    if found != kind:
        raise DocumentError(f"{where}: field kind is {_shown(found)}, expected {kind}")
    return document


def document_error(error: ValidationError, where: str, prefix: tuple[str, ...] = ()) -> DocumentError:
    """Return pydantic's first complaint as one sentence of ours: file, field, found, expected."""
    first = error.errors(include_url=False)[0]
    field = _field((*prefix, *map(str, first["loc"])))
    more = error.error_count() - 1
    rest = f" ({more} more like this)" if more else ""
    kind = first["type"]
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return DocumentError(f"{where}: {_wrong_tag(field, first['ctx'], first['input'])}{rest}")
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return DocumentError(f"{where}: field {field} is not known: remove it or correct its name{rest}")
    if kind in _WORDS:
        return DocumentError(f"{where}: field {field} is missing: add it{rest}")
    if kind == "value_error" and not isinstance(first["input"], str | int | float):
        return DocumentError(f"{where}: field {field}: expected {first['msg'].removeprefix('Value error, ')}{rest}")
    expected = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return DocumentError(f"{where}: field {field}: found {_shown(first['input'])}, expected {expected}{rest}")


def _wrong_tag(field: str, context: dict[str, Any], found: object) -> str:
    name = context["discriminator"].strip("'")
    if not isinstance(found, dict) or name not in found:
        return f"field {field}.{name} is missing: add it"
    return f"field {field}.{name}: found {_shown(found[name])}, expected {context['expected_tags']}"


def _field(parts: tuple[str, ...]) -> str:
    """Return the path as a user wrote it: pydantic puts the chosen kind of a union into it."""
    before = ("", *parts)
    is_kind = (part == "tagged-union" or (last, part) in _KINDS for last, part in zip(before, parts, strict=False))
    return ".".join(part for part, skip in zip(parts, is_kind, strict=True) if not skip)


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
