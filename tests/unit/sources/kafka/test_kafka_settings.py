"""Properties files in both dialects; what has no sure translation is refused by its name, and no value is ever told."""

from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.sources.kafka import KafkaAdmin, KafkaSettings
from planner.sources.kafka.connection import Address, can_connect

MODULES = "org.apache.kafka.common.security"
SECRET = "p4ss=w,rd!"


def read(tmp_path: Path, text: str) -> KafkaSettings:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return KafkaSettings.read(path)


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ("security.protocol=ssl", {"security.protocol": "SSL"}),
        ("  security.protocol : SSL\n! a comment\n\n#another", {"security.protocol": "SSL"}),
        ("bootstrap.servers=elsewhere:9092", {}),
        (
            "security.protocol=SASL_SSL\r\nsasl.mechanism=PLAIN\r\n"
            f'sasl.jaas.config={MODULES}.plain.PlainLoginModule required username="u" password="{SECRET}";',
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanisms": "PLAIN",
                "sasl.username": "u",
                "sasl.password": SECRET,
            },
        ),
        (
            f"sasl.jaas.config={MODULES}.scram.ScramLoginModule required \\\n"
            "   username='u' \\\n"
            '   password="a\\\\"b" ;',
            {"sasl.username": "u", "sasl.password": 'a"b'},
        ),
        ("ssl.endpoint.identification.algorithm=", {"ssl.endpoint.identification.algorithm": "none"}),
        ("ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem", {"ssl.ca.location": "/ca.pem"}),
        (
            "ssl.keystore.location=/c.p12\nssl.keystore.password=x",
            {"ssl.keystore.location": "/c.p12", "ssl.keystore.password": "x"},
        ),
        (
            "ssl.keystore.type=PEM\nssl.keystore.location=/c.pem",
            {"ssl.certificate.location": "/c.pem", "ssl.key.location": "/c.pem"},
        ),
    ],
)
def test_java_names_become_librdkafkas(tmp_path: Path, java: str, librdkafka: dict[str, str]) -> None:
    assert read(tmp_path, java).properties == librdkafka


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("group.id=g", r"property group\.id has no use here"),
        ("ssl.truststore.location=/store.jks", "Java key store: export its certificates as PEM"),
        ("ssl.keystore.location=/store.jks", "Java key store: give certificate and key as PEM"),
        ("sasl.login.callback.handler.class=x.Y", "means something to Java clients only"),
        ("sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required;", "not one of PlainLoginModule"),
        (f"sasl.jaas.config={MODULES}.plain.PlainLoginModule required username=u;", "lacks username or password"),
        ("security.protocol=TLS", "none of PLAINTEXT, SSL"),
        ("security.protocol=SASL_SSL", r"wants sasl\.mechanism"),
        ("sasl.username=a\nsasl.username=b", "stands there twice"),
        ("security.protocol", "line 1 is no property"),
        (
            f"sasl.username=other\nsasl.jaas.config={MODULES}.plain.PlainLoginModule required username=u password=p;",
            r"contradicts another one on sasl\.username",
        ),
    ],
)
def test_what_cannot_be_translated_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "client.properties") in str(caught.value)


def test_no_value_is_ever_told(tmp_path: Path) -> None:
    secrets = {"sasl.password": SECRET, "sasl.oauthbearer.client.secret": "cl13nt", "ssl.key.password": "k3yw0rd"}
    settings = read(tmp_path, "".join(f"{name}={value}\n" for name, value in secrets.items()))
    assert settings.properties == secrets
    assert not [value for value in secrets.values() if value in repr(settings)]
    assert settings.redacted(f"wrong: {SECRET}/cl13nt/k3yw0rd") == "wrong: (hidden)/(hidden)/(hidden)"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"cannot read the Kafka properties .*No such file"):
        KafkaSettings.read(tmp_path / "nowhere.properties")


def test_librdkafka_refuses_a_value_without_telling_a_secret() -> None:
    settings = KafkaSettings({"sasl.password": SECRET, "broker.address.family": f"v5 {SECRET}"})
    with pytest.raises(BadInputError, match="the Kafka properties cannot be used") as caught:
        KafkaAdmin(["127.0.0.1:1"], settings=settings, own_connections=False)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, ""),
        ({"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN"}, ""),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism GSSAPI is left to librdkafka"),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/c.p12"},
            "ssl.keystore.location is left to librdkafka",
        ),
    ],
)
def test_what_we_cannot_do_ourselves_is_left_to_the_library(properties: dict[str, str], reason: str) -> None:
    assert can_connect(KafkaSettings(properties)) == reason


@pytest.mark.parametrize("text", ["", "host", "host:", "host:0", "host:70000", "host:x", "::1:9092", ":9092"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="no Kafka address"):
        Address.parse(text)


def test_addresses_are_read_and_written() -> None:
    assert [str(Address.parse(one)) for one in ("kafka-0.svc:9092", "[::1]:9092")] == ["kafka-0.svc:9092", "[::1]:9092"]
    with pytest.raises(BadInputError, match="no Kafka bootstrap server"):
        KafkaAdmin([])
