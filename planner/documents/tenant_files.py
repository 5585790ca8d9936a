"""Files of tenants: which files a policy of the cluster may name, and where what stands in them may go.

A person who may write a policy names both a file and a server, and often fills the file, too. Without bounds he would
have any file of the host read and sent to a server of his own choice, other tenants' accounts among them. An
administrator sets both bounds: a folder that has a folder for each namespace, and for each secret in it the servers
that it may be sent to. Some files name further files and servers themselves; so whoever reads a file asks
``tenant_file`` about its path, and what lies in that folder is not believed, whichever document named it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Self
from urllib.parse import urlsplit

from planner.documents.yaml import load_yaml
from planner.errors import BadInputError

FILES_VARIABLE: Final = "PLANNER_POLICY_FILES"
"""The folder that has a folder for each namespace."""
HOSTS_VARIABLE: Final = "PLANNER_SECRET_HOSTS"
"""JSON or YAML: file or folder below that folder -> the servers, as ``host:port``, that its secrets may be sent to."""
_PLAIN_URL: Final = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._~/%-]*)?")
"""A URL in which all clients read the same host; of ``https://a\\@b`` some take ``a``, some ``b``."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """The folder ``root`` whose files policies of the cluster may name, and the servers by file or folder below it.

    Without a ``root`` no policy may name a file; a secret that ``hosts`` does not list is sent to nobody.
    """

    root: Path | None = None
    hosts: Mapping[PurePosixPath, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of_environment(cls) -> Self:
        """Return the rules that ``FILES_VARIABLE`` and ``HOSTS_VARIABLE`` set. Raises ``BadInputError``."""
        folder = os.environ.get(FILES_VARIABLE)
        return cls(Path(folder) if folder else None, _parse_hosts(os.environ.get(HOSTS_VARIABLE, "")))

    def namespace_folder(self, path: Path) -> Path | None:
        """Return the namespace's folder that ``path``, or the file that it links to, lies in; ``None`` for no such.

        What lies beside these folders is the administrator's own: no policy may name it.
        The written path counts before the link's target: a link of one namespace does not make the file another's.
        """
        if self.root is None:
            return None
        root = self.root.resolve()
        for location, folder in ((path.absolute(), self.root.absolute()), (path.resolve(), root)):
            below = location.relative_to(folder).parts if location.is_relative_to(folder) else ()
            if len(below) > 1:
                return root / below[0]
        return None

    def listed_for(self, path: Path) -> frozenset[str]:
        """Return the servers of the entry nearest to the file: its own, or that of the lowest folder above it.

        Links are resolved on both sides, as a mounted Secret is a link to a link.
        """
        root = (self.root or Path()).resolve()
        target = path.resolve()
        entries: dict[Path, frozenset[str]] = {}
        for below, servers in self.hosts.items():
            location = (root / below).resolve()
            entries[location] = entries.get(location, frozenset()) | servers
        return next((entries[location] for location in (target, *target.parents) if location in entries), frozenset())


@dataclass(frozen=True, slots=True)
class TenantFile:
    """A file below the folder of a namespace; what it names itself lies in ``folder`` or is one of ``servers``."""

    path: Path
    folder: Path
    servers: frozenset[str]

    def check_location(self, name: str, location: str) -> None:
        """Raise ``BadInputError`` where the file's entry ``name`` names a path that is not in the folder."""
        if not is_within(Path(location), self.folder):
            raise BadInputError(
                f"{self.path}: {name} names a file outside {self.folder}: a file of namespace {self.folder.name} may "
                "name the files below that folder only, by their whole path"
            )

    def check_url(self, name: str, url: object) -> None:
        """Raise ``BadInputError`` where the file's entry ``name`` has what it holds sent to an unlisted server."""
        if not isinstance(url, str) or not _PLAIN_URL.fullmatch(url):
            raise BadInputError(f"{self.path}: {name} is no plain URL: write https://HOST:PORT")
        if (address := address_of_url(url)) not in self.servers:
            raise BadInputError(
                f"{self.path}: {name} would have what the file holds sent to {address}, and "
                f"{listing(self.servers)} for it: have an administrator list the server there"
            )


def tenant_file(path: Path) -> TenantFile | None:
    """Return what binds the content of the file at ``path``: ``None`` for one that does not lie in a tenant's folder.

    Raises ``BadInputError`` for rules that cannot be read, and for a link that leads out of its namespace's folder.
    """
    rules = FileRules.of_environment()
    folder = rules.namespace_folder(path)
    if folder is None:
        return None
    if not is_within(path.absolute(), folder):
        raise BadInputError(f"{path} leads outside {folder}: put the file itself there")
    return TenantFile(path, folder, rules.listed_for(path))


def is_within(path: Path, folder: Path) -> bool:
    """Return whether ``path`` is whole and, links resolved, below ``folder``."""
    return path.is_absolute() and path.resolve().is_relative_to(folder.resolve())


def listing(servers: Iterable[str]) -> str:
    """Return what the administrator's list says of one file, for a sentence."""
    return f"{HOSTS_VARIABLE} lists {', '.join(sorted(servers)) or 'no server'}"


def _parse_hosts(text: str) -> Mapping[PurePosixPath, frozenset[str]]:
    """Return the servers by path. Raises ``BadInputError`` for anything but paths below the folder and addresses."""
    if not text.strip():
        return {}
    content = load_yaml(text, HOSTS_VARIABLE)
    if not isinstance(content, dict):
        raise BadInputError(f'{HOSTS_VARIABLE} is no mapping: write {{"NAMESPACE/FILE": ["host:port"]}}')
    return {_path_below(path): frozenset(_listed(path, servers)) for path, servers in content.items()}


def _path_below(text: object) -> PurePosixPath:
    path = PurePosixPath(text) if isinstance(text, str) else PurePosixPath()
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise BadInputError(
            f"{HOSTS_VARIABLE} names {text!r}, expected a file or folder below {FILES_VARIABLE}: write NAMESPACE/FILE"
        )
    return path


def _listed(path: object, servers: object) -> Iterator[str]:
    for server in servers if isinstance(servers, list) else [servers]:
        if not isinstance(server, str) or not _is_address(server):
            raise BadInputError(f"{HOSTS_VARIABLE} lists {server!r} for {path}, expected a list of host:port")
        yield _address(server)


def _is_address(text: str) -> bool:
    host, _, port = _address(text).rpartition(":")
    return bool(host) and "/" not in host and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536


def addresses(text: str, port: int | None = None) -> Iterator[str]:
    """Yield the addresses of one item of a list of servers, which the clients split once more."""
    return (_address(item, port) for item in text.replace(",", ";").split(";") if item.strip())


def _address(text: str, port: int | None = None) -> str:
    """Return ``host:port`` spelt as all are compared: small letters, no brackets; ``port`` where none is written."""
    host, colon, written = text.strip().lower().rpartition(":")
    if not colon:
        host, written = written, str(port or "")
    return f"{host.removeprefix('[').removesuffix(']')}:{written}"


def address_of_url(url: str) -> str:
    """Return the URL's server as ``host:port``, the scheme's own port where none is written."""
    split_url = urlsplit(url)
    try:
        port = split_url.port or (443 if split_url.scheme == "https" else 80)
    except ValueError:  # no number: the reader refuses it, and no list holds it
        return url
    return f"{(split_url.hostname or '').lower()}:{port}"
