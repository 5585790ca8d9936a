"""Text from outside as it may be shown: control characters visible, passwords out.

The one filter before terminal, page, Event and log. A name may hold whatever its author likes: an escape sequence
that clears the screen, a mark that turns the reading direction, a line break that begins a sentence of ours.
Pure functions at the bottom of the layers; they import nothing of the planner.
"""

import re
from typing import Final

_PASSWORD: Final = re.compile(r"://[^\s/@:]*(?::[^\s\"]*)?@")
"""User and password of a URL. A password may hold a slash or an at sign: the last ``@`` of the word ends it."""
_ACCOUNT: Final = re.compile(
    r"(?<![^\s\"'=,;(\[])(?!(?:[0-9a-fA-F]*:){2,}[0-9a-fA-F.]*@)[^\s/@:\"']*:(?!//)[^\s\"]*@"
    r"(?=[\w.-]{1,253}:\d{1,5}(?!\w)|\[[0-9a-fA-F:.]{2,45}\]:)"
)
"""The same before ``host:port``, without a scheme. An image's digest and an IPv6 address in a client id are none."""


def printable(text: str, keep: str = "\n\t") -> str:
    r"""Return ``text`` with every character that is not to be seen written as Python would: ``\x1b``, ``\u202e``.

    Those are controls (C0 and C1), marks of reading direction and other format characters, lone surrogates, and line
    and paragraph separators (Unicode categories C, Zl, Zp, and Zs but the blank). ``keep`` holds those that stay.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else _visible(character) for character in text
    )


def one_line(text: str) -> str:
    """Return ``text`` as ``printable`` does, line breaks and tabs visible too: what it says is one line."""
    return printable(text, keep="")


def json_text(text: str) -> str:
    r"""Return a JSON text that holds the same data, with what is not to be seen as JSON's own ``\u202e``."""
    return "".join(
        character if character.isprintable() or character == "\n" else _utf_16(character) for character in text
    )


def without_passwords(text: str) -> str:
    """Return ``text`` without user and password of its URLs and addresses: ``http://***@host``, ``***@host:1``."""
    if "@" not in text:
        return text
    return _ACCOUNT.sub("***@", _PASSWORD.sub("://***@", text))


def _utf_16(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[first : first + 4]}" for first in range(0, len(units), 4))


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
