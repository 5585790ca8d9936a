"""The policies of a folder, which may not contradict each other."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from planner.documents.policy import KIND, ConsumerScalingPolicy, read_policy
from planner.documents.source import KubernetesSpec
from planner.errors import BadInputError
from planner.model.deployments import APPS

_Key = TypeVar("_Key", Path, str)


def read_policies(folder: Path) -> Sequence[ConsumerScalingPolicy]:
    """Return all policies (``*.yaml``, ``*.yml``) of the folder, by name.

    Raises ``BadInputError`` when the folder is missing or holds no policy, when two policies share a name, or
    when two speak of one group: nobody could say which of them decides.
    """
    policies = [(path, read_policy(path)) for path in policy_files(folder)]
    for sentence in twins(policies).values():
        raise BadInputError(sentence)
    return sorted((policy for _, policy in policies), key=lambda policy: policy.metadata.name)


def policy_files(folder: Path) -> Sequence[Path]:
    """Return the policy files of the folder by name. Raises ``BadInputError`` when there is none."""
    if folder.is_file():
        raise BadInputError(f"policy folder {folder} is a file: name the folder that holds it")
    if not folder.is_dir():
        raise BadInputError(f"policy folder {folder} does not exist: create it and put a {KIND} YAML file into it")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
    if not files:
        raise BadInputError(f"policy folder {folder} holds no .yaml file: put a {KIND} into it")
    return files


def twins(policies: Sequence[tuple[_Key, ConsumerScalingPolicy]]) -> Mapping[_Key, str]:
    """Return a sentence for each file or object that shares its policy's name, group or target with another one.

    Two policies of one target would take turns: each plan sets the count that suits its own group and no other. Those
    that name each other in ``sharedWith`` are decided together.
    """
    files: dict[tuple[str, ...], _Key] = {}
    sentences: dict[_Key, str] = {}
    by_path = dict(policies)
    for path, policy in policies:
        for key, cure in _shared_keys(policy):
            first = files.setdefault(key, path)
            if first != path and not (key[0] == "target" and _name_each_other(policy, by_path[first])):
                sentence = f"policies {first} and {path} have the same {key[0]} {key[-1]}: {cure}"
                sentences |= dict.fromkeys((first, path), sentence)
    return sentences


def _shared_keys(policy: ConsumerScalingPolicy) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what no two policies may share, and what to do about it; of several that they do the last is the reason."""
    source, kind, namespace = policy.spec.source, policy.spec.target_kind, policy.metadata.namespace
    for name in policy.spec.target_names:
        yield (
            ("target", _cluster_key(policy.spec.kubernetes), f"{_group(policy)}{kind} {namespace}/{name}"),
            "each would set the count for its own group alone; where its pods serve all of these groups, have each "
            "policy name the others in spec.scaleTargetRef.sharedWith; else give each group a target of its own",
        )
    yield ("name", policy.metadata.name), "keep one of them"
    yield ("group", source.system, source.cluster, source.group), "keep one of them"


def _group(policy: ConsumerScalingPolicy) -> str:
    """Return the API group of the target's kind before the kind, nothing for those of Kubernetes itself."""
    version = policy.spec.target_api_version
    return "" if version == APPS else f"{version.partition('/')[0]} "


def _name_each_other(policy: ConsumerScalingPolicy, other: ConsumerScalingPolicy) -> bool:
    return policy.metadata.name in other.shared_with and other.metadata.name in policy.shared_with


def target_key(policy: ConsumerScalingPolicy) -> tuple[str, ...]:
    """Return what names the policy's target: cluster, kind, namespace and name."""
    key, _ = next(_shared_keys(policy))
    return key


def _cluster_key(kubernetes: KubernetesSpec | None) -> str:
    return "" if kubernetes is None else f"{kubernetes.kubeconfig_file} {kubernetes.context}"
