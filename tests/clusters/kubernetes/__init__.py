"""A real Kubernetes control plane in tests, and pods with real processes behind them.

::

    with ControlPlane.start() as cluster:
        namespace = cluster.namespace()
        cluster.apply(deployment("shop", 3, {"command": ["sleep", "600"]}), namespace=namespace)
        cluster.await_available(namespace, "shop")
        cluster.kubectl("scale", "-n", namespace, "deployment/shop", "--replicas=1")

A container with a ``command``, or of an image that ``kubelet.images`` knows, is a local process; others are only a
status. Annotations simulate slowness and crashes (``container.Simulation``); ``cluster.kubelet.exits`` and ``.log`` say
how processes ended and what they wrote.

``build`` compiles it, ``control_plane`` runs it, ``kubelet`` runs its pods (``pods``, ``container``, ``environment``,
``images``, ``addresses``), ``consumers`` has containers that are real consumers, ``rest`` speaks to it.
"""

from tests.clusters.kubernetes.control_plane import ControlPlane, deployment, stateful_set

__all__ = ["ControlPlane", "deployment", "stateful_set"]
