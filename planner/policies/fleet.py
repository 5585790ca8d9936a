"""All policies of a folder or a namespace, each by itself: one that is wrong stops nobody else."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.documents.policy import MOST_KEPT, ConsumerScalingPolicy, parse_policy, policy_text
from planner.documents.policy_folder import policy_files, twins
from planner.documents.yaml import dump_yaml
from planner.errors import BadInputError, DocumentError, PlannerError, StorageError
from planner.storage.files import remove_file, write_atomically
from planner.storage.layout import RunFolder, local_folder
from planner.text.bounded import bounded_json

if TYPE_CHECKING:
    from planner.deployments.policies import PolicyObject

SCHEME: Final = "k8s://"
SAME_PERIOD: Final = 1.5
"""A period of decisions that is off by this factor is another one."""
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
            raise BadInputError("; ".join(dict.fromkeys(self.refused.values())))


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


def decided_every(fleet: Fleet, period_s: float | None) -> Fleet:
    """Return the fleet as a run decides on it that comes every ``period_s`` seconds.

    Policies that weigh and state no ``decidedEverySeconds`` get the run's, so that its copy of them replays it.
    Those that state one keep it; without a known period all stay as they are.
    """
    if period_s is None:
        return fleet
    return replace(fleet, files=tuple(_decided_every(file, period_s) for file in fleet.files))


@lru_cache(maxsize=MOST_KEPT)
def _yaml_of(policy: str) -> str:
    """Return a policy's JSON as YAML: a process that runs every 30 s writes the same ones each time."""
    return dump_yaml(json.loads(policy))


def _decided_every(file: PolicyFile, period_s: float) -> PolicyFile:
    if file.policy.objective.wait is None or file.policy.spec.objective.decided_every_seconds is not None:
        return file
    policy = file.policy.decided_every(period_s)
    return PolicyFile(policy, _yaml_of(policy.model_dump_json(by_alias=True, exclude_unset=True)))


def other_periods(fleet: Fleet, period_s: float | None) -> Mapping[str, str]:
    """Return a sentence for each policy that counts on another period of decisions than the run has, by its name."""
    if period_s is None:
        return {}
    weighed = [policy for policy in fleet.policies if policy.objective.wait is not None]
    stated = {_name(policy): policy.spec.objective.decided_every_s for policy in weighed}
    return {
        name: f"spec.objective.decidedEverySeconds is {every_s:g}, and runs come every {period_s:g} s: leave it out, "
        "and each run counts on its own period"
        for name, every_s in stated.items()
        if max(every_s, period_s) > SAME_PERIOD * min(every_s, period_s)
    }


def keep_fleet(fleet: Fleet, run: RunFolder, problems: Mapping[str, str]) -> None:
    """Write the policies by which the run decides, and why some were not observed, into the run's own folder.

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
    """Return the objects that the run's policies are, ``None`` where they are files.

    Raises ``DocumentError`` where the run's file is broken, ``StorageError`` where it cannot be read.
    """
    if not run.origin.exists():
        return None
    from planner.deployments.policies import PolicyObject  # noqa: PLC0415  needs the kubernetes extra

    content = _read_object(run.origin)
    try:
        kubeconfig = content["kubeconfig"]
        namespace = ClusterNamespace(content["namespace"], None if kubeconfig is None else Path(kubeconfig))
        objects = {name: PolicyObject(**policy_object) for name, policy_object in content["objects"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise _broken(run.origin, "the namespace and objects of the run's policies") from error
    return PolicyOrigin(namespace, objects)


def read_problems(run: RunFolder) -> Mapping[str, str]:
    """Return why policies were not observed, by the name of policy or file.

    Raises ``DocumentError`` where the run's file is broken, ``StorageError`` where it cannot be read.
    """
    if not run.problems.exists():
        return {}
    problems = _read_object(run.problems)
    if not all(isinstance(sentence, str) for sentence in problems.values()):
        raise _broken(run.problems, "a sentence for each name")
    return problems


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = bounded_json(path.read_bytes())
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror}): see who may read the run's folder") from error
    except ValueError as error:
        raise _broken(path, "a JSON object") from error
    if not isinstance(content, dict):
        raise _broken(path, "a JSON object")
    return content


def _broken(path: Path, expected: str) -> DocumentError:
    return DocumentError(f"{path} is cut off or was edited, expected {expected}: start the run's first stage again")
