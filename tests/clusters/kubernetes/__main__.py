"""``python -m tests.clusters.kubernetes build`` compiles the control plane and Helm, ``run`` runs it until Ctrl-C."""

import contextlib
import sys
import time

from tests.clusters.kubernetes.build import control_plane_binary, helm_binary, kstatus_binary
from tests.clusters.kubernetes.control_plane import ControlPlane
from tests.clusters.processes import POLL_S


def run() -> None:
    """Start a control plane, say where its kubeconfig is, and stop it on Ctrl-C."""
    begun = time.monotonic()
    with ControlPlane.start() as cluster:
        print(f"{cluster.header}: up in {time.monotonic() - begun:.1f} s, kubeconfig {cluster.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while cluster.api_server.running:
                time.sleep(POLL_S)


if __name__ == "__main__":
    if sys.argv[1:] == ["build"]:
        print(control_plane_binary(), helm_binary(), kstatus_binary(), sep="\n")
    elif sys.argv[1:] == ["run"]:
        run()
    else:
        sys.exit(__doc__)
