"""A migration on files: what each task of the migration DAG reads and writes below the data folder."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypedDict

from planner import pipeline
from planner.approval.handover import read_plan
from planner.approval.offers import Question, question_on
from planner.documents.data import SNAPSHOT
from planner.documents.format import DIGEST_PREFIX, digest_of
from planner.documents.migration import KINDS, parse_request
from planner.documents.plan import PLAN
from planner.documents.policy import ConsumerScalingPolicy, parse_policy, policy_text, read_policy
from planner.errors import BadInputError
from planner.model.snapshot import GroupSnapshot
from planner.policies.fleet import SCHEME
from planner.rollout.migrations.request_names import SHOWN, check_fit
from planner.snapshot.settings import RECENT
from planner.sources.live import Pace, watch
from planner.sources.past import check_past, past_or_problem
from planner.storage.files import write_atomically
from planner.storage.layout import PolicyFiles, RunFolder, local_folder
from planner.storage.track_records import read_track

_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class MigrationMessage(TypedDict):
    """A migration as it travels from task to task: its policy as it was read, its own folder, and the data folder."""

    policy: str
    folder: str
    data: str


def check(policy: Path | str, asked: Any, kubeconfig: Path | None = None) -> str:
    """Return the kind of what is asked for, before anybody waits for a watch.

    ``policy`` is a file, or ``k8s://NAMESPACE/NAME`` in the cluster of ``kubeconfig``. Raises ``BadInputError`` for a
    wrong policy, a kind that there is not, a field that the kind does not have, names and counts that nobody would
    take, and what the policy shows not to fit; ``OutOfReachError``.
    """
    parsed_policy = _read(policy, kubeconfig)[1]
    kind = asked.get("kind") if isinstance(asked, Mapping) else None
    if kind not in KINDS:
        raise BadInputError(f"parameter migration: kind is {_short(kind)}, expected one of {', '.join(KINDS)}")
    request, bounds = parse_request(asked, "parameter migration"), parsed_policy.bounds
    try:
        check_fit(request, bounds.group, bounds.names, datetime.now(UTC))
    except BadInputError as error:
        raise type(error)(f"parameter migration: {error}") from error
    return str(kind)


def _short(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def observe(
    policy: Path | str,
    data: Path,
    asked: Mapping[str, Any],
    watch_s: float | None = None,
    kubeconfig: Path | None = None,
) -> MigrationMessage:
    """Watch the policy's group, write its snapshot and return where; ``None`` watches for the policy's window.

    The policy is read once, and kept beside the snapshot. Raises ``BadInputError`` for a wrong policy,
    ``OutOfReachError`` where brokers or the API server do not answer. A metrics server that does not is among the
    snapshot's problems.
    """
    text, parsed_policy = _read(policy, kubeconfig)
    check_past(parsed_policy)
    pace = Pace()
    samples = tuple(
        watch(parsed_policy, parsed_policy.snapshot_settings.window_s if watch_s is None else watch_s, pace)
    )
    at = samples[-1].at
    past, problems = past_or_problem(parsed_policy, at - RECENT, at)
    taken = pipeline.take_snapshot(samples, pace.sample_every_s, parsed_policy, at, past)
    taken = replace(taken, problems=(*taken.problems, *problems))
    return _land(taken, text, _folder(data, taken, parsed_policy, asked), data)


def observe_snapshot(
    policy: Path | str, data: Path, asked: Mapping[str, Any], snapshot: Path, kubeconfig: Path | None = None
) -> MigrationMessage:
    """Take a snapshot that exists already, and return where it was written."""
    taken, (text, parsed_policy) = SNAPSHOT.read(snapshot), _read(policy, kubeconfig)
    return _land(taken, text, _folder(data, taken, parsed_policy, asked), data)


def _read(policy: Path | str, kubeconfig: Path | None) -> tuple[str, ConsumerScalingPolicy]:
    if str(policy).startswith(SCHEME):
        return _read_object(str(policy), kubeconfig)
    file = local_folder(str(policy), "policy")
    text = policy_text(file)
    return text, parse_policy(text, str(file))


def _read_object(policy: str, kubeconfig: Path | None) -> tuple[str, ConsumerScalingPolicy]:
    namespace, _, name = policy.removeprefix(SCHEME).partition("/")
    if not _OBJECT_NAME.fullmatch(namespace) or not _OBJECT_NAME.fullmatch(name):
        raise BadInputError(f"policy: found {policy}, expected a file or {SCHEME}NAMESPACE/NAME")
    from planner.deployments.api import RolloutApi  # noqa: PLC0415  needs the kubernetes extra
    from planner.deployments.policies import read_listed  # noqa: PLC0415

    with RolloutApi.connect(kubeconfig) as api:
        listed = read_listed(api, namespace, name)
    if listed is None:
        raise BadInputError(f"policy: there is no {policy}: kubectl get csp -n {namespace} lists those that there are")
    if listed.policy is None:
        raise BadInputError(listed.problem or f"policy: {policy} cannot be read")
    return listed.text, listed.policy


def _folder(data: Path, taken: GroupSnapshot, policy: ConsumerScalingPolicy, asked: Mapping[str, Any]) -> Path:
    """Return the folder of this request on this snapshot: another request on it has another."""
    request = digest_of(dict(asked)).removeprefix(DIGEST_PREFIX)[:8]
    return RunFolder.of_migration(data, taken.at).path / f"{policy.metadata.name}.{request}"


def _land(taken: GroupSnapshot, policy: str, folder: Path, data: Path) -> MigrationMessage:
    write_atomically(PolicyFiles(folder).snapshot, SNAPSHOT.dump(taken))
    kept = write_atomically(folder / "policy.yaml", policy)
    return MigrationMessage(policy=str(kept), folder=str(folder), data=str(data))


def plan(message: MigrationMessage, asked: Mapping[str, Any], namespace: str | None = None) -> Question:
    """Write the plan for what is asked for, made as of now; return what a person is asked about it.

    ``namespace`` is where it is to be applied, ``None`` for the policy's. Raises ``RefusedError`` for a migration that
    would do harm, or that rests on a snapshot too old; ``BadInputError`` for what does not fit the group.
    """
    files = PolicyFiles(Path(message["folder"]))
    policy, taken = read_policy(Path(message["policy"])), SNAPSHOT.read(files.snapshot)
    if taken.group != policy.spec.source.group:
        raise BadInputError(
            f"{files.snapshot} is of group {taken.group}, but policy {message['policy']} is for group "
            f"{policy.spec.source.group}: use two that belong together"
        )
    request = parse_request(asked, "parameter migration")
    made = pipeline.migrate(taken, request, policy, datetime.now(UTC))
    write_atomically(files.plan, PLAN.text(pipeline.migration_document(made, policy, asked)))
    track = read_track(Path(message["data"]), made.group, made.made_at)
    return question_on(read_plan(files.plan, namespace, track.lines))
