"""A migration on files: what each task of the migration DAG reads and writes below the data folder."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from planner import pipeline
from planner.calibration import read_track
from planner.documents.approve import approved, check_approvable, digest_in
from planner.documents.data import SNAPSHOT
from planner.documents.migration import parse_request
from planner.documents.plan import PLAN, read_document
from planner.documents.policy import ConsumerScalingPolicy, read_policy
from planner.errors import BadInputError
from planner.handover import PlanMessage, read_plan
from planner.model.snapshot import GroupSnapshot
from planner.snapshot.build import RECENT
from planner.sources.live import Pace, watch
from planner.sources.past import check_past, past_or_problem
from planner.storage.files import write_atomically
from planner.storage.layout import PolicyFiles, RunFolder

log = logging.getLogger(__name__)


class MigrationMessage(TypedDict):
    """A migration as it travels from task to task: its policy, its own folder, and the data folder."""

    policy: str
    folder: str
    data: str


def observe(policy: Path, data: Path, watch_s: float | None = None) -> MigrationMessage:
    """Watch the policy's group, write its snapshot and return where; ``None`` watches for the policy's window.

    Raises ``BadInputError`` for a wrong policy, ``OutOfReachError`` where brokers or the API server do not answer. A
    metrics server that does not is among the snapshot's problems.
    """
    wanted = read_policy(policy)
    check_past(wanted)
    pace = Pace()
    samples = tuple(watch(wanted, wanted.snapshot_settings.window_s if watch_s is None else watch_s, pace))
    at = samples[-1].at
    past, problems = past_or_problem(wanted, at - RECENT, at)
    taken = pipeline.take_snapshot(samples, pace.sample_every_s, wanted, at, past)
    return _landed(replace(taken, problems=(*taken.problems, *problems)), policy, wanted, data)


def observe_snapshot(policy: Path, data: Path, snapshot: Path) -> MigrationMessage:
    """Take a snapshot that somebody has made already, and return where it was written."""
    return _landed(SNAPSHOT.read(snapshot), policy, read_policy(policy), data)


def _landed(taken: GroupSnapshot, policy: Path, wanted: ConsumerScalingPolicy, data: Path) -> MigrationMessage:
    files = RunFolder.of_migration(data, taken.at).policy(wanted.metadata.name)
    write_atomically(files.snapshot, SNAPSHOT.dump(taken))
    return MigrationMessage(policy=str(policy), folder=str(files.folder), data=str(data))


def plan(message: MigrationMessage, asked: Mapping[str, Any], namespace: str | None = None) -> PlanMessage:
    """Write the plan for what is asked for, made as of now; return what the other tasks have to know of it.

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
    write_atomically(files.plan, PLAN.text(pipeline.migration_document(made, policy)))
    return read_plan(files.plan, namespace, read_track(Path(message["data"]), made.group, made.made_at).lines)


def approve(message: PlanMessage, answer: Mapping[str, Any] | None) -> str:
    """Write a person's approval into the plan file and return its digest; ``answer`` is what the person was asked.

    Its field ``confirm`` holds the phrases of steps that set offsets, one a line. Raises ``BadInputError`` where nobody
    answered, a phrase is missing or the plan was changed meanwhile, ``StaleError`` where it holds no longer.
    """
    path = Path(message["file"])
    if answer is None:
        raise BadInputError(f"nobody has approved {path}: the question was marked as answered, which is no answer")
    document = read_document(path)
    made = PLAN.parse(document, str(path))
    phrases = _phrases(answer)
    check_approvable(made, digest_in(document), message["digest"], phrases, datetime.now(UTC))
    write_atomically(path, PLAN.text(approved(document, phrases)))
    person = answer.get("responded_by_user") or {}
    log.info("migration approved", extra={"plan": message["name"], "by": person.get("name")})
    return message["digest"]


def _phrases(answer: Mapping[str, Any]) -> Sequence[str]:
    said = (answer.get("params_input") or {}).get("confirm") or ""
    return tuple(line.strip() for line in said.splitlines() if line.strip())
