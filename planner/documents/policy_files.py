"""Which files a policy of the cluster may name, and which servers may get what stands in them.

A person who may write a policy names both a file and a server. Without bounds he would have any file of the host read
and sent to a server of his own choice, other tenants' accounts among them. An administrator sets both bounds: a folder
that has a folder for each namespace, and for each secret in it the servers that it may be sent to.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import BaseModel

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.yaml import load_yaml
from planner.errors import BadInputError, DocumentError

FILES_VARIABLE: Final = "PLANNER_POLICY_FILES"
"""The folder that has a folder for each namespace."""
HOSTS_VARIABLE: Final = "PLANNER_SECRET_HOSTS"
"""JSON or YAML: file or folder below that folder -> the servers, as ``host:port``, that its secrets may be sent to."""

_RECIPIENTS: Final[Mapping[str, Callable[[Any], Sequence[str]]]] = {
    "credentials_file": lambda source: [address for text in source.name_servers for address in _addresses(text)],
    "properties_file": lambda source: [
        address for text in source.bootstrap_servers for address in _addresses(text, 9092)
    ],
    "bearer_token_file": lambda prometheus: [_address_of_url(prometheus.url)],
    "basic_auth_file": lambda prometheus: [_address_of_url(prometheus.url)],
}
"""Field that names a secret -> the servers that the same part of the policy has it sent to."""
_NOT_SENT: Final = frozenset({"ca_file", "certificate_file", "key_file", "kubeconfig_file"})
"""Certificates are public, a private key proves and is not sent, and a kubeconfig names its server itself."""


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

    def check(self, policy: ConsumerScalingPolicy, where: str) -> None:
        """Raise ``DocumentError`` for a file outside the namespace's folder, links resolved, for a secret whose server
        is not listed for it, and for a connection of Airflow: no list says which of these a namespace may have.
        """
        for name in _connections(policy.spec, "spec"):
            raise DocumentError(
                f"{where}: field {name} names a connection of Airflow, which a policy of the cluster may not: name a "
                f"file below {FILES_VARIABLE}"
            )
        for file in _files(policy.spec, "spec"):
            if self.root is None:
                raise DocumentError(
                    f"{where}: field {file.field} names a file, and no folder was named whose files policies of the "
                    f"cluster may have read: set {FILES_VARIABLE} to a folder that has a folder for each namespace"
                )
            _check_location(file, self.root.resolve() / policy.metadata.namespace, where)
            if file.attribute not in _NOT_SENT:
                servers = _RECIPIENTS[file.attribute](file.model)
                _check_recipients(file, servers, self._listed_for(file.path, self.root.resolve()), where)

    def _listed_for(self, path: Path, root: Path) -> frozenset[str]:
        """Return the servers of the entry nearest to the file: its own, or that of the lowest folder above it.

        Links are resolved on both sides, as a mounted Secret is a link to a link.
        """
        target = path.resolve()
        entries: dict[Path, frozenset[str]] = {}
        for below, servers in self.hosts.items():
            location = (root / below).resolve()
            entries[location] = entries.get(location, frozenset()) | servers
        return next((entries[location] for location in (target, *target.parents) if location in entries), frozenset())


class _File(NamedTuple):
    """A file that a policy names: the whole field, its last part as an attribute of ``model``, and the path."""

    field: str
    attribute: str
    model: BaseModel
    path: Path


def _check_location(file: _File, folder: Path, where: str) -> None:
    if not file.path.is_absolute() or not file.path.resolve().is_relative_to(folder.resolve()):
        raise DocumentError(
            f"{where}: field {file.field} names a file outside {folder}: policies of namespace {folder.name} may name "
            "the files below that folder only, by their whole path"
        )


def _check_recipients(file: _File, servers: Sequence[str], listed: frozenset[str], where: str) -> None:
    if strangers := sorted(set(servers) - listed):
        raise DocumentError(
            f"{where}: field {file.field} names a secret that would be sent to {', '.join(strangers)}, and "
            f"{HOSTS_VARIABLE} lists {', '.join(sorted(listed)) or 'no server'} for it: have an administrator list the "
            "server there"
        )


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


def _addresses(text: str, port: int | None = None) -> Iterator[str]:
    """Yield the addresses of one item of a list of servers, which the clients split once more."""
    return (_address(item, port) for item in text.replace(",", ";").split(";") if item.strip())


def _address(text: str, port: int | None = None) -> str:
    """Return ``host:port`` spelt as all are compared: small letters, no brackets; ``port`` where none is written."""
    host, colon, written = text.strip().lower().rpartition(":")
    if not colon:
        host, written = written, str(port or "")
    return f"{host.removeprefix('[').removesuffix(']')}:{written}"


def _address_of_url(url: str) -> str:
    split_url = urlsplit(url)
    try:
        port = split_url.port or (443 if split_url.scheme == "https" else 80)
    except ValueError:  # no number: the reader refuses it, and no list holds it
        return url
    return f"{(split_url.hostname or '').lower()}:{port}"


def _files(model: BaseModel, name: str) -> Iterator[_File]:
    """Yield every file that the model names, however deep: a new field is checked, too."""
    for attribute, info in type(model).model_fields.items():
        value = getattr(model, attribute)
        inner = f"{name}.{info.alias or attribute}"
        if isinstance(value, Path):
            yield _File(inner, attribute, model, value)
        elif isinstance(value, BaseModel):
            yield from _files(value, inner)


def _connections(model: BaseModel, name: str) -> Iterator[str]:
    """Yield every field that may name a file and names a connection of Airflow."""
    for attribute, info in type(model).model_fields.items():
        value = getattr(model, attribute)
        inner = f"{name}.{info.alias or attribute}"
        if isinstance(value, str) and attribute in {*_RECIPIENTS, *_NOT_SENT}:
            yield inner
        elif isinstance(value, BaseModel):
            yield from _connections(value, inner)
