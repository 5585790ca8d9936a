"""A kubeconfig that a tenant may have written: read here, and only what cannot harm us is handed to the client.

The official client would start the program of ``users[].user.exec``, read whatever file a path names and send it, and
take a path with a colon for several files. So it gets no path, but one context, cluster and user out of the content,
of fields that are known to be harmless.
"""

from collections.abc import Mapping
from typing import Any, Final

from planner.documents.tenant_files import TenantFile
from planner.documents.yaml import load_yaml
from planner.errors import BadInputError

_MOST_BYTES: Final = 256 * 1024
"""A Secret holds 1 MiB at most, a kubeconfig with its certificates some 10 KB."""
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "context": frozenset({"cluster", "user", "namespace", "extensions"}),
    "cluster": frozenset(
        {"server", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name", "extensions"}
    ),
    "user": frozenset({"token", "username", "password", "client-certificate-data", "client-key-data", "extensions"}),
}
"""All that a tenant's file may state of each; kubectl knows programs, files, proxies and impersonation besides."""


def tenant_kubeconfig(file: TenantFile, context: str | None) -> dict[str, Any]:
    """Return the file's context of this name, else its current one, with cluster and user, as a kubeconfig.

    Raises ``BadInputError`` that names what it states beyond that, or the server that is not listed for the file.
    """
    content = _read(file)
    name = context or content.get("current-context")
    chosen = _entry(file, content, "context", name)
    cluster = _entry(file, content, "cluster", chosen.get("cluster"))
    user = _entry(file, content, "user", chosen.get("user"))
    file.check_url(f"clusters[{chosen['cluster']}].cluster.server", cluster.get("server"))
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": chosen}],
        "clusters": [{"name": chosen["cluster"], "cluster": cluster}],
        "users": [{"name": chosen["user"], "user": user}],
    }


def _read(file: TenantFile) -> Mapping[str, Any]:
    try:
        with file.path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadInputError(f"the kubeconfig {file.path} cannot be read: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise BadInputError(f"the kubeconfig {file.path} has more than {_MOST_BYTES} bytes: leave one context in it")
    content = load_yaml(text.decode("utf-8", "replace"), f"the kubeconfig {file.path}")
    if not isinstance(content, dict):
        raise BadInputError(f"{file.path} is no kubeconfig: name a file that kubectl works with")
    return content


def _entry(file: TenantFile, content: Mapping[str, Any], kind: str, name: object) -> dict[str, Any]:
    """Return what the file states of the one context, cluster or user of this name."""
    listed = content.get(f"{kind}s")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    named = [entry.get(kind) for entry in entries if isinstance(name, str) and entry.get("name") == name]
    if len(named) != 1 or not isinstance(named[0], dict):
        raise BadInputError(f"{file.path}: expected one {kind} named {name}: name one that it holds")
    if beyond := sorted(map(str, named[0].keys() - _FIELDS[kind])):
        raise BadInputError(
            f"{file.path}: {kind}s[{name}].{kind}.{beyond[0]} is not taken from a tenant's file, which may start no "
            f"program and name no file or proxy: expected {', '.join(sorted(_FIELDS[kind] - {'extensions'}))}"
        )
    stated = {key: value for key, value in named[0].items() if key != "extensions"}
    if others := sorted(key for key, value in stated.items() if not isinstance(value, str | bool)):
        raise BadInputError(f"{file.path}: {kind}s[{name}].{kind}.{others[0]} is no text: correct it")
    return stated
