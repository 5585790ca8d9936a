"""Secrets from connections of Airflow: which field is what, where none can be read, and that no sentence holds one."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.policy import parse_policy
from planner.errors import BadInputError
from planner.sources.connections import Connection, connection, lent
from planner.sources.kafka import KafkaSettings
from planner.sources.kubernetes import KubernetesApi
from planner.sources.live import open_group
from planner.sources.prometheus import Access
from planner.sources.rocketmq import Credentials
from tests.sample_builders import POLICY, kafka_policy

MARKER = "m4rker-s3cret"
SHOP = "airflow://shop"


def shop(login: str = "planner", password: str = MARKER, extra: object = None) -> Callable[[str], Connection]:
    """Return a lender of one connection, whose extra may be text or what is JSON."""
    text = extra if isinstance(extra, str) else json.dumps(extra or {})
    return lambda name: Connection(f"airflow://{name}", login, password, text)


def test_a_policy_may_name_a_connection_where_it_may_name_a_file() -> None:
    text = POLICY.replace("group: shop}", f"group: shop, credentialsFile: '{SHOP}'}}")
    assert parse_policy(text, "p").spec.source.model_dump()["credentials_file"] == SHOP
    as_file = POLICY.replace("group: shop}", "group: shop, credentialsFile: /secrets/account}")
    assert parse_policy(as_file, "p").spec.source.model_dump()["credentials_file"] == Path("/secrets/account")


@pytest.mark.parametrize("system", ["rocketmq", "kafka"])
def test_outside_of_airflow_a_group_with_a_connection_is_one_sentence(system: str) -> None:
    """Red when the reference is taken for a file's name."""
    account = "credentialsFile" if system == "rocketmq" else "propertiesFile"
    text = POLICY if system == "rocketmq" else kafka_policy("127.0.0.1:1", "shop")
    policy = parse_policy(text.replace("group: shop}", f"group: shop, {account}: '{SHOP}'}}"), "p")
    said = f"{SHOP} is a connection of Airflow, which only its tasks can read: run the DAG"
    with pytest.raises(BadInputError, match=said), open_group(policy) as look:
        look(datetime.now(UTC))


def test_kafka_takes_login_and_extra() -> None:
    extra = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "bootstrap.servers": "elsewhere:9092"}
    with lent(shop(extra={**extra, "enable.ssl.certificate.verification": False})):
        settings = KafkaSettings.read(SHOP)
    assert dict(settings.properties) == {
        "sasl.username": "planner",
        "sasl.password": MARKER,
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "enable.ssl.certificate.verification": "false",
    }
    assert MARKER not in repr(settings)


def test_rocketmq_prometheus_and_kubernetes_take_their_fields() -> None:
    with lent(shop(extra={"securityToken": "t0ken"})):
        assert Credentials.read(SHOP) == Credentials("planner", MARKER, "t0ken")
        assert Access("http://p:9090", bearer_token_file=SHOP).headers() == {"Authorization": f"Bearer {MARKER}"}
        basic = Access("http://p:9090", basic_auth_file=SHOP).headers()["Authorization"]
    assert basic == "Basic cGxhbm5lcjptNHJrZXItczNjcmV0"
    kubeconfig = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://api:6443"}}],
        "users": [{"name": "u", "user": {"token": MARKER}}],
    }
    for form in (kubeconfig, json.dumps(kubeconfig)):
        with lent(shop(extra={"kube_config": form})), KubernetesApi.connect(SHOP) as api:
            assert api.server == "https://api:6443"


@pytest.mark.parametrize(
    ("read", "lender", "said"),
    [
        (Credentials.read, shop(login=""), "lacks login (the access key)"),
        (KafkaSettings.read, shop(extra=f'{{"sasl.password": "{MARKER}'), "extra of airflow://shop is no JSON"),
        (KafkaSettings.read, shop(extra={"sasl.login.class": MARKER}), "shop: property sasl.login.class means"),
        (KubernetesApi.connect, shop(extra={"kube_config": f"{{{MARKER}"}), "has no kubeconfig in field kube_config"),
        (KubernetesApi.connect, shop(extra={"kube_config": {"users": MARKER}}), "the kubeconfig airflow://shop cannot"),
        (lambda name: Access("http://p", name).headers(), shop(password=f"{MARKER}\n"), "has several lines"),
    ],
)
def test_what_is_wrong_with_a_connection_is_said_without_its_secrets(
    read: Callable[[str], object], lender: Callable[[str], Connection], said: str
) -> None:
    with lent(lender), pytest.raises(BadInputError) as raised:
        read(SHOP)
    assert said in str(raised.value)
    told = [raised.value, raised.value.__cause__]
    assert MARKER not in "".join(f"{one!r}{one}" for one in told)
    assert MARKER not in repr(lender("shop"))


def test_a_lender_is_forgotten_after_an_error() -> None:
    with pytest.raises(RuntimeError), lent(shop()):
        raise RuntimeError
    with pytest.raises(BadInputError, match="only its tasks can read"):
        connection(SHOP)
