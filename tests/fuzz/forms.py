"""Readers of what people type into Airflow's forms, and what its tasks pass on to each other."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowException, ParamValidationError
from jsonschema import Draft202012Validator

from dags import consumer_planner, consumer_planner_apply, consumer_planner_migration
from planner.approval.handover import read_plan
from planner.approval.offers import read_offer
from planner.documents.policy import parse_policy
from planner.errors import BadInputError
from planner.orchestration.approval import answer_note, typed_phrases, wrong_phrase
from planner.orchestration.examples import EXAMPLES
from planner.orchestration.forms import chosen
from planner.runs import migration
from planner.runs.observe import _moment
from planner.storage.layout import local_folder
from tests.fuzz.documents import folder, load_json
from tests.fuzz.engine import Reader
from tests.sample_builders import POLICY

_FORMS: Final = {
    "consumer_planner": consumer_planner.PARAMS,
    "consumer_planner_apply": consumer_planner_apply.PARAMS,
    "consumer_planner_migration": consumer_planner_migration.PARAMS,
}


_unchecked: Final = classmethod(lambda *_, **__: None)


def read_form(data: bytes) -> object:
    """Check a run's params by the form's own schema, as Airflow does, and read them as the DAG's first task does."""
    found = load_json(data)
    if not isinstance(found, dict) or found.get("dag") not in list(_FORMS):
        raise BadInputError("no such DAG")
    if "offer" in found:
        return read_offer(found["offer"])
    if "answer" in found:
        return _read_answer(found["answer"])
    # The forms' schemas never change, and each check of one takes longer than all the rest. So would a mock.
    with patch.object(Draft202012Validator, "check_schema", _unchecked):
        return _read_params(found)


def _read_params(found: Mapping[str, Any]) -> object:
    given = found.get("params")
    params = ParamsDict(dict(_FORMS[found["dag"]]))
    if isinstance(given, dict):
        for name, value in given.items():
            if name in params:
                _set(params, name, value)
    try:
        checked = params.validate()
    except RecursionError as error:  # Airflow's own validator, when somebody starts the run: no run begins
        raise BadInputError("more levels than Airflow takes") from error
    return _FIRST[found["dag"]](checked)


def _set(params: ParamsDict, name: str, value: Any) -> None:
    try:
        params[name] = value
    except RecursionError as error:  # Airflow checks already here
        raise BadInputError("more levels than Airflow takes") from error


def _read_answer(answer: Any) -> object:
    """Read an answer to the question of an approval: its shape is Airflow's own, what is in the fields people type."""
    shapes = {"chosen_options": list, "params_input": dict, "responded_by_user": dict}
    if not isinstance(answer, dict):
        raise BadInputError("no answer")
    if any(not isinstance(answer.get(name, kind()), kind) for name, kind in shapes.items()):
        raise BadInputError("no fields")
    if not all(isinstance(option, str) for option in answer.get("chosen_options", ())):
        raise BadInputError("no options")
    return typed_phrases(answer), wrong_phrase(answer, ("set the offsets",)), answer_note("plan", answer)


def _observe(params: Mapping[str, Any]) -> object:
    folders = [local_folder(params[name], name) for name in ("policies", "data")]
    recording = chosen(params, "recording")
    if recording is None:
        return folders
    return local_folder(recording, "recording"), [_moment(params[name] or None, name) for name in ("since", "until")]


def _apply(params: Mapping[str, Any]) -> object:
    local_folder(params["kubeconfig"] or "", "kubeconfig")
    return read_plan(local_folder(params["plan"], "plan"), params["namespace"])


def _migrate(params: Mapping[str, Any]) -> object:
    policy = folder() / "policy.yaml"
    if not policy.exists():
        policy.write_text(POLICY)
    for name in ("data", "snapshot", "kubeconfig"):
        local_folder(params[name] or "", name)
    chosen(params, "snapshot")
    local_folder(params["policy"], "policy")
    with patch.object(migration, "parse_policy", _parse_policy):
        return migration.check(policy, params["migration"])


_parse_policy: Final = cache(parse_policy)
"""The policy is the same in all cases, and its YAML would take most of their time."""
_FIRST: Final = {"consumer_planner": _observe, "consumer_planner_apply": _apply, "consumer_planner_migration": _migrate}


def form_seeds() -> list[bytes]:
    """Return the params of one run of each DAG and kind of migration, and an answer."""
    recorded = {
        "source": "recording",
        "recording": "/r",
        "since": "2026-11-21T10:00:00Z",
        "until": "2026-11-21T11:00:00Z",
    }
    live = {"source": "live", "recording": None, "watch_seconds": 30, "keep_days": 3}
    migrations = [{"policy": "/p.yaml", "migration": request, "namespace": "shop"} for _, request in EXAMPLES.values()]
    answer = {
        "chosen_options": ["Approve"],
        "params_input": {"confirm": "set the offsets\nb"},
        "responded_by_user": {"name": "admin"},
    }
    offer = {"policy": "shop", "group": "shop", "from": 2, "to": 4, "reason": "r", "digest": "sha256:1", "plan": "/p"}
    documents = [
        {"dag": "consumer_planner", "params": recorded},
        {"dag": "consumer_planner", "params": live},
        {"dag": "consumer_planner_apply", "params": {"plan": str(Path("/plan.yaml")), "approve": "ask"}},
        *({"dag": "consumer_planner_migration", "params": params} for params in migrations),
        {"dag": "consumer_planner_migration", "answer": answer},
        {"dag": "consumer_planner", "offer": offer},
    ]
    return [json.dumps(one).encode() for one in documents]


READERS: Final = (
    Reader(
        "airflow form",
        read_form,
        form_seeds,
        ("planner.orchestration", "planner.runs.migration", "planner.documents.migration", "planner.approval.handover"),
        errors=(BadInputError, ParamValidationError, AirflowException),
    ),
)
