"""What guards a Kafka cluster of a test: accounts, certificates of our own authority, an authoriser."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.clusters.certificates import write_certificates

PLAIN_LISTENER, TLS_LISTENER = "SASL_PLAINTEXT", "SASL_SSL"
SECRETS = {"planner": "planner-s3cret-word", "nobody": "nobody-s3cret-word"}
"""The accounts: ``User:planner`` gets what a test grants it, ``User:nobody`` nothing."""


@dataclass(frozen=True)
class Guard:
    """Addresses of the first broker's guarded listeners, and what brokers need to serve them."""

    accounts: str
    encrypted: str
    authority: Path
    settings: Mapping[str, str]
    format_arguments: tuple[str, ...]
    offsets: Mapping[str, int]

    @property
    def other_authority(self) -> Path:
        """The certificate of an authority that signed nothing here."""
        return self.authority.with_name("other.pem")


def guard(directory: Path, first_port: int) -> Guard:
    """Return the guard of a cluster whose first broker's ports begin at ``first_port``.

    Accounts are known to PLAIN and to SCRAM-SHA-256 and -512. Who comes without one is ``User:ANONYMOUS``, which only
    the open listener admits, and may do everything: brokers talk to each other there, and tests prepare things there.
    """
    offsets = {PLAIN_LISTENER: 2, TLS_LISTENER: 3}
    write_certificates(directory)
    store = directory / "server.store"
    store.write_text((directory / "server.key").read_text() + (directory / "server.pem").read_text())
    return Guard(
        accounts=f"127.0.0.1:{first_port + offsets[PLAIN_LISTENER]}",
        encrypted=f"127.0.0.1:{first_port + offsets[TLS_LISTENER]}",
        authority=directory / "ca.pem",
        settings={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            **{key: value for name in offsets for key, value in _mechanisms(name.lower()).items()},
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
        },
        format_arguments=tuple(
            word
            for account, secret in SECRETS.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for word in ("--add-scram", f"{mechanism}=[name={account},password={secret}]")
        ),
        offsets=offsets,
    )


def _mechanisms(listener: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security"
    users = " ".join(f'user_{account}="{secret}"' for account, secret in SECRETS.items())
    scram = f"{module}.scram.ScramLoginModule required;"
    prefix = f"listener.name.{listener}"
    return {
        f"{prefix}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required {users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
        f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
    }
