"""A policy of the cluster gets files of its own namespace's folder, and no other, however it spells them."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.deployments.policies import cluster_policies
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_files import FILES_VARIABLE
from planner.errors import DocumentError


def spec(**source: Any) -> dict[str, Any]:
    place = {"system": "rocketmq", "nameServers": ["rogue.example:9876"], "cluster": "c", "group": "g", **source}
    return {"source": place, "scaleTargetRef": {"name": "app"}, "maxReplicas": 8}


class Server:
    """An API server that has one policy."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    def policy(self, _namespace: str, _name: str) -> dict[str, Any]:
        return {"apiVersion": "consumerplanner.dev/v1alpha1", "kind": "ConsumerScalingPolicy", "spec": self.body}


def read(body: dict[str, Any]) -> ConsumerScalingPolicy | None:
    return cluster_policies(Server(body), "shop")("billing")  # type: ignore[arg-type]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the administrator's with the accounts of two tenants."""
    for namespace in ("shop", "bank"):
        (tmp_path / namespace).mkdir()
        (tmp_path / namespace / "account.yaml").write_text("accessKey: a\nsecretKey: b\n")
    monkeypatch.setenv(FILES_VARIABLE, str(tmp_path))
    return tmp_path


def test_a_file_of_its_own_namespace_is_taken_as_a_mounted_secret_links_it(root: Path) -> None:
    (root / "shop" / "..data").symlink_to(root / "shop")
    linked = root / "shop" / "linked.yaml"
    linked.symlink_to(Path("..data") / "account.yaml")
    for path in (root / "shop" / "account.yaml", linked):
        found = read(spec(credentialsFile=str(path)))
        assert found is not None


def stolen(root: Path) -> list[dict[str, Any]]:
    """Return policies that ask for others' files, one for each field that names one."""
    (root / "shop" / "link.yaml").symlink_to(root / "bank" / "account.yaml")
    bank = str(root / "bank" / "account.yaml")
    paths = [bank, "/etc/passwd", f"{root}/shop/../bank/account.yaml", str(root / "shop" / "link.yaml"), "shop/a.yaml"]
    kafka = {"system": "kafka", "bootstrapServers": ["rogue.example:9092"], "cluster": "c", "group": "g"}
    prometheus = {"url": "https://rogue.example"}
    return [
        *(spec(credentialsFile=path) for path in paths),
        *(spec(tls={field: bank}) for field in ("caFile", "certificateFile", "keyFile")),
        *(spec(prometheus={**prometheus, field: bank}) for field in ("bearerTokenFile", "basicAuthFile", "caFile")),
        {**spec(), "source": {**kafka, "propertiesFile": bank}},
        {**spec(), "kubernetes": {"kubeconfigFile": bank}},
    ]


def test_files_of_others_are_refused_by_field(root: Path) -> None:
    for body in stolen(root):
        with pytest.raises(DocumentError, match=r"field spec\.\S+File names a file outside"):
            read(body)


def test_without_a_folder_no_policy_of_the_cluster_names_a_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILES_VARIABLE)
    own = spec(credentialsFile=str(root / "shop" / "account.yaml"))
    with pytest.raises(DocumentError, match=FILES_VARIABLE):
        read(own)
    assert read(json.loads(json.dumps(spec()))) is not None
