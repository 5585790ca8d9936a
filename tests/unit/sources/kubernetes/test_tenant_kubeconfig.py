"""A kubeconfig in a tenant's folder starts no program, reads no file and names no server of its author's choice."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from planner.documents.tenant_files import FILES_VARIABLE, HOSTS_VARIABLE
from planner.errors import BadInputError
from planner.sources.kubernetes import KubernetesApi

SERVER = "https://cluster.example:6443"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of namespace ``shop``, whose files may be sent to ``SERVER``; another tenant's account beside it."""
    for namespace in ("shop", "bank"):
        (tmp_path / "tenants" / namespace).mkdir(parents=True)
    (tmp_path / "tenants" / "bank" / "token").write_text("of the bank")
    monkeypatch.setenv(FILES_VARIABLE, str(tmp_path / "tenants"))
    monkeypatch.setenv(HOSTS_VARIABLE, '{"shop": ["cluster.example:6443"]}')
    return tmp_path / "tenants" / "shop"


def kubeconfig(path: Path, user: dict[str, Any] | None = None, **cluster: Any) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "extensions": []}}],
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **cluster}}],
        "users": [{"name": "u", "user": {"token": "own"} if user is None else user}],
    }
    path.write_text(json.dumps(content))
    return path


def test_an_own_token_and_certificates_reach_the_listed_server(folder: Path) -> None:
    authority = base64.b64encode(b"a certificate").decode()
    path = kubeconfig(folder / "kubeconfig", **{"certificate-authority-data": authority})
    with KubernetesApi.connect(path) as api, KubernetesApi.connect(path, "main") as named:
        assert api.server == named.server == SERVER
        assert "Bearer own" in api._client.configuration.api_key.values()


def program(marker: Path) -> dict[str, Any]:
    script = f'touch {marker}; echo \'{{"apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"x"}}}}\''
    call = {"command": "sh", "args": ["-c", script], "interactiveMode": "Never"}
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", **call}}


def test_a_tenants_file_starts_no_program_and_an_administrators_own_does(folder: Path, tmp_path: Path) -> None:
    """Red before: the official client runs what the file names, in the planner's process."""
    marker = tmp_path / "ran"
    with pytest.raises(BadInputError, match=r"users\[u\]\.user\.exec is not taken from a tenant's file"):
        KubernetesApi.connect(kubeconfig(folder / "kubeconfig", program(marker)))
    assert not marker.exists()
    for own in (tmp_path / "own", folder.parent / "beside-the-namespaces"):
        KubernetesApi.connect(kubeconfig(own, program(marker))).close()
        assert marker.exists()
        marker.unlink()


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"tokenFile": "TENANTS/bank/token"}, {}),
        ({"client-certificate": "TENANTS/bank/token", "client-key": "TENANTS/bank/token"}, {}),
        ({"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://rogue.example"}}}, {}),
        ({"token": "own", "as": "system:admin"}, {}),
        ({"token": {"a": 1}}, {}),
        (None, {"certificate-authority": "TENANTS/bank/token"}),
        (None, {"proxy-url": "http://rogue.example:8080"}),
        (None, {"server": "https://rogue.example"}),
        (None, {"server": "http://cluster.example:6443@rogue.example"}),
        (None, {"server": "https://rogue.example\\@cluster.example:6443"}),
        (None, {"server": "https://cluster.example:6443\\.rogue.example"}),
        (None, {"server": 5}),
    ],
)
def test_no_file_proxy_or_server_is_taken_from_it(
    folder: Path, user: dict[str, Any] | None, cluster: dict[str, Any]
) -> None:
    text = kubeconfig(folder / "kubeconfig", user, **cluster).read_text().replace("TENANTS", str(folder.parent))
    (folder / "kubeconfig").write_text(text)
    with pytest.raises(BadInputError, match=r"kubeconfig: (users|clusters)\[[cu]\]\.(user|cluster)\.\S+ ") as refused:
        KubernetesApi.connect(folder / "kubeconfig")
    assert "of the bank" not in str(refused.value)


def test_a_path_with_a_colon_is_one_file_and_no_list(folder: Path) -> None:
    """Red before: the client reads a path with a colon as several, the second of them anybody's."""
    kubeconfig(folder.parent / "bank" / "kubeconfig", {"token": "of the bank"})
    both = Path(f"{folder}/absent:{folder.parent}/bank/kubeconfig")
    with pytest.raises(BadInputError, match=r"absent:.* cannot be read"):
        KubernetesApi.connect(both)


def test_a_link_out_of_the_namespace_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "kubeconfig").symlink_to(kubeconfig(tmp_path / "elsewhere"))
    with pytest.raises(BadInputError, match="leads outside"):
        KubernetesApi.connect(folder / "kubeconfig")


@pytest.mark.parametrize("text", ["", "[]", "a: &a [*a]", "contexts: 5", "x" * 300_000, '{"current-context": ["a"]}'])
def test_what_is_no_kubeconfig_is_refused_with_a_sentence(folder: Path, text: str) -> None:
    (folder / "kubeconfig").write_text(text)
    with pytest.raises(BadInputError, match="kubeconfig"):
        KubernetesApi.connect(folder / "kubeconfig")
