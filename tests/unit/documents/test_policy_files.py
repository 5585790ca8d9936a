"""A policy of the cluster gets files of its own namespace's folder, and no other, however it spells them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.deployments.policies import cluster_policies
from planner.documents import policy_files
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.source import SpecModel
from planner.documents.tenant_files import FILES_VARIABLE, HOSTS_VARIABLE, FileRules
from planner.errors import BadInputError, DocumentError


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
    monkeypatch.delenv(HOSTS_VARIABLE, raising=False)
    return tmp_path


def allow(monkeypatch: pytest.MonkeyPatch, **listed: list[str]) -> None:
    """List servers for files; ``__`` stands for a slash."""
    text = json.dumps({path.replace("__", "/"): servers for path, servers in listed.items()})
    monkeypatch.setenv(HOSTS_VARIABLE, text)


def test_a_file_of_its_own_namespace_is_taken_as_a_mounted_secret_links_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, shop=["rogue.example:9876"])
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


def test_files_of_others_are_refused_by_field(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever servers are listed: the folder rule binds a broker's password, too."""
    allow(monkeypatch, bank=["rogue.example:9876", "rogue.example:9092", "rogue.example:443"])
    for body in stolen(root):
        with pytest.raises(DocumentError, match=r"field spec\.\S+File names a file outside"):
            read(body)


def test_without_a_folder_no_policy_of_the_cluster_names_a_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILES_VARIABLE)
    own = spec(credentialsFile=str(root / "shop" / "account.yaml"))
    with pytest.raises(DocumentError, match=FILES_VARIABLE):
        read(own)
    assert read(json.loads(json.dumps(spec()))) is not None


def test_a_folder_that_is_a_link_is_named_by_its_link(root: Path, tmp_path: Path) -> None:
    """Red where only targets count: who reads the file would not know it for a tenant's by such a path."""
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount" / "kubeconfig").write_text("{}")
    (root / "linked").symlink_to(tmp_path / "mount")
    (root / "shop").rename(root / "was")
    (root / "shop").symlink_to(tmp_path / "mount")
    for path, allowed in ((root / "shop" / "kubeconfig", True), (root / "linked" / "kubeconfig", False)):
        body = {**spec(), "kubernetes": {"kubeconfigFile": str(path)}}
        if allowed:
            assert read(body) is not None
        else:
            with pytest.raises(DocumentError, match="names a file outside"):
                read(body)


SECRETS: list[tuple[str, str, str]] = [
    ("spec.source.credentialsFile", "rogue.example:9876", "account.yaml"),
    ("spec.source.propertiesFile", "rogue.example:9092", "account.yaml"),
    ("spec.source.prometheus.bearerTokenFile", "rogue.example:443", "account.yaml"),
    ("spec.source.prometheus.basicAuthFile", "rogue.example:443", "account.yaml"),
]


def naming(field: str, path: str) -> dict[str, Any]:
    """Return a policy whose field names the file, its server a rogue one."""
    name = field.rpartition(".")[2]
    if name == "propertiesFile":
        source = {"system": "kafka", "bootstrapServers": ["rogue.example:9092"], "cluster": "c", "group": "g"}
        return {**spec(), "source": {**source, name: path}}
    if "prometheus" in field:
        return spec(prometheus={"url": "https://rogue.example", name: path})
    return spec(**{name: path})


@pytest.mark.parametrize(("field", "server", "file"), SECRETS)
def test_a_secret_goes_only_to_servers_that_an_administrator_listed_for_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, field: str, server: str, file: str
) -> None:
    body = naming(field, str(root / "shop" / file))
    with pytest.raises(DocumentError, match=rf"field {field} names a secret .* {server}, and .* lists no server"):
        read(body)
    allow(monkeypatch, shop=["metrics.example:443"], bank=[server], shop__other=[server])
    with pytest.raises(
        DocumentError, match=rf"sent to {server}, and {HOSTS_VARIABLE} lists metrics.example:443 for it"
    ):
        read(body)
    for listed in ({"shop": [server]}, {f"shop__{file}": [server], "shop": ["metrics.example:443"]}):
        allow(monkeypatch, **listed)
        assert read(body) is not None


def test_an_account_goes_to_no_proxy_that_is_not_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red where only name servers are looked at: a policy's author would have the account sent to a proxy of theirs."""
    body = spec(credentialsFile=str(root / "shop" / "account.yaml"), proxies=["proxy.example:8080"])
    allow(monkeypatch, shop=["rogue.example:9876"])
    with pytest.raises(DocumentError, match=r"sent to proxy\.example:8080"):
        read(body)
    allow(monkeypatch, shop=["rogue.example:9876", "proxy.example:8080"])
    assert read(body) is not None


def test_the_entry_of_a_file_counts_before_that_of_its_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "shop" / "token").write_text("t")
    (root / "shop" / "..data").symlink_to(root / "shop")
    monkeypatch.setenv(HOSTS_VARIABLE, '{"shop": ["rogue.example:9876"], "shop/token": ["metrics.example:443"]}')
    for spelt in ("token", "..data/token", "./token", "../shop/token"):
        with pytest.raises(DocumentError, match=r"lists metrics\.example:443 for it"):
            read(spec(credentialsFile=f"{root}/shop/{spelt}"))


@pytest.mark.parametrize(
    "url",
    [
        "https://rogue.example/metrics.example:443",
        "https://metrics.example.rogue.example",
        "https://metrics.example:4430",
        "http://metrics.example",
        "https://metrics.example:443\\.rogue.example",
        "https://[::1]:443",
    ],
)
def test_a_server_that_only_looks_like_a_listed_one_gets_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    allow(monkeypatch, shop=["metrics.example:443"])
    with pytest.raises(DocumentError, match="would be sent to"):
        read(spec(prometheus={"url": url, "bearerTokenFile": str(root / "shop" / "account.yaml")}))


def test_a_listed_server_is_known_however_it_is_spelt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(root / "shop" / "account.yaml")
    allow(monkeypatch, shop=["Metrics.example:443", "[::1]:9876", "broker:9092", "other:9876"])
    for url in ("https://metrics.example/prefix", "https://METRICS.example:443"):
        assert read(spec(prometheus={"url": url, "bearerTokenFile": path})) is not None
    assert read(spec(nameServers=["[::1]:9876;other:9876", "::1:9876"], credentialsFile=path)) is not None
    kafka = {"system": "kafka", "bootstrapServers": ["broker"], "cluster": "c", "group": "g", "propertiesFile": path}
    assert read({**spec(), "source": kafka}) is not None
    for several in (["other:9876;rogue.example:9876"], ["other:9876", "rogue.example:9876"], ["other:9876,rogue:1"]):
        with pytest.raises(DocumentError, match="would be sent to rogue"):
            read(spec(nameServers=several, credentialsFile=path))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[shop]", "is no mapping"),
        ('{"/etc": ["a:1"]}', "names '/etc', expected a file or folder below"),
        ('{"shop/../bank": ["a:1"]}', "names 'shop/../bank'"),
        ('{"": ["a:1"]}', "names ''"),
        ('{"shop": ["metrics.example"]}', "lists 'metrics.example' for shop, expected a list of host:port"),
        ('{"shop": "https://metrics.example"}', "expected a list of host:port"),
        ('{"shop": [443]}', "lists 443 for shop"),
        ('{"shop": ["a:1"', HOSTS_VARIABLE),
    ],
)
def test_rules_that_cannot_be_read_are_refused(monkeypatch: pytest.MonkeyPatch, text: str, told: str) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, text)
    with pytest.raises(BadInputError) as refused:
        FileRules.of_environment()
    assert told in str(refused.value)


def test_a_controller_with_rules_that_cannot_be_read_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, "[shop]")
    words = [sys.executable, "-m", "planner.controller", "--all-namespaces", "--leader-namespace", "a"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert f"{HOSTS_VARIABLE} is no mapping" in answer.stderr


def test_every_field_that_names_a_file_is_known_to_be_sent_somewhere_or_not() -> None:
    """Red when a new field of a policy names a file, and nobody has said which server gets it."""
    parts: list[type[SpecModel]] = [SpecModel]
    for part in parts:
        parts += part.__subclasses__()
    fields = {name for part in parts for name, info in part.model_fields.items() if "Path" in str(info.annotation)}
    assert fields == policy_files._RECIPIENTS.keys() | policy_files._NOT_SENT | policy_files._NAMES_ITS_SERVER
