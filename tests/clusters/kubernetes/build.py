"""Programs that are compiled: Kubernetes in one binary, Helm, judges of health as Argo CD and Flux, controllers.

Kubernetes, Helm and kstatus are one module: of the same libraries, which are then compiled once.
"""

from pathlib import Path

from tests.clusters.kubernetes.go import GoProgram, Report, required

PROGRAMS = Path(__file__).with_name("programs")
HEALTH = Path(__file__).with_name("health")
ARGO = Path(__file__).with_name("argo")
KRUISE = Path(__file__).with_name("kruise")
ARGO_ROLLOUTS = "github.com/argoproj/argo-rollouts"
OPEN_KRUISE = "github.com/openkruise/kruise"
HELM = "helm.sh/helm/v4"


def control_plane_binary(report: Report | None = None) -> Path:
    """Return the control plane, compiled first where it has not been yet (about 6 minutes, 3 GB meanwhile).

    ``report`` gets a sentence every 10 s of that, standard error where it is absent. Raise CannotRunHereError when
    there is no Go or the modules cannot be fetched, StartFailedError with the compiler's last lines when it objects.
    """
    return _program("control plane", "controlplane").binary(report)


def helm_binary(report: Report | None = None) -> Path:
    """Return Helm, compiled first with the control plane if need be; raise as above."""
    return _program("helm", "helm").binary(report)


def kstatus_binary(report: Report | None = None) -> Path:
    """Return the program that judges an object by Flux's kstatus, compiled first as above; raise as above.

    It reads the object as JSON, and prints status and message.
    """
    return _program("kstatus", "kstatus").binary(report)


def _program(what: str, name: str) -> GoProgram:
    packages = ("./controlplane", "./kstatus", f"{HELM}/cmd/helm")
    news = f"Kubernetes {kubernetes_version()}, etcd {etcd_version()} and Helm {helm_version()}, about 6 minutes, once"
    return GoProgram(what, "testcluster", name, PROGRAMS, packages, _stamped(), news)


def health_binary(report: Report | None = None) -> Path:
    """Return the program that judges an object by a health snippet, compiled first if need be; raise as above.

    It reads the object as JSON, its argument is the snippet's file, and it prints status and message.
    """
    what = f"Lua of Argo CD {required(HEALTH, 'github.com/yuin/gopher-lua')}, seconds, once"
    return GoProgram("health", "health", "health", HEALTH, (".",), (*_FLAGS, "-s -w"), what).binary(report)


def argo_rollouts_binary(report: Report | None = None) -> Path:
    """Return the controller of Argo Rollouts, compiled first if need be; raise as above."""
    what = f"Argo Rollouts {required(ARGO, ARGO_ROLLOUTS)}, about 5 minutes, once"
    name, flags = "rollouts-controller", (*_FLAGS, "-s -w")
    packages = (f"{ARGO_ROLLOUTS}/cmd/{name}",)
    return GoProgram("Argo Rollouts", "argo-rollouts", name, ARGO, packages, flags, what).binary(report)


def kruise_binary(report: Report | None = None) -> Path:
    """Return the manager of OpenKruise, compiled first if need be; raise as above."""
    what = f"OpenKruise {required(KRUISE, OPEN_KRUISE)}, about 5 minutes, once"
    flags = (*_FLAGS, "-s -w")
    return GoProgram("OpenKruise", "kruise", "kruise", KRUISE, (OPEN_KRUISE,), flags, what).binary(report)


def kubernetes_version() -> str:
    """Return the version of Kubernetes in go.mod, for example ``v1.36.4``."""
    return required(PROGRAMS, "k8s.io/kubernetes")


def etcd_version() -> str:
    """Return the version of etcd in go.mod, for example ``v3.6.8``."""
    return required(PROGRAMS, "go.etcd.io/etcd/server/v3")


def helm_version() -> str:
    """Return the version of Helm in go.mod, for example ``v4.2.4``."""
    return required(PROGRAMS, HELM)


_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags")


def _stamped() -> tuple[str, ...]:
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
    return (*_FLAGS, f"-s -w {stamps} -X {HELM}/internal/version.version={helm_version()}")
