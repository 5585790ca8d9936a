"""Which files a policy of the cluster names, and whether it may: the rules are the administrator's (``FileRules``)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.tenant_files import FILES_VARIABLE, FileRules, address_of_url, addresses, is_within, listing
from planner.errors import DocumentError

_RECIPIENTS: Final[Mapping[str, Callable[[Any], Sequence[str]]]] = {
    "credentials_file": lambda source: [
        address for text in (*source.name_servers, *(source.proxies or ())) for address in addresses(text)
    ],
    "properties_file": lambda source: [
        address for text in source.bootstrap_servers for address in addresses(text, 9092)
    ],
    "bearer_token_file": lambda prometheus: [address_of_url(prometheus.url)],
    "basic_auth_file": lambda prometheus: [address_of_url(prometheus.url)],
}
"""Field that names a secret -> the servers that the same part of the policy has it sent to."""
_NOT_SENT: Final = frozenset({"ca_file", "certificate_file", "key_file"})
"""Certificates are public, and a private key proves and is not sent."""
_NAMES_ITS_SERVER: Final = frozenset({"kubeconfig_file"})
"""Read as what it is, a tenant's file: ``planner.sources.kubernetes.tenant_kubeconfig`` checks what stands in it."""


def check_files(policy: ConsumerScalingPolicy, rules: FileRules, where: str) -> None:
    """Raise ``DocumentError`` for a file outside the namespace's folder, links resolved, for a secret whose server
    is not listed for it, and for a connection of Airflow: no list says which of these a namespace may have.

    What stands in the files themselves is checked when they are read: ``tenant_file``.
    """
    for name in _connections(policy.spec, "spec"):
        raise DocumentError(
            f"{where}: field {name} names a connection of Airflow, which a policy of the cluster may not: name a "
            f"file below {FILES_VARIABLE}"
        )
    for file in _files(policy.spec, "spec"):
        if rules.root is None:
            raise DocumentError(
                f"{where}: field {file.field} names a file, and no folder was named whose files policies of the "
                f"cluster may have read: set {FILES_VARIABLE} to a folder that has a folder for each namespace"
            )
        _check_location(file, rules, rules.root.resolve() / policy.metadata.namespace, where)
        if file.attribute in _RECIPIENTS:
            _check_recipients(file, _RECIPIENTS[file.attribute](file.model), rules.listed_for(file.path), where)


class _File(NamedTuple):
    """A file that a policy names: the whole field, its last part as an attribute of ``model``, and the path."""

    field: str
    attribute: str
    model: BaseModel
    path: Path


def _check_location(file: _File, rules: FileRules, folder: Path, where: str) -> None:
    # Whoever reads the file knows it for a tenant's by its path, so the path as written has to show it, too.
    if rules.namespace_folder(file.path) != folder or not is_within(file.path, folder):
        raise DocumentError(
            f"{where}: field {file.field} names a file outside {folder}: policies of namespace {folder.name} may name "
            "the files below that folder only, by their whole path"
        )


def _check_recipients(file: _File, servers: Sequence[str], listed: frozenset[str], where: str) -> None:
    if strangers := sorted(set(servers) - listed):
        raise DocumentError(
            f"{where}: field {file.field} names a secret that would be sent to {', '.join(strangers)}, and "
            f"{listing(listed)} for it: have an administrator list the server there"
        )


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
        if isinstance(value, str) and attribute in {*_RECIPIENTS, *_NOT_SENT, *_NAMES_ITS_SERVER}:
            yield inner
        elif isinstance(value, BaseModel):
            yield from _connections(value, inner)
