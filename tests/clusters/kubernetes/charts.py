"""Helm, as the administrator of one cluster."""

import os
import subprocess
from pathlib import Path

from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes.build import helm_binary

TIMEOUT_S = 300.0


class Helm:
    """Runs ``helm`` with files of its own in ``home``; raises CannotRunHereError where it cannot be built."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._binary = helm_binary()
        folders = {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **folders, "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *arguments: str) -> str:
        """Return what it prints; raise StartFailedError with its error."""
        run = subprocess.run(
            [str(self._binary), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if run.returncode != 0:
            raise StartFailedError(f"helm {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout
