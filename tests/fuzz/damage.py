"""Damage to valid inputs: bytes cut, doubled and replaced; JSON with right syntax and wrong content."""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final

Damage = Callable[[Random, bytes, Sequence[bytes]], bytes]
"""From a source of chance, one input and all others that are known to the damaged input."""

MARKS: Final = [
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"0", b"-", b"null", b"true", b"\xff", b"1e999", b"NaN", b"="),
    *(b"", b"Infinity", b'\\ud800"', b"\\u", b"9" * 400, b"9" * 5000, b"[" * 300, b'{"a":' * 300, b"-1", b"\n", b"\0"),
    *(b"2147483648", b"9223372036854775808", b"1.5", b'""', b"{}", b"[]", b"\0\0\0\1", b"\xff\xff\xff\xff", b"\x7f"),
    *(b"\xff\xff\xff\xff\x0f", b"\x80" * 6, b"\x7f\xff\xff\xff", b"\r", b"%", b"&a", b"*a", b"!!int", b"? ", b"- "),
]
"""Pieces that readers have stumbled over, and those that steer JSON, YAML and binary lengths."""
_RAW: Final = {
    "@many digits@": "9" * 5000,
    "@digits@": "9" * 400,
    "@surrogate@": '"\\ud800"',
    "@150 levels@": "[" * 150 + "]" * 150,
    "@600 levels@": '{"a":' * 600 + "0" + "}" * 600,
    "@3000 levels@": "[" * 3000 + "]" * 3000,
    "@huge@": "1e999",
    "@minus huge@": "-Infinity",
    "@none@": "NaN",
    "@zero@": "-0.0",
}
"""What no value of Python can be written as; put into the text afterwards."""
_VALUES: Final[list[Any]] = [
    *(None, True, False, 0, 1, -1, 1.5, 1e308, 5e-324, 2**31, 2**63, 2**64, -(2**63) - 1, "", "x", "0", "1", [], {}),
    *([[]], [None], [0], ["x"], {"a": {}}, {"": 0}, " ", "\0", "\u202e", "a\nb", "..", "/", "é" * 300, "9" * 5000),
    *(
        "2026-11-21T10:00:00Z",
        "2026-11-21T10:00:00",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "1e5",
        "nan",
        "0x10",
        "%2E",
    ),
    *("rocketmq", "kafka", "AVG", "range", "consumerplanner.dev/v1alpha1", "live", "T/b/0-99999999999", "5-3", "a=b"),
    *_RAW,
]


def damaged_bytes(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return the bytes with one to five pieces replaced, taken out, or put in from elsewhere."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        start = chance.randint(0, len(data))
        if chance.random() < 0.15:
            origin = data if chance.random() < 0.5 else chance.choice(others)
            first = chance.randint(0, len(origin))
            patch = origin[first : first + chance.randint(0, 60)]
        else:
            patch = chance.choice(MARKS) if chance.random() < 0.7 else chance.randbytes(chance.randint(0, 4))
        data = data[:start] + patch + data[start + chance.choice((0, 0, 1, 1, 2, 4, 8, 200)) :]
    return data


def changed_json(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return the JSON with one to three changes of its values, keys and lists; what is no JSON as damaged bytes."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return damaged_bytes(chance, data, others)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        document = _changed(chance, document, others)
    return _text(document)


def json_or_bytes(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return JSON with wrong content nine times of ten, else broken JSON: parsers are others' work."""
    return (changed_json if chance.random() < 0.9 else damaged_bytes)(chance, data, others)


def _text(document: object) -> bytes:
    text = json.dumps(document)
    if "@" in text:
        for mark, raw in _RAW.items():
            text = text.replace(f'"{mark}"', raw)
    return text.encode()


def _changed(chance: Random, document: Any, others: Sequence[bytes]) -> Any:
    places = list(_places(document))
    if not places:
        return deepcopy(chance.choice(_VALUES))
    parent, key = chance.choice(places)
    action = chance.random()
    if action < 0.5:
        parent[key] = _value(chance, parent[key])
    elif action < 0.65:
        del parent[key]
    elif action < 0.8:
        other, other_key = chance.choice(places)
        parent[key] = json.loads(json.dumps(other[other_key]))  # a copy: it may hold what it is put into
    elif action < 0.9 and isinstance(parent, dict):
        parent[chance.choice(("", "x", "kind", "\0", "a" * 300, *map(str, _RAW)))] = parent[key]
    elif isinstance(parent[key], list) and 0 < len(parent[key]) < 100:
        parent[key] = parent[key] * chance.choice((2, 2, 3, 50))
    else:
        parent[key] = _of_another(chance, others)
    return document


def _value(chance: Random, value: Any) -> Any:
    """Return another value; often a near one, which passes the first checks."""
    if chance.random() < 0.4:
        if isinstance(value, str) and value:
            cut = chance.randint(0, len(value))
            return (
                value[:cut] + chance.choice(("", "x", "0", "\ud800", "\u202e", "-", "/", " ", "é")) + value[cut + 1 :]
            )
        if isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300:
            return chance.choice((-value, value + 1, value * 1000, value / 3, int(value), str(value)))
        if isinstance(value, list):
            return value[::-1]
    return deepcopy(chance.choice(_VALUES))  # a later change must not reach the next case


def _of_another(chance: Random, others: Sequence[bytes]) -> Any:
    try:
        document = json.loads(chance.choice(others))
    except (ValueError, RecursionError):
        return None
    places = list(_places(document))
    if not places:
        return document
    parent, key = chance.choice(places)
    return parent[key]


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place below the document as the list or mapping and its index or key, without recursion."""
    waiting = [document]
    while waiting:
        parent = waiting.pop()
        items: Any = ()
        if isinstance(parent, dict):
            items = parent.items()
        elif isinstance(parent, list):
            items = enumerate(parent)
        for key, value in items:
            yield parent, key
            if isinstance(value, dict | list):
                waiting.append(value)
