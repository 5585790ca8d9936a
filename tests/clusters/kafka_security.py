"""What guards a Kafka cluster of a test: accounts, certificates of our own authority, an authoriser."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.clusters.artifacts import find_program

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
    _sign(directory)
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
            "ssl.keystore.location": str(directory / "server.store"),
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


def _sign(home: Path) -> None:
    """Write ``ca.pem``, ``server.store`` (key and certificate for 127.0.0.1) and ``other.pem`` of another authority."""
    (home / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    key = ["-newkey", "rsa:2048", "-nodes"]
    for command in (
        ["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA"],
        ["req", "-x509", *key, "-keyout", "other.key", "-out", "other.pem", "-days", "2", "-subj", "/CN=other CA"],
        ["req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=broker"],
        [
            *("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", "server.pem", "-days", "2", "-extfile", "names"),
        ],
    ):
        subprocess.run([find_program("openssl"), *command], cwd=home, check=True, capture_output=True)
    (home / "server.store").write_text((home / "server.key").read_text() + (home / "server.pem").read_text())
