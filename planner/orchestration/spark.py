"""The operator that submits a Spark app: the connection must be there, and it names the interpreter of executors."""

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

CONNECTION: Final = os.environ.get("CONSUMER_PLANNER_SPARK_CONNECTION", "spark_default")
"""The connection that names Spark's master; ``local[*]`` is the worker's own machine."""
LOCAL_MASTER: Final = re.compile(r"local(\[|$)")
"""A host named localhost is none."""
FAILURE: Final = "failure"
"""The XCom's key under which a failed app leaves its sentence; another try of the task removes it."""
_SENTENCE: Final = re.compile(r"^planner: (.+)$", re.MULTILINE)
_EXIT_CODE: Final = re.compile(r"Error code is: (\d+)")


class SparkStage(SparkSubmitOperator):
    """Submits an app on the connection ``CONNECTION``, whose extra ``python`` is the interpreter of executors.

    Fails with one sentence, and is not tried again, where the connection is not defined: the provider would take YARN
    then, and end in a trace of Java's.
    """

    def __init__(self, *, code: str, **arguments: Any) -> None:
        super().__init__(conn_id=CONNECTION, **arguments)
        self.code = code

    def execute(self, context: Any) -> None:
        """Submit the app and wait for its end. Raises ``AirflowFailException`` where the connection is missing.

        Why it failed is the XCom ``FAILURE``, for the tasks that say what came of the run.
        """
        try:
            self._submit(context)
        except Exception as error:
            if (task := context.get("ti")) is not None:  # none where planner airflow check submits
                task.xcom_push(key=FAILURE, value=failure_of(error))
            raise

    def _submit(self, context: Any) -> None:
        try:
            connection = Connection.get(CONNECTION)
        except AirflowNotFoundException as error:
            raise AirflowFailException(
                f"connection {CONNECTION} is not defined, which names Spark's master: airflow connections add "
                f"{CONNECTION} --conn-type spark --conn-host 'local[*]' adds it, "
                "CONSUMER_PLANNER_SPARK_CONNECTION names another"
            ) from error
        is_local = LOCAL_MASTER.match(connection.host or "") is not None
        configured = os.environ.get("PYSPARK_PYTHON")
        variables = interpreters(connection.extra_dejson, configured, is_local=is_local)
        self.env_vars = {"PYTHONPATH": self.code, **variables}
        super().execute(context)


def interpreters(extra: Mapping[str, Any], configured: str | None, *, is_local: bool) -> dict[str, str]:
    """Return the variables that name the interpreters of driver and executors.

    The driver runs here, with the worker's own, but in the deploy mode ``cluster``. Executors take the connection's
    ``python``, else the ``PYSPARK_PYTHON`` of this process, else on this machine the worker's own and elsewhere Spark's
    ``python3``: the path of the worker's own means nothing there.
    """
    executors = {
        "PYSPARK_PYTHON": str(extra.get("python") or configured or (sys.executable if is_local else "python3"))
    }
    is_driver_here = extra.get("deploy-mode") != "cluster"
    return {**executors, "PYSPARK_DRIVER_PYTHON": sys.executable} if is_driver_here else executors


def failure_of(error: object) -> str:
    """Return why an app failed as one sentence: the app's own, which the operator quotes with Spark's output."""
    text = str(error)
    if sentences := _SENTENCE.findall(text):
        return str(sentences[-1])
    if code := _EXIT_CODE.search(text):
        return f"spark-submit ended with exit code {code[1]}"
    return (text.splitlines() or ["no reason was given"])[0]
