"""What all documents share: API version, canonical JSON, digest, and errors as one sentence."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ValidationError

from planner.errors import DigestError, DocumentError, NewerVersionError
from planner.text.words import closest, did_you_mean, some

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

API_GROUP = "consumerplanner.dev"
API_VERSION: Literal["consumerplanner.dev/v1alpha1"] = "consumerplanner.dev/v1alpha1"
DIGEST_PREFIX = "sha256:"

_MIGRATIONS = (
    "update",
    "strategy",
    "subscription",
    "rename",
    "relocate",
    "cluster",
    "reset",
    "expand",
    "shrink",
    "assignor",
    "consumerProtocol",
)
_KINDS = {("source", "rocketmq"), ("source", "kafka"), *(("migration", kind) for kind in _MIGRATIONS)}

_WORDS = {
    "missing": "nothing",
    "missing_argument": "nothing",
}


def canonical(value: object) -> bytes:
    """Return the one JSON text of ``value``: keys sorted, no blanks, UTF-8; equal values give equal bytes.

    Raises ``DocumentError`` for what JSON cannot say: a number that is none or endless, one of thousands of digits,
    half a surrogate pair, hundreds of levels.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode()
    except RecursionError:
        raise DocumentError("a document has too many levels: write it flatter") from None
    except ValueError as error:
        raise DocumentError(
            f"a document holds a value that JSON cannot say ({_cause(error)}): finite numbers of at most 4 300 digits "
            "and whole characters are expected"
        ) from error


def _cause(error: ValueError) -> str:
    """Return what is wrong in words that need no knowledge of Python."""
    return "half a surrogate pair" if isinstance(error, UnicodeEncodeError) else "a number out of range"


def digest_of(value: object) -> str:
    """Return ``sha256:`` and the hexadecimal digest of the canonical text."""
    return DIGEST_PREFIX + hashlib.sha256(canonical(value)).hexdigest()


def check_digest(value: object, claimed: object, where: str) -> None:
    """Raise ``DigestError`` unless ``claimed`` is the digest of ``value``, ``DocumentError`` where it can have none."""
    try:
        actual = digest_of(value)
    except DocumentError as error:
        raise DocumentError(f"{where}: {error}") from error
    if claimed != actual:
        raise DigestError(
            f"{where}: its content has digest {actual}, the document says {claimed}: it was edited after it was made, "
            "so make it again"
        )


def check_header(document: object, kind: str, where: str) -> dict[str, Any]:
    """Return ``document`` as a mapping of that kind and of this API version.

    Raises ``NewerVersionError`` for a later version of our API group, ``DocumentError`` for anything else; another
    kind of ours is named, with the command that makes the one that was expected.
    """
    if not isinstance(document, dict):
        raise DocumentError(f"{where}: found {shown(document)}, expected a {kind} document{_made_by(kind)}")
    version, actual_kind = document.get("apiVersion"), document.get("kind")
    if isinstance(version, str) and version.startswith(f"{API_GROUP}/") and version != API_VERSION:
        raise NewerVersionError(
            f"{where}: field apiVersion is {version}, this planner reads {API_VERSION}: "
            "use the planner version that wrote it"
        )
    if version == API_VERSION and isinstance(actual_kind, str) and actual_kind in _MAKERS and actual_kind != kind:
        raise DocumentError(f"{where} is a {actual_kind}, expected a {kind}{_made_by(kind)}")
    if version != API_VERSION:
        raise DocumentError(f"{where}: field apiVersion is {shown(version)}, expected {API_VERSION}")
    if actual_kind != kind:
        close = did_you_mean(actual_kind, _MAKERS) if isinstance(actual_kind, str) else ""
        raise DocumentError(f"{where}: field kind is {shown(actual_kind)}, expected {kind}{close}")
    return document


_MAKERS = {
    "GroupSnapshot": "planner snapshot writes one",
    "GroupSample": "a capture holds them",
    "ConsumerScalingPolicy": "planner init writes one",
    "ConsumerRolloutPlan": "planner plan writes one",
    "ConsumerScalingDecision": "planner plan writes one when the answer is hold",
    "DoctorReport": "planner doctor --format json writes one",
    "CandidateOutcomes": "planner simulate --format json writes one",
    "CalibrationRecord": "planner verify --data writes one",
    "MetricHistory": "planner history --format json holds them",
}
"""Our kinds of documents, and where each comes from."""


def _made_by(kind: str) -> str:
    return f": {_MAKERS[kind]}" if kind in _MAKERS else ""


_PYDANTIC: Final = re.compile(r"^(Value error,|Input should be|\w+ should have) | after validation(?=, not)")
"""Words of pydantic's that say nothing more than ours around them."""


def document_error(
    error: ValidationError,
    where: str,
    prefix: tuple[str, ...] = (),
    schema: Mapping[str, Any] | None = None,
    at_most: int | None = None,
) -> DocumentError:
    """Return pydantic's complaints as one sentence of ours: file, field, found, expected.

    Further fields are left out where the sentence would be longer than ``at_most`` characters, and then its end.

    A field that is not known comes first, with the one that was meant: of those that are missing beside it, or that
    ``schema``, the document's JSON schema, knows.
    """
    errors = error.errors(include_url=False)
    first = next((complaint for complaint in errors if complaint["type"] in UNKNOWN_FIELD), errors[0])
    meant = _meant(first, errors, schema) if first["type"] in UNKNOWN_FIELD else None
    others = [other for other in errors if other is not first and not _is_missing(other, first, meant)]
    sentence = f"{where}: {_complaint(first, prefix, meant, schema or {})}"
    rest = f"; {_others(others, prefix)}" if others else ""
    if at_most is not None and len(sentence) + len(rest) > at_most:
        sentence, rest = sentence if len(sentence) <= at_most else f"{sentence[: at_most - 1]}…", ""
    return DocumentError(f"{sentence}{rest}")


UNKNOWN_FIELD = ("extra_forbidden", "unexpected_keyword_argument")
"""What pydantic calls a field that is not known, in a model and in a dataclass."""

NO_FIELDS = ("model_type", "model_attributes_type", "dataclass_type")
"""What pydantic calls a value where fields are expected below."""


def _complaint(first: "ErrorDetails", prefix: tuple[str, ...], meant: str | None, schema: Mapping[str, Any]) -> str:
    """Return one complaint as half a sentence."""
    field, kind, value = _field((*prefix, *map(str, first["loc"]))), first["type"], first["input"]
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _wrong_tag(field, first["ctx"], value)
    if kind in UNKNOWN_FIELD:
        return f"field {field} is not known: {f'did you mean {meant}?' if meant else 'remove it or correct its name'}"
    if kind in _WORDS:
        return f"field {field} is missing: add it"
    if kind in ("tuple_type", "list_type", "set_type") and isinstance(value, str):
        return f"field {field}: found {shown(value)}, expected a list: write [{json.dumps(value, ensure_ascii=False)}]"
    if kind == "value_error" and not isinstance(value, str | int | float):
        return f"field {field}: expected {first['msg'].removeprefix('Value error, ')}"
    expected = _fields_below(first, schema) if kind in NO_FIELDS else _PYDANTIC.sub("", first["msg"])
    return f"field {field}: found {shown(value)}, expected {expected}"


def _fields_below(first: "ErrorDetails", schema: Mapping[str, Any]) -> str:
    """Return what is expected in the place of a value that has no fields."""
    names = known_fields(schema, [str(step) for step in first["loc"]])
    return f"fields below it: {some(names)}" if names else "fields below it"


def _meant(first: "ErrorDetails", errors: "Sequence[ErrorDetails]", schema: Mapping[str, Any] | None) -> str | None:
    """Return the field that was meant by one that is not known, ``None`` where no name is close."""
    name, beside = str(first["loc"][-1]), first["loc"][:-1]
    missing = [str(other["loc"][-1]) for other in errors if other["type"] in _WORDS and other["loc"][:-1] == beside]
    return closest(name, missing) or closest(name, known_fields(schema or {}, [str(step) for step in beside]))


def _is_missing(other: "ErrorDetails", first: "ErrorDetails", meant: str | None) -> bool:
    """Return whether the other complaint misses just what the misspelt field was meant to be."""
    return other["type"] in _WORDS and other["loc"] == (*first["loc"][:-1], meant)


def _others(others: "Sequence[ErrorDetails]", prefix: tuple[str, ...]) -> str:
    """Return the further complaints by their fields."""
    names = list(dict.fromkeys(_field((*prefix, *map(str, other["loc"]))) for other in others))
    return f"also wrong: {some(names)}"


def known_fields(schema: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    """Return the names of the fields that a JSON schema knows at ``path``; of a union, those of all its members."""
    nodes: Sequence[Mapping[str, Any]] = list(_variants(schema, schema))
    for step in path:
        # The chosen kind of a union stands in the path, too: it is no field, and one stays where one is.
        nodes = below(schema, nodes, step) or nodes
    return list(dict.fromkeys(name for node in nodes for name in node.get("properties", {})))


def below(schema: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], step: str) -> list[Mapping[str, Any]]:
    """Return what a JSON schema knows one step below ``nodes``, unions and references spelled out behind each."""
    inside = [node["properties"][step] for node in nodes if step in node.get("properties", {})]
    if not inside and step.isdecimal():
        inside = [node["items"] for node in nodes if "items" in node]
    values = [node.get("additionalProperties") for node in nodes]
    inside = inside or [value for value in values if isinstance(value, Mapping)]
    return [variant for node in inside for variant in _variants(schema, node)]


def _variants(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a node of a JSON schema, and what it refers to or is a union of."""
    yield node
    if "$ref" in node:
        yield from _variants(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[-1]])
    for branch in (*node.get("oneOf", ()), *node.get("anyOf", ()), *node.get("allOf", ())):
        yield from _variants(schema, branch)


def _wrong_tag(field: str, context: dict[str, Any], value: object) -> str:
    name = context["discriminator"].strip("'")
    if not isinstance(value, dict) or name not in value:
        return f"field {field}.{name} is missing: add it"
    return f"field {field}.{name}: found {shown(value[name])}, expected {context['expected_tags']}"


def _field(path: tuple[str, ...]) -> str:
    """Return the path as a user wrote it: pydantic puts the chosen kind of a union into it."""
    before = ("", *path)
    is_kind = (step == "tagged-union" or (last, step) in _KINDS for last, step in zip(before, path, strict=False))
    return ".".join(_short_step(step) for step, skip in zip(path, is_kind, strict=True) if not skip)


def _short_step(step: str) -> str:
    return step if len(step) <= 60 else f"{step[:59]}…"


def shown(value: object, at_most: int = 80) -> str:
    """Return a value as an error sentence quotes it, in so many characters at most."""
    try:
        text = "nothing" if value is None else repr(value)
    except ValueError:  # Python writes no number of more than 4 300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= at_most else f"{text[: at_most - 3]}…"
