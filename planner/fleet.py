"""All policies of a folder, each by itself: a file that is wrong stops nobody else."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.documents.policy import ConsumerScalingPolicy, parse_policy, policy_files, policy_text, twins
from planner.errors import BadInputError, PlannerError
from planner.storage.files import write_atomically
from planner.storage.layout import RunFolder


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy with the text that it was read from."""

    policy: ConsumerScalingPolicy
    text: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """The policies that can be served, by name, and a sentence for each file that cannot, by the file's name."""

    files: tuple[PolicyFile, ...]
    refused: Mapping[str, str]

    @property
    def policies(self) -> tuple[ConsumerScalingPolicy, ...]:
        """The policies alone."""
        return tuple(file.policy for file in self.files)


def read_fleet(folder: Path) -> Fleet:
    """Return what the folder's policy files say, each file read once.

    A wrong file is refused alone. Files that share a name or a group are all refused: nobody could say which of them
    decides. Raises ``BadInputError`` when there is no file, or none that can be served.
    """
    read: dict[Path, PolicyFile] = {}
    refused: dict[Path, str] = {}
    for path in policy_files(folder):
        try:
            read[path] = _read(path)
        except PlannerError as error:
            refused[path] = str(error)
    refused |= twins([(path, file.policy) for path, file in read.items()])
    files = sorted((file for path, file in read.items() if path not in refused), key=lambda file: _name(file.policy))
    if not files:
        raise BadInputError("; ".join(refused.values()))
    return Fleet(tuple(files), {path.name: sentence for path, sentence in refused.items()})


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


def read_problems(run: RunFolder) -> Mapping[str, str]:
    """Return why policies were not observed, by the name of policy or file."""
    if not run.problems.exists():
        return {}
    problems: dict[str, str] = json.loads(run.problems.read_text(encoding="utf-8"))
    return problems
