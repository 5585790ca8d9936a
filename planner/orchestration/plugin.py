"""What Airflow loads of this package besides its DAGs, by the entry point ``airflow.plugins``.

One listener, for the scheduler: it gives a run that is over the note that a task has left (``run_notes``). One app, for
the API server: the pages of plans (``pages``). Where one of them lacks the package, notes or pages are missing, and all
else is as it was.
"""

from typing import Any, Final

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

from planner.orchestration.pages import PREFIX, Pages
from planner.orchestration.run_notes import KEY

OURS: Final = "consumer_planner"
"""What the names of our DAGs begin with."""


class RunNotes:
    """A listener that gives a run that is over its note."""

    @hookimpl
    def on_dag_run_success(self, dag_run: Any, msg: str) -> None:  # noqa: ARG002  Airflow goes by names
        """Note a run that has ended well."""
        write_note(dag_run)

    @hookimpl
    def on_dag_run_failed(self, dag_run: Any, msg: str) -> None:  # noqa: ARG002
        """Note a run that has failed."""
        write_note(dag_run)


def write_note(dag_run: Any) -> None:
    """Let the text that a task left be the run's note; one that a person wrote stays.

    It is written in the scheduler's own session, which has the run locked: another one would wait for it for ever. A
    run of ``airflow dags test`` is in no session and gets no note.
    """
    from sqlalchemy.orm import object_session  # noqa: PLC0415  Airflow loads plugins in every process

    session = object_session(dag_run)
    if session is None or not dag_run.dag_id.startswith(OURS) or _is_of_a_person(dag_run):
        return
    text = _left_by_a_task(dag_run, session)
    if text is not None:
        dag_run.note = text


def _is_of_a_person(dag_run: Any) -> bool:
    written = dag_run.dag_run_note
    return written is not None and written.user_id is not None


def _left_by_a_task(dag_run: Any, session: Any) -> str | None:
    # The scheduler has no task API: it asks its database.
    from airflow.models.xcom import XComModel  # noqa: PLC0415

    newest = XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_run.dag_id, key=KEY, limit=1)
    entry = session.scalars(newest).first()
    value = None if entry is None else XComModel.deserialize_value(entry)
    return value if isinstance(value, str) else None


class ConsumerPlannerPlugin(AirflowPlugin):
    """Our plugin: notes of runs, pages of plans."""

    name = "consumer_planner"
    listeners = [RunNotes()]  # noqa: RUF012  as Airflow declares it
    fastapi_apps = [{"name": "consumer-planner", "url_prefix": PREFIX, "app": Pages()}]  # noqa: RUF012
