"""What is set up in Airflow besides DAGs: may the approvers that policies name answer at all, and is the pool there?"""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from planner.orchestration.checks.airflow_process import ask_airflow
from planner.orchestration.checks.result import CheckSettings
from planner.policies.fleet import policy_location, read_fleet
from planner.text.words import some

WITHIN_S: Final = 300.0
DEFAULT_POOL: Final = "default_pool"
FAB, SIMPLE = "FabAuthManager", "SimpleAuthManager"


@cache
def _installation() -> Mapping[str, Any]:
    return ask_airflow("installation", WITHIN_S)


def check_approvers(settings: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say of each policy with approvers whether persons of these ids can answer under Airflow's auth manager.

    Airflow compares the id of a login with the policy's, letter by letter (``is_authorized_hitl_task``). What an id is,
    its auth manager says: ``SimpleAuthManager`` of Airflow 3.3.2 takes user names, ``FabAuthManager`` the number of the
    row, as text. Raises ``BadInputError`` where no policy can be served.
    """
    policies = read_fleet(policy_location(settings.policies)).policies
    named = {policy.metadata.name: policy.spec.approval.approvers for policy in policies}
    named = {name: approvers for name, approvers in named.items() if approvers}
    if not named:
        yield True, "no policy names approvers: whoever may answer tasks of Airflow may approve"
        return
    setup = _installation()
    for name, approvers in named.items():
        yield _may_answer(name, approvers, setup)


def _may_answer(policy: str, approvers: tuple[str, ...], setup: Mapping[str, Any]) -> tuple[bool, str]:
    manager = setup["auth_manager"].rpartition(".")[2]
    subject = f"policy {policy}: approvers {some(approvers)}"
    if manager == FAB:
        unknown = [name for name in approvers if not name.isdecimal()]
        expected = "whose ids are numbers (airflow users list shows them)"
    elif manager == SIMPLE:
        if setup["all_admins"]:
            return False, (
                f"{subject}: everybody may answer, as [core] simple_auth_manager_all_admins makes all administrators: "
                "switch it off"
            )
        unknown = [name for name in approvers if name not in setup["users"]]
        expected = "whose ids are the names in [core] simple_auth_manager_users"
    else:
        return (
            True,
            f"{subject}: whether these are ids of {manager} was not tried; compare them with who answered in Airflow",
        )
    if len(unknown) == len(approvers):
        return (
            False,
            f"{subject}: nobody can answer, as none is an id of {manager}, {expected}: state ids in approval.approvers",
        )
    if unknown:
        return (
            False,
            f"{subject}: {some(unknown)} cannot answer, as that is no id of {manager}, {expected}: state the id",
        )
    return True, f"{subject}: each may be an id of {manager}, {expected}"


def check_pool(_: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say whether the pool of tasks that read brokers exists: tasks of a pool that does not wait for ever."""
    name = os.environ.get("CONSUMER_PLANNER_POOL", DEFAULT_POOL)
    if name == DEFAULT_POOL:
        yield True, f"tasks that read brokers run in {DEFAULT_POOL}, which every Airflow has"
        return
    pool = _installation()["pool"]
    if "problem" in pool:
        yield (
            False,
            f"whether pool {name} exists is unknown: {pool['problem']}: run the check where Airflow's database is",
        )
    elif pool["slots"] is None:
        yield (
            False,
            (
                f"pool {name}, which CONSUMER_PLANNER_POOL names, does not exist: tasks that read brokers would wait "
                f"for ever: airflow pools set {name} 2 'reads of brokers'"
            ),
        )
    else:
        yield True, f"pool {name} exists, {pool['slots']} tasks at once read brokers"
