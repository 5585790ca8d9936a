"""What a container has from its image and its service account, where there are neither images nor volumes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.clusters.kubernetes.rest import Json, Rest

TOKEN_S = 3_607
"""What a kubelet asks for; it renews them, the stand-in does not."""


@dataclass(frozen=True)
class Image:
    """What an image says of the process in it: its entry point and environment, as built on this machine."""

    entry_point: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def completed(self, container: Json) -> Json:
        """Return the container with what it leaves to the image; its own command and variables take precedence."""
        variables = [{"name": name, "value": value} for name, value in self.environment.items()]
        command = container.get("command") or list(self.entry_point)
        return {**container, "command": command, "env": [*variables, *container.get("env", ())]}


def credentials(api: Rest, pod: Json, directory: Path) -> dict[str, str]:
    """Return variables by which a pod's processes are its service account at the API server.

    A kubelet mounts the token where clients look for it; here a kubeconfig with a token that is bound to the pod stands
    in. Only for pods that mount one and have an account of their own. Raises ApiError.
    """
    account = pod["spec"].get("serviceAccountName", "default")
    if account == "default" or not _mounts_token(pod):
        return {}
    meta = pod["metadata"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
    granted = api.create(path, {"spec": {"expirationSeconds": TOKEN_S, "boundObjectRef": bound}})
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "here", "cluster": {"server": api.server, "certificate-authority": str(api.ca_file)}},
        ],
        "users": [{"name": account, "user": {"token": granted["status"]["token"]}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": account, "namespace": meta["namespace"]}}],
        "current-context": "here",
    }
    file = directory / "service-account.kubeconfig"
    directory.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(content))
    return {"KUBECONFIG": str(file)}


def _mounts_token(pod: Json) -> bool:
    sources = [
        source for one in pod["spec"].get("volumes", ()) for source in one.get("projected", {}).get("sources", ())
    ]
    return any("serviceAccountToken" in source for source in sources)
