"""All checks in order; one that fails, whatever the reason, keeps no other from being run."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from typing import Final

from planner.errors import PlannerError
from planner.orchestration.checks.brokers import check_brokers
from planner.orchestration.checks.dags import check_dags
from planner.orchestration.checks.installation import check_approvers, check_pool
from planner.orchestration.checks.java import check_java_result
from planner.orchestration.checks.kubernetes import check_kubernetes
from planner.orchestration.checks.packages import check_airflow, check_packages
from planner.orchestration.checks.policies import check_policies
from planner.orchestration.checks.result import CheckResult, CheckSettings
from planner.orchestration.checks.spark import check_spark
from planner.orchestration.checks.storage import check_storage
from planner.orchestration.connections import command_connections

log = logging.getLogger(__name__)

Check = Callable[[CheckSettings], Iterable[tuple[bool, str]]]
"""Returns for each thing that it proves whether that is well, and the sentence."""

CHECKS: Final[Mapping[str, Check]] = {
    "airflow": check_airflow,
    "dags": check_dags,
    "packages": check_packages,
    "java": check_java_result,
    "spark": check_spark,
    "storage": check_storage,
    "policies": check_policies,
    "approvers": check_approvers,
    "pool": check_pool,
    "brokers": check_brokers,
    "kubernetes": check_kubernetes,
}
"""Name -> check, in the order in which they are run and shown."""


def run_checks(settings: CheckSettings, checks: Mapping[str, Check] = CHECKS) -> Iterator[CheckResult]:
    """Yield the results of each check as soon as it is done, at least one for each.

    Whatever Airflow and Spark print meanwhile goes to standard error.
    """
    for name, check in checks.items():
        yield from _results(name, check, settings)


def _results(name: str, check: Check, settings: CheckSettings) -> list[CheckResult]:
    results: list[CheckResult] = []
    try:
        with command_connections(), redirect_stdout(sys.stderr):
            for is_good, sentence in check(settings):
                results.append(CheckResult(name, is_good, sentence))
    except PlannerError as error:
        results.append(CheckResult(name, False, str(error)))
    except Exception as error:
        log.debug("check %s failed", name, exc_info=True)
        problem = f"the check ended with {type(error).__name__}: {error}, which the planner does not know: report it"
        results.append(CheckResult(name, False, problem))
    return results
