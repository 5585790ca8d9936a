"""All policies of a folder or a namespace, each by itself: one that is wrong stops nobody else."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.documents.policy import ConsumerScalingPolicy, parse_policy, policy_files, policy_text, twins
from planner.errors import BadInputError, PlannerError
from planner.storage.files import remove_file, write_atomically
from planner.storage.layout import RunFolder, local_folder

if TYPE_CHECKING:
    from planner.deployments.policies import PolicyObject

SCHEME: Final = "k8s://"
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ClusterNamespace:
    """A namespace whose objects are the policies: ``k8s://NAMESPACE``; ``kubeconfig`` is how to get there."""

    name: str
    kubeconfig: Path | None = None

    def __str__(self) -> str:
        return f"{SCHEME}{self.name}"


PolicyLocation = Path | ClusterNamespace
"""Where policies are: a folder of files, or a namespace."""


def policy_location(text: str, kubeconfig: Path | None = None) -> PolicyLocation:
    """Return where the policies are that a folder's path or ``k8s://NAMESPACE`` names.

    Raises ``BadInputError`` for another URI, and for a namespace that cannot be.
    """
    if not text.startswith(SCHEME):
        return local_folder(text, "policies")
    name = text.removeprefix(SCHEME).removesuffix("/")
    if not _NAMESPACE.fullmatch(name):
        raise BadInputError(f"policies: found {text}, expected a folder or {SCHEME}NAMESPACE")
    return ClusterNamespace(name, kubeconfig)


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy with the text that it was read from."""

    policy: ConsumerScalingPolicy
    text: str


@dataclass(frozen=True, slots=True)
class PolicyOrigin:
    """The namespace that policies were read from, and their objects by name."""

    namespace: ClusterNamespace
    objects: "Mapping[str, PolicyObject]"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The policies that can be served, by name, and a sentence for each file or object that cannot, by its name.

    ``origin`` is where they are objects; ``None`` for files.
    """

    files: tuple[PolicyFile, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    origin: PolicyOrigin | None = None

    @property
    def policies(self) -> tuple[ConsumerScalingPolicy, ...]:
        """The policies alone."""
        return tuple(file.policy for file in self.files)

    def check_served(self) -> None:
        """Raise ``BadInputError`` where no policy can be served."""
        if not self.files:
            raise BadInputError("; ".join(self.refused.values()))


def read_fleet(location: PolicyLocation) -> Fleet:
    """Return what ``load_fleet`` does. Raises ``BadInputError`` also where no policy can be served."""
    fleet = load_fleet(location)
    fleet.check_served()
    return fleet


def load_fleet(location: PolicyLocation) -> Fleet:
    """Return what the folder's files or the namespace's objects say, each read once.

    One that is wrong is refused alone. Those that share a name or a group are all refused: nobody could say which of
    them decides. Raises ``BadInputError`` where there is none at all, ``OutOfReachError`` for a cluster that is.
    """
    return _load_folder(location) if isinstance(location, Path) else _load_namespace(location)


def _load_folder(folder: Path) -> Fleet:
    read: dict[str, PolicyFile] = {}
    refused: dict[str, str] = {}
    for path in policy_files(folder):
        try:
            read[str(path)] = _read(path)
        except PlannerError as error:
            refused[str(path)] = str(error)
    refused |= twins([(path, file.policy) for path, file in read.items()])
    named = {Path(path).name: sentence for path, sentence in refused.items()}
    return Fleet(_served(read, refused), named)


def _load_namespace(namespace: ClusterNamespace) -> Fleet:
    from planner.deployments.api import RolloutApi  # noqa: PLC0415  needs the kubernetes extra
    from planner.deployments.policies import list_policies  # noqa: PLC0415

    with RolloutApi.connect(namespace.kubeconfig) as api:
        listed = list_policies(api, namespace.name)
    if not listed:
        raise BadInputError(
            f"namespace {namespace.name} holds no ConsumerScalingPolicy: kubectl apply one there, or name a folder"
        )
    read: dict[str, PolicyFile] = {}
    refused: dict[str, str] = {}
    for entry in listed:
        try:
            RunFolder(Path()).policy(entry.name)
        except BadInputError as error:
            refused[entry.name] = str(error)
            continue
        if entry.policy is None:
            refused[entry.name] = entry.problem or ""
        else:
            read[entry.name] = PolicyFile(entry.policy, entry.text)
    refused |= twins([(name, file.policy) for name, file in read.items()])
    origin = PolicyOrigin(namespace, {entry.name: entry.object for entry in listed})
    return Fleet(_served(read, refused), refused, origin)


def _served(read: Mapping[str, PolicyFile], refused: Mapping[str, str]) -> tuple[PolicyFile, ...]:
    kept: Sequence[PolicyFile] = [file for name, file in read.items() if name not in refused]
    return tuple(sorted(kept, key=lambda file: _name(file.policy)))


def _read(path: Path) -> PolicyFile:
    text = policy_text(path)
    policy = parse_policy(text, str(path))
    RunFolder(Path()).policy(_name(policy))  # refuses the names that a run needs for itself
    return PolicyFile(policy, text)


def _name(policy: ConsumerScalingPolicy) -> str:
    return policy.metadata.name


def keep_fleet(fleet: Fleet, run: RunFolder, problems: Mapping[str, str]) -> None:
    """Write the policies as they were read, and why some were not observed, into the run's own folder.

    What an earlier try of the same run wrote there is replaced, so that an edit between two tasks changes nothing.
    """
    shutil.rmtree(run.policies, ignore_errors=True)
    for file in fleet.files:
        write_atomically(run.policies / f"{_name(file.policy)}.yaml", file.text)
    write_atomically(run.problems, json.dumps(dict(problems), indent=2, sort_keys=True) + "\n")
    _keep_origin(fleet.origin, run)


def _keep_origin(origin: PolicyOrigin | None, run: RunFolder) -> None:
    if origin is None:
        remove_file(run.origin)
        return
    kubeconfig = origin.namespace.kubeconfig
    content = {
        "namespace": origin.namespace.name,
        "kubeconfig": None if kubeconfig is None else str(kubeconfig),
        "objects": {name: asdict(policy_object) for name, policy_object in origin.objects.items()},
    }
    write_atomically(run.origin, json.dumps(content, indent=2, sort_keys=True) + "\n")


def read_origin(run: RunFolder) -> PolicyOrigin | None:
    """Return the objects that the run's policies are, ``None`` where they are files."""
    if not run.origin.exists():
        return None
    from planner.deployments.policies import PolicyObject  # noqa: PLC0415  needs the kubernetes extra

    content = json.loads(run.origin.read_text(encoding="utf-8"))
    kubeconfig = content["kubeconfig"]
    namespace = ClusterNamespace(content["namespace"], None if kubeconfig is None else Path(kubeconfig))
    return PolicyOrigin(
        namespace, {name: PolicyObject(**policy_object) for name, policy_object in content["objects"].items()}
    )


def read_problems(run: RunFolder) -> Mapping[str, str]:
    """Return why policies were not observed, by the name of policy or file."""
    if not run.problems.exists():
        return {}
    problems: dict[str, str] = json.loads(run.problems.read_text(encoding="utf-8"))
    return problems
