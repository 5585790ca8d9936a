"""The JSON that RocketMQ's fastjson writes, which is not quite JSON.

Beyond the standard it uses objects as keys of objects (``{{"queueId":0}:{...}}``), bare integers as keys
(``{0:"127.0.0.1:10911"}``) and ``NaN``; bare names as keys and fastjson's own escapes are taken too. Trailing
commas, comments and single quotes are not: no version writes them.

The reader keeps its own stack, takes ``MOST_DEPTH`` levels and ``MOST_VALUES`` values, and reads each character
once. Objects and lists without any quirk, which are most of each body, it leaves to the standard library: that is six
times as fast.
"""

import re
from collections.abc import Callable
from json import JSONDecoder
from typing import Final, TypeAlias, cast

from planner.sources.rocketmq.errors import JsonError
from planner.text.bounded import MOST_DEPTH, TooMuchError, check_values

Scalar: TypeAlias = bool | int | float | str | None
ObjectKey: TypeAlias = tuple[tuple[str, Scalar], ...]
"""An object in the place of a key: its fields as pairs, sorted by name."""
Key: TypeAlias = str | int | float | ObjectKey
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[Key, Json] | None"

MAX_DIGITS: Final = 1000
"""Longest number we convert; Java's longs have 19 digits, and converting takes quadratic time."""

_TOKEN: Final = re.compile(
    r"[ \t\r\n]*(?:"
    r"(?P<mark>[{}\[\]:,])"
    r'|"(?P<string>[^"\\]*+)(?P<quote>["\\])'
    r"|(?P<number>-?[0-9]+(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))(?![0-9A-Za-z_.])"
    r"|(?P<word>-?[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<end>\Z))"
)
_CHUNK: Final = re.compile(r'[^"\\]*')
_HEX4: Final = re.compile(r"[0-9A-Fa-f]{4}")
_HEX2: Final = re.compile(r"[0-9A-Fa-f]{2}")
_ESCAPES: Final = dict(zip("\"'\\/bfnrtv01234567", "\"'\\/\b\f\n\r\t\v\0\1\2\3\4\5\6\7", strict=True))
_WORDS: Final[dict[str, Scalar]] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_STANDARD: Final = JSONDecoder(strict=False)
_ATTEMPTS: Final = 16
"""How often the standard library may fail in one text. Each failure costs up to a pass over the whole text."""
_MAY_BE_STANDARD: Final = re.compile(r'\[|\{[ \t\r\n]*["}]')
_READ_OTHERWISE: Final = re.compile(rf'\\u|"\$ref"|[0-9]{{{MAX_DIGITS}}}')
"""What the standard library takes, too, but reads in another way: lone surrogates, references, endless integers."""


def parse(body: bytes) -> Json:
    """Return what ``body`` (UTF-8) holds: objects as dicts, lists as lists, integers as exact ``int``.

    A key is text, a number (bare digits, not quoted ones) or an ``ObjectKey``. Of equal keys the last one counts,
    as in a Java map. A reference of fastjson 1 (``{"$ref":"$.path"}``) reads as ``None``. Raises ``JsonError``.
    Source: the fastjson quirks Q1 to Q9 of our protocol notes.
    """
    try:
        check_values(body)
    except TooMuchError as error:
        raise JsonError(str(error), 0) from None
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError("bytes are not UTF-8", error.start) from None
    return _Reader(text).read()


def integer_key(key: Key) -> Key:
    """Return ``key`` as an ``int`` where it is one in quotes: servers write ``0`` or ``"0"`` for the same map."""
    if isinstance(key, str) and key.isascii() and key.removeprefix("-").isdigit() and len(key) <= MAX_DIGITS:
        return int(key)
    return key


class _Open:
    """A container whose end is not read yet: a list, an object, or (``is_key``) an object in a key's place."""

    __slots__ = ("is_key", "items", "key")

    def __init__(self, items: "list[Json] | dict[Key, Json]", *, is_key: bool = False) -> None:
        self.items = items
        self.is_key = is_key
        self.key: Key = ""

    def add(self, value: Json) -> None:
        if isinstance(self.items, list):
            self.items.append(value)
        else:
            self.items[self.key] = value


class _Reader:
    """Reads one text: ``_state`` is the method that judges the next token and names the one after it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0  # where the current token starts
        self._next = 0  # where the next one does
        self._open: list[_Open] = []
        self._state: Callable[[str, Scalar], None] = self._value
        self._result: Json = None
        self._attempts = 0 if _READ_OTHERWISE.search(text) else _ATTEMPTS

    def read(self) -> Json:
        kind = ""
        while kind != "end":
            kind, value = self._token()
            self._state(kind, value)
        return self._result

    # Tokens: the marks { } [ ] : , themselves, "string", "number", "word" and "end".

    def _token(self) -> tuple[str, Scalar]:
        match = _TOKEN.match(self._text, self._next)
        if match is None:
            raise JsonError(f"unexpected {self._text[self._next : self._next + 12]!r}", self._next)
        kind = match.lastgroup or ""
        self._next = match.end()
        if kind == "mark":
            self._at = match.start("mark")
            return match["mark"], None
        if kind == "quote":
            self._at = match.start("string") - 1
            return "string", match["string"] if match["quote"] == '"' else self._rest_of_escaped(match["string"])
        self._at = match.start(kind)
        return kind, self._number(match) if kind == "number" else match[kind]

    def _number(self, match: re.Match[str]) -> int | float:
        digits = match["number"]
        if match["fraction"]:
            return float(digits)
        if len(digits) > MAX_DIGITS:
            raise JsonError(f"integer of {len(digits)} characters, expected at most {MAX_DIGITS}", self._at)
        return int(digits)

    def _rest_of_escaped(self, start: str) -> str:
        """Return the string whose first backslash has just been read, after ``start``."""
        pieces = [start, self._escape()]
        while (mark := self._text[self._next : self._next + 1]) != '"':
            if mark == "\\":
                self._next += 1
                pieces.append(self._escape())
            else:
                pieces.append(self._chunk())
        self._next += 1
        return _pair_surrogates("".join(pieces))

    def _chunk(self) -> str:
        match = _CHUNK.match(self._text, self._next)
        if match is None or match.end() == len(self._text):
            raise JsonError("string without end", self._at)
        self._next = match.end()
        return match[0]

    def _escape(self) -> str:
        letter = self._text[self._next : self._next + 1]
        self._next += 1
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        digits = {"u": _HEX4, "x": _HEX2}.get(letter)
        match = digits.match(self._text, self._next) if digits else None
        if match is None:
            raise JsonError(f"unknown escape \\{self._text[self._next - 1 : self._next + 4]}", self._next - 2)
        self._next = match.end()
        return chr(int(match[0], 16))

    # States: what may come next.

    def _value(self, kind: str, value: Scalar) -> None:
        if kind in ("{", "["):
            self._begin(kind)
        elif kind in ("string", "number"):
            self._add(value)
        elif kind == "word" and value in _WORDS:
            self._add(_WORDS[str(value)])
        else:
            raise self._unexpected(kind, "a value")

    def _first_item(self, kind: str, value: Scalar) -> None:
        if kind == "]":
            self._close()
        else:
            self._value(kind, value)

    def _first_key(self, kind: str, value: Scalar) -> None:
        if kind == "}":
            self._close()
        else:
            self._key(kind, value)

    def _key(self, kind: str, value: Scalar) -> None:
        opened = self._open[-1]
        if kind == "{" and not opened.is_key:
            if (key := self._standard_key()) is not None:
                opened.key = key
                self._state = self._colon
                return
            self._go_deeper()
            self._open.append(_Open({}, is_key=True))
            self._state = self._first_key
        elif kind in ("string", "word", "number") and value is not None:
            opened.key = value
            self._state = self._colon
        else:
            raise self._unexpected(kind, "a key")

    def _colon(self, kind: str, _: Scalar) -> None:
        if kind != ":":
            raise self._unexpected(kind, "':'")
        self._state = self._value

    def _more(self, kind: str, _: Scalar) -> None:
        is_list = isinstance(self._open[-1].items, list)
        if kind == ",":
            self._state = self._value if is_list else self._key
        elif kind == ("]" if is_list else "}"):
            self._close()
        else:
            raise self._unexpected(kind, "',' or ']'" if is_list else "',' or '}'")

    def _nothing(self, kind: str, _: Scalar) -> None:
        if kind != "end":
            raise self._unexpected(kind, "the end")

    # Containers.

    def _begin(self, kind: str) -> None:
        if self._open and self._open[-1].is_key:
            raise self._unexpected(kind, "text or a number inside an object used as key")
        if (whole := self._standard()) is not None:
            self._add(whole)
            return
        self._go_deeper()
        self._open.append(_Open([] if kind == "[" else {}))
        self._state = self._first_item if kind == "[" else self._first_key

    def _go_deeper(self) -> None:
        if len(self._open) >= MOST_DEPTH:
            raise JsonError(f"more than {MOST_DEPTH} levels of lists and objects", self._at)

    def _standard(self) -> "list[Json] | dict[Key, Json] | None":
        """Return the container that starts here, read to its end; ``None`` where a quirk keeps it from being JSON."""
        if not self._attempts or _MAY_BE_STANDARD.match(self._text, self._at) is None:
            return None
        try:
            whole, self._next = _STANDARD.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            self._attempts -= 1
            return None
        return cast("list[Json] | dict[Key, Json]", whole)

    def _standard_key(self) -> ObjectKey | None:
        start = self._next
        items = self._standard()
        if isinstance(items, dict) and not any(isinstance(value, list | dict) for value in items.values()):
            return _frozen(items)
        self._next = start
        return None

    def _close(self) -> None:
        closed = self._open.pop()
        if closed.is_key and isinstance(closed.items, dict):
            self._open[-1].key = _frozen(closed.items)
            self._state = self._colon
        elif isinstance(closed.items, dict) and closed.items.keys() == {"$ref"}:
            self._add(None)
        else:
            self._add(closed.items)

    def _add(self, value: Json) -> None:
        if self._open:
            self._open[-1].add(value)
            self._state = self._more
        else:
            self._result = value
            self._state = self._nothing

    def _unexpected(self, kind: str, expected: str) -> JsonError:
        actual = "the end" if kind == "end" else repr(self._text[self._at : min(self._next, self._at + 20)])
        return JsonError(f"found {actual}, expected {expected}", self._at)


def _frozen(items: "dict[Key, Json]") -> ObjectKey:
    pairs = [(str(name), value) for name, value in items.items() if not isinstance(value, list | dict)]
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def _pair_surrogates(text: str) -> str:
    """Return ``text`` with pairs of escaped surrogates joined and lone ones replaced, so that it can be encoded."""
    if _SURROGATES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
