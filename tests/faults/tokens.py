"""``ShortToken``: a service account's token in a file, that can be taken back and renewed; as kubelet does for pods."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import ApiError, Rest

BOUND = "bound"


@dataclass(frozen=True)
class ShortToken:
    """A token that the server takes for as long as the Secret is there to which it is bound."""

    cluster: ControlPlane
    namespace: str
    account: str
    text: str
    file: Path

    @classmethod
    def make(cls, cluster: ControlPlane, namespace: str, account: str, folder: Path) -> "ShortToken":
        """Make a token and write it into a file."""
        secret = cluster.rest.create(f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": BOUND}})
        bound = {"apiVersion": "v1", "kind": "Secret", "name": BOUND, "uid": secret["metadata"]["uid"]}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        made = cluster.rest.create(path, {"spec": {"boundObjectRef": bound}})
        file = folder / f"{namespace}-{account}.token"
        file.write_text(made["status"]["token"], encoding="utf-8")
        return cls(cluster, namespace, account, str(made["status"]["token"]), file)

    def kubeconfig(self) -> Path:
        """Return a kubeconfig that names the file, and not the token."""
        path = self.cluster.kubeconfig_for("", f"{self.namespace}-{self.account}-file")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["users"][0]["user"] = {"tokenFile": str(self.file)}
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    def renew(self) -> None:
        """Write another token into the file."""
        self.file.write_text(self.cluster.token(self.namespace, self.account), encoding="utf-8")

    def end(self) -> None:
        """Have the server take the first token no more; it remembers for some seconds that it was good."""
        self.cluster.rest.delete(f"/api/v1/namespaces/{self.namespace}/secrets/{BOUND}")
        bearer = Rest(self.cluster.server, self.cluster.ca_file, self.text)

        def is_refused() -> bool:
            try:
                bearer.get("/api")
            except ApiError as error:
                return error.status == 401
            return False

        self.cluster.wait_until("the token's end", is_refused)
