"""A container's environment, resolved as the kubelet does: values, the pod's own fields, ConfigMaps and Secrets."""

import base64
import re
from collections.abc import Callable, Mapping

from tests.clusters.kubernetes.container import expand
from tests.clusters.kubernetes.rest import ApiError, Json

Read = Callable[[str], Json]
"""Path below the pod's namespace, such as ``configmaps/settings``, to the object; raises ApiError."""


class ConfigError(Exception):
    """A key, object or field that the environment refers to is not there."""


def environment(container: Json, pod: Json, address: str, host: str, read: Read) -> dict[str, str]:
    """Return name -> value, later entries overriding earlier ones and able to refer to them; raise ConfigError."""
    values: dict[str, str] = {}
    for source in container.get("envFrom", []):
        prefix = source.get("prefix", "")
        values |= {prefix + key: value for key, value in _whole(source, read).items()}
    for entry in container.get("env", []):
        if (value := _value(entry, pod, address, host, read, values)) is not None:
            values[entry["name"]] = value
    return values


def _value(entry: Json, pod: Json, address: str, host: str, read: Read, known: Mapping[str, str]) -> str | None:
    source = entry.get("valueFrom")
    if source is None:
        return expand(entry.get("value", ""), known)
    if "fieldRef" in source:
        return _field(source["fieldRef"]["fieldPath"], pod, address, host)
    kind, reference = next(iter(source.items()))
    if kind not in ("configMapKeyRef", "secretKeyRef"):
        raise ConfigError(f"{entry['name']}: {kind} is not simulated")
    data = _data("configmaps" if kind == "configMapKeyRef" else "secrets", reference, read)
    if reference["key"] not in data and not reference.get("optional"):
        raise ConfigError(f"{entry['name']}: no key {reference['key']} in {reference['name']}")
    return data.get(reference["key"])


def _whole(source: Json, read: Read) -> dict[str, str]:
    if "configMapRef" in source:
        return _data("configmaps", source["configMapRef"], read)
    return _data("secrets", source["secretRef"], read)


def _data(kind: str, reference: Json, read: Read) -> dict[str, str]:
    try:
        data = read(f"{kind}/{reference['name']}").get("data") or {}
    except ApiError as error:
        if error.status == 404 and reference.get("optional"):
            return {}
        raise ConfigError(f"{kind} {reference['name']}: {error}") from error
    if kind == "secrets":
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    return dict(data)


def _field(path: str, pod: Json, address: str, host: str) -> str:
    if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return str(pod["metadata"].get(found[1], {}).get(found[2], ""))
    known = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "metadata.uid": pod["metadata"]["uid"],
        "spec.nodeName": pod["spec"]["nodeName"],
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": host,
        "status.hostIPs": host,
    }
    if path not in known:
        raise ConfigError(f"fieldRef {path} is not simulated")
    return str(known[path])
