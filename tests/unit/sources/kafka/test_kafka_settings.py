"""Properties files in both dialects; what has no sure translation is refused by its name, and no value is ever told."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from planner.documents.tenant_files import FILES_VARIABLE, HOSTS_VARIABLE
from planner.errors import BadInputError
from planner.sources.kafka import KafkaAdmin, KafkaSettings
from planner.sources.kafka.connection import Address, can_connect
from planner.sources.kafka.settings import _LOCATIONS, _PASSED_ON
from planner.sources.rocketmq.transport import parse_address

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of namespace ``shop``, whose files may be sent to one broker and one token server."""
    for namespace in ("shop", "bank"):
        (tmp_path / "tenants" / namespace).mkdir(parents=True)
        (tmp_path / "tenants" / namespace / "key.pem").write_text("a key")
    monkeypatch.setenv(FILES_VARIABLE, str(tmp_path / "tenants"))
    monkeypatch.setenv(HOSTS_VARIABLE, '{"shop": ["kafka:9092", "login.example:443"]}')
    return tmp_path / "tenants" / "shop"


def test_a_tenants_file_names_files_of_its_own_folder_and_listed_endpoints(folder: Path) -> None:
    settings = read(
        folder,
        f"ssl.key.location={folder}/key.pem\nsasl.oauthbearer.token.endpoint.url=https://login.example/oauth/token\n",
    )
    assert settings.get("ssl.key.location") == f"{folder}/key.pem"


@pytest.mark.parametrize("name", sorted(_LOCATIONS))
def test_a_tenants_file_has_no_other_file_read(folder: Path, tmp_path: Path, name: str) -> None:
    """Red before: the planner authenticated with whatever key of the host the author of the file named."""
    for path in (folder.parent / "bank" / "key.pem", folder / ".." / "bank" / "key.pem", "/etc/passwd", "key.pem"):
        with pytest.raises(BadInputError, match=rf"client\.properties: {name} names a file outside"):
            read(folder, f"ssl.keystore.type=PKCS12\n{name}={path}")
    assert (
        read(tmp_path, f"ssl.keystore.type=PKCS12\n{name}=/etc/passwd").get(name) == "/etc/passwd"
    )  # an administrator's own file


@pytest.mark.parametrize("java", ["truststore", "keystore"])
def test_javas_names_of_files_are_held_to_the_same_folder(folder: Path, java: str) -> None:
    with pytest.raises(BadInputError, match=r"names a file outside"):
        read(folder, f"ssl.{java}.type=PEM\nssl.{java}.location=/etc/passwd")


@pytest.mark.parametrize(
    "url",
    [
        "https://rogue.example",
        "http://login.example",
        "https://rogue.example\\\\@login.example",
        "https://login.example:1",
        "",
    ],
)
def test_a_tenants_account_goes_to_no_other_token_server(folder: Path, url: str) -> None:
    with pytest.raises(BadInputError, match=r"token\.endpoint\.url (is no plain URL|would have)"):
        read(folder, f"sasl.oauthbearer.token.endpoint.url={url}")


@pytest.mark.parametrize(
    "name",
    [
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.principal",
        "sasl.kerberos.keytab",
        "ssl.providers",
        "ssl.engine.location",
        "plugin.library.paths",
        "sasl.oauthbearer.metadata.authentication.type",
        "ssl.key.location.x",
    ],
)
def test_what_starts_programs_or_loads_code_is_passed_on_for_nobody(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError, match=rf"property {name} (has no use here|means something to Java)"):
        read(tmp_path, f"{name}=touch /tmp/ran")


def test_every_property_that_is_passed_on_is_librdkafkas() -> None:
    """Red when a name is misspelt: the library says that there is no such property, and a file would be refused."""
    unknown = []
    for name in sorted(_PASSED_ON):
        try:
            AdminClient({name: "?"})
        except KafkaException as error:
            unknown += [name] if "No such configuration property" in str(error) else []
    assert not unknown


def test_an_account_in_an_address_is_refused_and_not_repeated() -> None:
    for parse in (Address.parse, parse_address):
        with pytest.raises(BadInputError, match="has an @: write host:port alone") as refused:
            parse(f"user:{SECRET}@kafka")
        assert SECRET not in str(refused.value)
