"""From the JSON schema that pydantic makes of a model to the structural one that Kubernetes takes.

Kubernetes wants OpenAPI 3.0 without references, with one type at every place, and nothing but conditions on values
inside ``anyOf`` (apiextensions.k8s.io/v1, "Specifying a structural schema"). Defaults are left out: the planner knows
them, and a server that wrote them into a plan would change its digest.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

Schema = dict[str, Any]

_DROPPED = ("title", "default", "discriminator", "additionalProperties", "$defs", "anyOf", "oneOf", "const", "$ref")
_KEPT_FORMATS = ("date-time",)


def structural(schema: Schema) -> Schema:
    """Return the schema of a whole model, its references resolved. Raises ``ValueError`` for what has no such form."""
    return _convert(schema, schema.get("$defs", {}))


def _convert(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    resolved = _resolve(schema, definitions)
    either = resolved.get("anyOf") or resolved.get("oneOf") or ()
    variants = [_resolve(variant, definitions) for variant in either]
    if variants:
        return _of_variants(resolved, variants, definitions)
    kept = _plain(resolved)
    if "items" in kept:
        kept["items"] = _convert(kept["items"], definitions)
    if kept.get("type") == "object":
        kept.update(_members(resolved, definitions))
    return kept


def _resolve(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return the schema with its reference, if it is one, replaced by what it refers to; what stands beside it wins."""
    if "$ref" not in schema:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**_resolve(definitions[schema["$ref"].rpartition("/")[2]], definitions), **beside}


def _plain(schema: Schema) -> Schema:
    """Return all but fields and items, type first. Lists are copied: YAML would write shared ones as references."""
    if "type" not in schema:
        raise ValueError(f"no structural form for {schema}")
    kept = {"type": schema["type"], **{key: copy(value) for key, value in schema.items() if key not in _DROPPED}}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if "description" in kept:
        kept["description"] = _first_paragraph(kept["description"])
    if kept.get("format") not in _KEPT_FORMATS:
        kept.pop("format", None)
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if exclusive in kept:  # OpenAPI 3.0 has a bound and a flag for it
            kept[bound], kept[exclusive] = kept[exclusive], True
    return kept


def _members(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return what an object has: named fields, values of one type by any name, or anything."""
    if "properties" in schema:
        return {"properties": {name: _convert(field, definitions) for name, field in schema["properties"].items()}}
    values = schema.get("additionalProperties", True)
    if isinstance(values, Mapping) and values:
        return {"additionalProperties": _convert(dict(values), definitions)}
    return {"x-kubernetes-preserve-unknown-fields": True}


def _of_variants(schema: Schema, variants: Sequence[Schema], definitions: Mapping[str, Schema]) -> Schema:
    beside = {key: schema[key] for key in ("description",) if key in schema}
    others = [variant for variant in variants if variant.get("type") != "null"]
    if len(others) == 1:
        only = _convert(others[0], definitions)
        # A value that is listed would have to list null, too; without it the server drops the null.
        nullable = {"nullable": True} if len(others) < len(variants) and "enum" not in only else {}
        return {**only, **beside, **nullable}
    return {**_by_kind([_convert(variant, definitions) for variant in others]), **beside}


def _by_kind(variants: Sequence[Schema]) -> Schema:
    """Return one object for several that a field tells apart: all their fields, and which of them each kind needs."""
    tag = _tag(variants)
    fields: dict[str, Schema] = {tag: {"type": "string", "enum": [_only(variant, tag) for variant in variants]}}
    for variant in variants:
        for name, schema in variant["properties"].items():
            if name != tag:
                fields[name] = _same(name, fields.get(name), schema)
    return {
        "type": "object",
        "properties": fields,
        "required": sorted({tag, *set.intersection(*(set(variant.get("required", ())) for variant in variants))}),
        "anyOf": [
            {
                "properties": {tag: {"enum": [_only(variant, tag)]}},
                "required": sorted({tag, *variant.get("required", ())}),
            }
            for variant in variants
        ],
    }


def _tag(variants: Sequence[Schema]) -> str:
    """Return the field that has one value in each variant and another one in every other."""
    names: set[str] = set.intersection(*(set(variant.get("properties", ())) for variant in variants))
    for name in sorted(names):
        values = [tuple(variant["properties"][name].get("enum", ())) for variant in variants]
        if all(len(value) == 1 for value in values) and len(set(values)) == len(values):
            return name
    raise ValueError(f"no field distinguishes the variants: {sorted(names)}")


def _only(variant: Schema, tag: str) -> str:
    return str(variant["properties"][tag]["enum"][0])


def _same(name: str, known: Schema | None, schema: Schema) -> Schema:
    """Return the field's schema; variants may differ in whether it can be null, and in nothing else."""
    if known is None:
        return schema
    if _without_null(known) != _without_null(schema):
        raise ValueError(f"field {name} has two types: {known} and {schema}")
    return known if known.get("nullable") else schema


def _without_null(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("nullable", "description")}


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "")


def field_at(schema: Schema, path: Sequence[str]) -> Schema:
    """Return the schema of the field at ``path``."""
    return field_at(schema["properties"][path[0]], path[1:]) if path else schema
