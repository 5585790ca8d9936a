"""What an API server, or whatever listens at its address, can do to us: each a named error by its deadline."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.errors import BadInputError, OutOfReachError, PlannerError
from planner.sources.kubernetes import AnswerError, ForbiddenError, KubernetesApi, NotLetInError, read_workload
from planner.sources.kubernetes.kubeconfig import own_namespace
from tests.unit.sources.kubernetes.fake_server import (
    Answer,
    fake_server,
    hangs_up,
    kubeconfig,
    says,
    says_json,
    says_nothing,
    trickles,
)

STATUS = {"kind": "Status", "message": 'deployments.apps "app" is forbidden: User "u" cannot get'}


def read(path: Path, deadline_s: float = 10.0) -> None:
    with KubernetesApi.connect(path, deadline_s=deadline_s) as api:
        read_workload(api, "shop", "app", datetime.now(UTC))


def connect(folder: Path, url: str) -> KubernetesApi:
    return KubernetesApi.connect(kubeconfig(folder, url))


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (says(b"<html>It works!</html>"), AnswerError, "no JSON but '<html>It works!</html>'"),
        (says(b""), AnswerError, "no JSON but ''"),
        (says(b"\xff\xfe\x00"), AnswerError, "no JSON"),
        (says(b"[1, 2]"), AnswerError, "no Kubernetes object but"),
        (says(b"[" * 100_000), AnswerError, "no JSON"),
        (says_json({"kind": "Deployment"}), AnswerError, "lacks what Kubernetes sends: KeyError 'metadata'"),
        (says_json({"metadata": 3, "spec": []}), AnswerError, "lacks what Kubernetes sends"),
        (says_json(STATUS, 401), NotLetInError, "does not know us.*is forbidden.*renew the token"),
        (says_json(STATUS, 403), ForbiddenError, "does not allow it.*cannot get.*k8s/rbac"),
        (says(b"Forbidden by proxy", 403), ForbiddenError, "Forbidden by proxy"),
        (says_json({"message": "slow down"}, 429), OutOfReachError, "too much to do.*slow down"),
        (says_json({"message": "etcdserver: leader changed"}, 500), AnswerError, "answered 500: etcdserver"),
        (says(b"x" * 100_000, 502), AnswerError, "answered 502: x{300}…$"),
        (says(b"", 302), AnswerError, "answered 302"),
        (hangs_up, OutOfReachError, "cannot be reached"),
        (lambda client: client.close(), OutOfReachError, "cannot be reached"),
        (lambda client: client.sendall(b"\x16\x03\x01garbage\r\n\r\n"), OutOfReachError, "cannot be reached"),
    ],
)  # fmt: skip
def test_a_bad_answer_is_a_named_error(tmp_path: Path, answer: Answer, error: type[PlannerError], told: str) -> None:
    with fake_server(answer) as (url, seen):
        with pytest.raises(error, match=told) as raised:
            read(kubeconfig(tmp_path, url))
        assert type(raised.value) is error
        assert url in str(raised.value)
        assert "Deployment shop/app" in str(raised.value)
        assert len(seen) == 1  # asked once: no retry makes the deadline longer
        assert raised.value.exit_code == 3


@pytest.mark.parametrize("answer", [says_nothing, trickles])
def test_no_answer_is_given_up_at_the_deadline(tmp_path: Path, answer: Callable[..., None]) -> None:
    told = r"get Deployment shop/app: no answer within 0.5 s"
    with fake_server(answer) as (url, _), pytest.raises(OutOfReachError, match=told):
        read(kubeconfig(tmp_path, url), deadline_s=0.5)


def test_the_sockets_own_limit_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it may be over before the deadline is."""
    monkeypatch.setattr("planner.sources.kubernetes.api.call_within", lambda _deadline_s, _what, call: call())
    told = r"get Deployment shop/app: no answer within 0.5 s"
    with fake_server(says_nothing) as (url, _), pytest.raises(OutOfReachError, match=told):
        read(kubeconfig(tmp_path, url), deadline_s=0.5)


def test_nobody_listens(tmp_path: Path) -> None:
    with fake_server() as (url, _):
        pass
    with pytest.raises(OutOfReachError, match=r"cannot be reached: get Deployment shop/app: .*refused"):
        read(kubeconfig(tmp_path, url))


def test_a_list_that_expires_while_we_turn_its_pages_is_read_again(tmp_path: Path) -> None:
    def page(names: list[str], more: str = "") -> Answer:
        return says_json({"metadata": {"continue": more}, "items": [{"name": name} for name in names]})

    expired = says_json({"reason": "Expired", "message": "the provided continue parameter is too old"}, 410)
    with fake_server(page(["a"], "more"), expired, page(["a"], "more"), page(["b"])) as (url, seen):
        assert [one["name"] for one in connect(tmp_path, url).pods("shop")] == ["a", "b"]
    assert [line.count("continue=more") for line in seen] == [0, 1, 0, 1]


def test_a_list_that_always_expires_is_given_up(tmp_path: Path) -> None:
    page = says_json({"metadata": {"continue": "more"}, "items": []})
    expired = says_json({"reason": "Expired", "message": "too old"}, 410)
    with fake_server(page, expired, page, expired) as (url, seen), pytest.raises(AnswerError, match="answered 410"):
        connect(tmp_path, url).pods("shop")
    assert len(seen) == 4


def test_empty_lists_may_be_null(tmp_path: Path) -> None:
    with fake_server(says_json({"metadata": {}, "items": None})) as (url, _):
        assert connect(tmp_path, url).pods(None) == []


def test_a_list_of_another_shape_is_refused(tmp_path: Path) -> None:
    with fake_server(says_json({"items": {}})) as (url, _), pytest.raises(AnswerError, match="no list"):
        connect(tmp_path, url).pods(None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Invalid kube-config"),
        ("just words", "cannot be used"),
        ("a: [", "cannot be used"),
        ("[]", "cannot be used"),
        ("apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n", "cannot be used"),
    ],
)
def test_a_broken_kubeconfig_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(BadInputError, match=told) as raised:
        KubernetesApi.connect(path)
    assert str(path) in str(raised.value)


def test_a_kubeconfig_or_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="absent"):
        KubernetesApi.connect(tmp_path / "absent")
    with pytest.raises(BadInputError, match=r"context nowhere, cannot be used.*nowhere"):
        KubernetesApi.connect(kubeconfig(tmp_path, "http://127.0.0.1:1"), context="nowhere")


def test_where_no_kubeconfig_is_it_is_said_where_one_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubernetes.config import kube_config

    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    for read in (KubernetesApi.connect, lambda: own_namespace(None)):
        with pytest.raises(BadInputError, match=r"found no kubeconfig at .*none, and this is no pod: .*--kubeconfig"):
            read()
    (tmp_path / "none").write_text("just words")
    with pytest.raises(BadInputError, match="the default kubeconfig cannot be used"):
        KubernetesApi.connect()


def test_in_a_pod_the_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes.config import incluster_config

    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("ca")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    api = KubernetesApi.connect()
    assert api.server == "https://10.96.0.1:443"


def test_a_sign_in_program_that_never_ends_is_given_up_and_the_file_is_left_as_it_was(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    program = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sleep",
        "args": ["3"],
        "interactiveMode": "Never",
    }
    text = path.read_text().replace("user: {token: t}", f"user: {{exec: {json.dumps(program)}}}")
    path.write_text(text)
    with pytest.raises(OutOfReachError, match=r"kubeconfig .*no answer within 0.5 s"):
        KubernetesApi.connect(path, deadline_s=0.5)
    assert path.read_text() == text
