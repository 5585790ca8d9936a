"""How to get in: where the server is, which account, which authorities to trust. Secrets come from files, always."""

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from planner.errors import BadInputError
from planner.sources.connections import connection


@dataclass(frozen=True, slots=True)
class Access:
    """A server's URL (``https://host:port/prefix``) and the files that open it.

    ``bearer_token_file`` holds a token, ``basic_auth_file`` one line ``user:password``; both are read for every
    request, since mounted tokens are renewed. ``ca_file`` holds the authorities to trust (PEM), the system's when
    ``None``. Instead of either file, text names a connection of Airflow: its password is the token, or login and
    password are the account.
    """

    url: str
    bearer_token_file: Path | str | None = None
    basic_auth_file: Path | str | None = None
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        url = urlsplit(self.url)
        if "@" in url.netloc:
            raise BadInputError(
                "the Prometheus URL holds an account: take it out and name a file with user:password (basicAuthFile)"
            )
        if url.scheme not in ("http", "https") or not _is_address(url) or url.query or url.fragment:
            raise BadInputError(
                f"{self.url!r} is no URL of a Prometheus server: write http://host:port or https://host/prefix"
            )
        if self.bearer_token_file is not None and self.basic_auth_file is not None:
            raise BadInputError(f"{self.base}: a bearer token and a password are given: keep one of them")

    @property
    def base(self) -> str:
        """The URL without a slash at its end."""
        return self.url.rstrip("/")

    def headers(self) -> Mapping[str, str]:
        """Return the header that names the account, none without one. Raises ``BadInputError`` naming a file."""
        if self.bearer_token_file is not None:
            return {"Authorization": f"Bearer {_token(self.bearer_token_file)}"}
        if self.basic_auth_file is not None:
            pair = _account(self.basic_auth_file)
            if ":" not in pair:
                raise BadInputError(f"{self.basic_auth_file} is not user:password: write both into one line")
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        return {}

    def tls(self) -> ssl.SSLContext | bool:
        """Return how the server's certificate is verified; it always is. Raises ``BadInputError``."""
        if not self.base.startswith("https"):
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ValueError) as error:
            raise BadInputError(f"authorities {self.ca_file} cannot be read ({error}): give a PEM file") from error


def _is_address(url: SplitResult) -> bool:
    try:
        return bool(url.hostname) and url.port != 0
    except ValueError:  # no number, or none that is a port
        return False


def _token(source: Path | str) -> str:
    if isinstance(source, Path):
        return _secret(source)
    (token,) = connection(source).required(password="token")  # noqa: S106
    return _single_line(token, source)


def _account(source: Path | str) -> str:
    if isinstance(source, Path):
        return _secret(source)
    return _single_line(":".join(connection(source).required(login="user", password="password")), source)  # noqa: S106


def _secret(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise BadInputError(f"cannot read the secret {path}: {reason}") from error
    return _single_line(text, path)


def _single_line(text: str, source: Path | str) -> str:
    if not text or not text.isascii() or not text.isprintable():
        raise BadInputError(f"secret {source} is empty, has several lines or is not ASCII: write one line")
    return text
