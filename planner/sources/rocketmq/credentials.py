"""Signing requests for servers with access control: ACL 1.0 (RocketMQ 4.4 to 5.3.2) and ACL 2.0 (5.3 on) alike.

What is signed: the values of all header fields in the order of their names, then the body; HMAC-SHA1 in base64.
Source: ``AclClientRPCHook``, ``AclUtils``, ``AclSigner``.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from planner.errors import BadInputError
from planner.sources.connections import connection

_ACCESS_KEY: Final = "AccessKey"
_TOKEN: Final = "SecurityToken"  # noqa: S105 (the name of a header field)
_SIGNATURE: Final = "Signature"
_HIDDEN: Final = "(hidden)"
_FIELDS: Final = {"accessKey": "access_key", "secretKey": "secret_key", "securityToken": "security_token"}
_MAX_FILE: Final = 64 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """An account's access key, its secret and, where a service lends them for a time, a security token."""

    access_key: str
    secret_key: str
    security_token: str = ""

    def __post_init__(self) -> None:
        if not self.access_key or not self.secret_key:
            raise BadInputError("the RocketMQ account lacks its access key or its secret key: give both or neither")

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Return the account in a file, such as a mounted Secret, or in a connection of Airflow where ``path`` is text.

        ``accessKey``, ``secretKey`` and, where there is one, ``securityToken``, one on each line: as YAML
        (``accessKey: reader``, like RocketMQ's own ``tools.yml``) or as properties (``accessKey=reader``), in quotes or
        not. Lines that start with ``#`` and other names are left alone. Raises ``BadInputError``, which shows nothing
        of the file's content. A connection has the access key as its login, the secret key as its password and the
        token as ``securityToken`` in its extra.
        """
        if isinstance(path, str):
            secrets = connection(path)
            access_key, secret_key = secrets.required(login="access key", password="secret key")  # noqa: S106
            return cls(access_key, secret_key, str(secrets.fields().get("securityToken", "")))
        try:
            with path.open(encoding="utf-8") as file:
                text = file.read(_MAX_FILE)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise BadInputError(f"credentials file {path} cannot be read ({reason}): check path and rights") from None
        values = _values(text)
        missing = [name for name in ("accessKey", "secretKey") if not values.get(_FIELDS[name])]
        if missing:
            raise BadInputError(
                f"credentials file {path} lacks {' and '.join(missing)}: write accessKey and secretKey into it, "
                f"one on each line, as in 'accessKey: NAME'"
            )
        return cls(**values)

    def __repr__(self) -> str:
        """Name the account and nothing that opens a door."""
        return f"Credentials(access_key={self.access_key!r}, secret_key={_HIDDEN})"

    def signed(self, fields: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """Return ``fields`` with access key, token and signature; nothing may be added to them afterwards."""
        known = {name: value for name, value in fields.items() if name != _SIGNATURE} | {_ACCESS_KEY: self.access_key}
        if self.security_token:
            known[_TOKEN] = self.security_token
        # Java orders names by UTF-16 units; ours are ASCII, for which Python's order is the same.
        content = "".join(known[name] for name in sorted(known)).encode() + body
        return {**known, _SIGNATURE: signature(self.secret_key, content)}

    def redacted(self, text: str) -> str:
        """Return ``text``, which a server wrote, without our secrets."""
        for secret in (self.secret_key, self.security_token):
            text = text.replace(secret, _HIDDEN) if secret else text
        return text


def _values(text: str) -> dict[str, str]:
    values = {}
    for line in text.splitlines():
        # The first of both signs ends the name: secrets in base64 end in "=".
        end = min((line.find(sign) for sign in ":=" if sign in line), default=0)
        name, value = line[:end].strip(), line[end + 1 :].strip()
        if name in _FIELDS:
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            values[_FIELDS[name]] = value[1:-1] if is_quoted else value
    return values


def signature(secret_key: str, content: bytes) -> str:
    """Return the base64 text of the HMAC-SHA1 of ``content``."""
    return base64.b64encode(hmac.digest(secret_key.encode(), content, hashlib.sha1)).decode()
