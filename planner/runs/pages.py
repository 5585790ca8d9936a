"""A run's pages: one for each decision that people are to look at."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.errors import PlannerError
from planner.runs.cases import Case, served
from planner.runs.processes import KilledError, in_processes, may_have_children, processors
from planner.storage.files import remove_file
from planner.storage.layout import PolicyFiles
from planner.storage.run import Run, RunFiles

log = logging.getLogger(__name__)

Pages = Literal["all", "plans", "none"]
"""For which policies a run writes pages: every decision, those with a plan, or nobody."""

MOST_AT_ONCE: Final = 4
"""Processes that write pages, of as many processors: a machine of a busy Airflow has other work, too."""

FEW: Final = 8
"""So many pages are written before processes for them would have started."""


def write_pages(run: Run, pages: Pages) -> Mapping[str, str]:
    """Write the pages that are asked for; return why there is none, a sentence for each policy that lacks its page.

    Many are written in a few processes at a time, each of which has one group in memory. A page of an earlier try of
    the same run goes where none is asked for now.
    """
    policies = read_policies(run.policies)
    due = [policy for policy in policies if _has_page(run.folder.policy(policy.metadata.name), pages)]
    reasons = zip(due, _why_no_pages(run, due), strict=True)
    return {policy.metadata.name: str(reason) for policy, reason in reasons if reason is not None}


def _why_no_pages(run: Run, due: Sequence[ConsumerScalingPolicy]) -> Iterator[str | KilledError | None]:
    """Write the pages, and yield for each why there is none, ``None`` where there is one."""
    write, jobs = partial(_why_no_page, run), min(MOST_AT_ONCE, processors())
    if len(due) <= FEW or jobs == 1:
        return map(write, due)
    if not may_have_children():
        log.info("pages are written one after the other: a worker process of this kind may start no others")
        return map(write, due)
    return in_processes(write, due, jobs)


def _why_no_page(run: Run, policy: ConsumerScalingPolicy) -> str | None:
    result = write_policy_page(run, policy)
    return str(result) if isinstance(result, PlannerError) else None


def _has_page(files: PolicyFiles, pages: Pages) -> bool:
    if pages == "all" or (pages == "plans" and files.plan.exists()):
        return True
    remove_file(files.report)
    return False


def write_policy_page(run: RunFiles, policy: ConsumerScalingPolicy) -> Path | PlannerError:
    """Write one policy's page and return its path, or why there is none."""
    return served(run, "report", _write_report, policy)


def _write_report(case: Case) -> Path:
    from planner.report import write_report  # noqa: PLC0415  only this stage needs the report extra

    bound = case.policy.objective.stated_utilisation
    return write_report(
        case.files.report,
        case.snapshot,
        case.outcomes,
        case.record,
        case.plan,
        max_utilisation=bound,
        track=case.track,
    )
