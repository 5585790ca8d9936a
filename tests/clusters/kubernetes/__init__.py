"""A real Kubernetes control plane in tests, and pods with real processes behind them.

``build`` compiles it, ``control_plane`` runs it, ``kubelet`` runs its pods (``pods``, ``container``, ``environment``,
``addresses``), ``rest`` speaks to it.
"""

from tests.clusters.kubernetes.control_plane import ControlPlane, deployment

__all__ = ["ControlPlane", "deployment"]
