"""Client properties from a file: how to get in, by librdkafka's names or by Java's where the meaning is the same.

The file is a secret. Its values appear in no log, no error and no ``repr``, except the protocol and the mechanism.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from planner.documents.tenant_files import TenantFile, tenant_file
from planner.errors import BadInputError
from planner.sources.connections import connection

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_HIDDEN: Final = "(hidden)"
_MOST_BYTES: Final = 256 * 1024
_SECRET: Final = re.compile(r"password|passphrase|secret|\.pem$|token|jaas")
_SHORTEST_SECRET: Final = 4  # hiding shorter ones would tear harmless words apart

_LOCATIONS: Final = frozenset(
    {
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.crl.location",
        "ssl.key.location",
        "ssl.keystore.location",
        "https.ca.location",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
    }
)
"""Properties that name a file."""
_ENDPOINT_URL: Final = "sasl.oauthbearer.token.endpoint.url"
"""The server that gets the account's secret and gives a token."""
_PASSED_ON: Final = _LOCATIONS | {
    "broker.address.family",
    "client.dns.lookup",
    "client.id",
    "enable.ssl.certificate.verification",
    "https.ca.pem",
    "sasl.mechanism",
    "sasl.mechanisms",
    _ENDPOINT_URL,
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.grant.type",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.scope",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.timeout.ms",
    "ssl.ca.pem",
    "ssl.certificate.pem",
    "ssl.cipher.suites",
    "ssl.curves.list",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
    "ssl.sigalgs.list",
}
"""librdkafka's names that say how to get in; all others are refused.

Left out with intent: ``sasl.kerberos.*`` (a shell runs ``kinit.cmd``; confluent-kafka's wheels have no GSSAPI),
``ssl.providers`` and ``ssl.engine.*`` (code that is loaded), ``sasl.oauthbearer.metadata.*`` (the machine's identity).
"""
_JAVA_ONLY: Final = re.compile(
    r"ssl\.(truststore|keymanager|trustmanager|protocol|enabled|engine|secure|provider$)[a-z.]*|ssl\.keystore\.type"
    r"|ssl\.keystore\.(key|certificate\.chain)|sasl\.(jaas|client\.callback|login)[a-z.]*"
)
_JAAS: Final = re.compile(
    r"\s*org\.apache\.kafka\.common\.security\.(?P<kind>plain\.Plain|scram\.Scram)LoginModule\s+required\s+"
    r"(?P<options>.*?)\s*;\s*",
    re.DOTALL,
)
_JAAS_OPTION: Final = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+))""")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Properties as librdkafka takes them, without the bootstrap servers."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise BadInputError(f"security.protocol is none of {', '.join(PROTOCOLS)}: correct it")
        if self.uses_sasl and not self.mechanism:
            raise BadInputError(f"security.protocol {self.protocol} wants sasl.mechanism: add it")

    @classmethod
    def read(cls, path: Path | str) -> "KafkaSettings":
        """Return the settings in a ``.properties`` file, or in a connection of Airflow where ``path`` is text.

        A tenant's file names files of its own folder only, and only a token endpoint that an administrator listed.
        Raises ``BadInputError`` naming a property, never its value.
        """
        if isinstance(path, str):
            return cls._of_connection(path)
        tenant = tenant_file(path)
        text = _read(path)
        try:
            settings = cls(_translate(_parse(text)))
        except BadInputError as error:
            raise BadInputError(f"{path}: {error}") from error
        if tenant is not None:
            settings.check_tenant(tenant)
        return settings

    def check_tenant(self, file: TenantFile) -> None:
        """Raise ``BadInputError`` for a location outside the file's folder and for an endpoint not listed for it."""
        for name in sorted(_LOCATIONS & self.properties.keys()):
            file.check_location(name, self.properties[name])
        if _ENDPOINT_URL in self.properties:
            file.check_url(_ENDPOINT_URL, self.properties[_ENDPOINT_URL])

    @classmethod
    def _of_connection(cls, reference: str) -> "KafkaSettings":
        """Return what the connection's extra states, with its login and password as the account."""
        credentials = connection(reference)
        account = {"sasl.username": credentials.login, "sasl.password": credentials.password}
        given = {name: value for name, value in account.items() if value}
        given |= {name: _text(value) for name, value in credentials.fields().items()}
        try:
            return cls(_translate(given))
        except BadInputError as error:
            raise BadInputError(f"{reference}: {error}") from error

    @property
    def protocol(self) -> str:
        """One of ``PROTOCOLS``."""
        return self.properties.get("security.protocol", "PLAINTEXT").upper()

    @property
    def uses_tls(self) -> bool:
        """True when connections are encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """True when an account is needed."""
        return self.protocol.startswith("SASL")

    @property
    def verifies_certificates(self) -> bool:
        """False when any certificate is taken, by the properties."""
        return self.get("enable.ssl.certificate.verification").lower() != "false"

    @property
    def mechanism(self) -> str:
        """The SASL mechanism, in capitals; "" for none."""
        return self.get("sasl.mechanisms", self.get("sasl.mechanism")).upper()

    def get(self, name: str, otherwise: str = "") -> str:
        """Return one property."""
        return self.properties.get(name, otherwise)

    def redacted(self, text: str) -> str:
        """Return ``text``, which others wrote, without our secrets."""
        for name, value in self.properties.items():
            if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, _HIDDEN)
        return text


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise BadInputError(f"cannot read the Kafka properties {path}: {reason}") from error
    if len(content) > _MOST_BYTES:
        raise BadInputError(f"the Kafka properties {path} have more than {_MOST_BYTES} bytes: name another file")
    return text


def _text(value: object) -> str:
    """Return a value of JSON as a properties file would have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse(text: str) -> dict[str, str]:
    """Return the pairs of a Java properties file: comments, continued lines, ``=``, ``:`` or blanks between."""
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\n[ \t]*", r"\1", text.replace("\r\n", "\n"))
    properties: dict[str, str] = {}
    for number, line in enumerate(joined.split("\n"), start=1):
        content = line.strip()
        if not content or content[0] in "#!":
            continue
        pair = re.match(r"([\w.\-]+)\s*[=:\s]\s*(.*)", content)
        if pair is None:
            raise BadInputError(f"line {number} is no property: write name=value")
        name, value = pair.groups()
        if name in properties:
            raise BadInputError(f"property {name} stands there twice: remove one")
        properties[name] = _unescape(value)
    return properties


def _unescape(value: str) -> str:
    plain = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda match: plain.get(match[1], match[1]), value)


def _translate(given: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, value in given.items():
        for own_name, own_value in _translation(name, value, given).items():
            if settings.setdefault(own_name, own_value) != own_value:
                raise BadInputError(f"property {name} contradicts another one on {own_name}: remove one")
    return settings


def _translation(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return what one property is to librdkafka: itself, others, or nothing where another property takes it along."""
    translate = _FROM_JAVA.get(name)
    if translate is not None:
        return translate(value, given)
    if _JAVA_ONLY.fullmatch(name):
        raise BadInputError(f"property {name} means something to Java clients only: {_ADVICE}")
    if name in _PASSED_ON:
        return {name: value}
    raise BadInputError(f"property {name} has no use here: keep those of SASL and TLS, remove the others")


_ADVICE: Final = "write it by librdkafka's names (docs/connect-kafka.md)"


def _jaas(value: str, _: Mapping[str, str]) -> dict[str, str]:
    login = _JAAS.fullmatch(value)
    if login is None:
        raise BadInputError(f"property sasl.jaas.config is not one of PlainLoginModule or ScramLoginModule: {_ADVICE}")
    options = {option[1]: next(text for text in option.groups()[1:] if text is not None) for option in _options(login)}
    if not options.keys() >= {"username", "password"}:
        raise BadInputError("property sasl.jaas.config lacks username or password: add it")
    return {f"sasl.{name}": re.sub(r"\\(.)", r"\1", options[name]) for name in ("username", "password")}


def _options(login: "re.Match[str]") -> list["re.Match[str]"]:
    return list(_JAAS_OPTION.finditer(login["options"]))


def _endpoint(value: str, _: Mapping[str, str]) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": value or "none"}


def _trust_store(value: str, given: Mapping[str, str]) -> dict[str, str]:
    if given.get("ssl.truststore.type", "JKS").upper() != "PEM":
        raise BadInputError(
            "property ssl.truststore.location names a Java key store: export its certificates as PEM "
            "(keytool -exportcert -rfc) and give them as ssl.ca.location"
        )
    return {"ssl.ca.location": value}


def _key_store(value: str, given: Mapping[str, str]) -> dict[str, str]:
    kind = given.get("ssl.keystore.type", "PKCS12" if value.endswith((".p12", ".pfx")) else "JKS").upper()
    if kind == "PEM":
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    if kind == "PKCS12":
        return {"ssl.keystore.location": value}
    raise BadInputError(
        "property ssl.keystore.location names a Java key store: give certificate and key as PEM files by "
        "ssl.certificate.location and ssl.key.location"
    )


def _store_type(value: str, _: Mapping[str, str]) -> dict[str, str]:
    if value.upper() not in {"PEM", "PKCS12", "JKS"}:
        raise BadInputError("a store's type is none of PEM, PKCS12, JKS: correct it")
    return {}


_FROM_JAVA: Final[dict[str, Callable[[str, Mapping[str, str]], dict[str, str]]]] = {
    "bootstrap.servers": lambda _, __: {},  # the policy names the brokers; the same file often serves other tools, too
    "security.protocol": lambda value, _: {"security.protocol": value.upper()},
    "sasl.mechanism": lambda value, _: {"sasl.mechanisms": value},
    "sasl.jaas.config": _jaas,
    "ssl.endpoint.identification.algorithm": _endpoint,
    "ssl.truststore.location": _trust_store,
    "ssl.truststore.type": _store_type,
    "ssl.truststore.certificates": lambda value, _: {"ssl.ca.pem": value},
    "ssl.keystore.location": _key_store,
    "ssl.keystore.type": _store_type,
    "ssl.keystore.certificate.chain": lambda value, _: {"ssl.certificate.pem": value},
    "ssl.keystore.key": lambda value, _: {"ssl.key.pem": value},
}
