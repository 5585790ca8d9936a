"""Certificates of an authority of our own, for servers that tests start."""

import subprocess
from pathlib import Path

from tests.clusters.artifacts import find_program


def write_certificates(home: Path) -> Path:
    """Write ``ca.pem``, ``server.pem``, ``server.key`` for 127.0.0.1, and ``other.pem`` of another CA; return home."""
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
    return home
