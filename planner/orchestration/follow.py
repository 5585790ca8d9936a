"""What the apply DAG waits in: ``FollowPlan`` defers to ``PlanTrigger``, so no worker slot is held meanwhile.

Triggers run in Airflow's triggerer, which finds this one by its path here. Kubernetes is asked in threads, as the
triggerer's event loop serves all triggers.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from planner.errors import PlannerError
from planner.orchestration.retries import without_useless_retries
from planner.orchestration.run_notes import KEY, leave_note
from planner.text.printable import one_line

if TYPE_CHECKING:
    from airflow.sdk import Context

    from planner.deployments.api import RolloutApi
    from planner.deployments.following import End, Follower

EVERY_S: Final = 2.0
"""Between two checks: each is two small requests."""


class PlanTrigger(BaseTrigger):
    """Fires once, when a plan is at its end or has no executor; the event's payload is an ``End``.

    There is no ``on_kill``: a person who marks the task failed or clears it ends the following, and the plan goes on.
    ``planner abort`` undoes it.
    """

    def __init__(self, name: str, namespace: str, kubeconfig: str | None, silence_s: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has no types
        self.name, self.namespace, self.kubeconfig, self.silence_s = name, namespace, kubeconfig, silence_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what the triggerer makes it from again."""
        kept = ("name", "namespace", "kubeconfig", "silence_s")
        return f"{__name__}.{type(self).__name__}", {field: getattr(self, field) for field in kept}

    def check(self) -> "End | None":
        """Return the end where there is one already. Raises ``OutOfReachError``."""
        api = self._connect()
        try:
            return self._follower(api).check()
        finally:
            api.close()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check until there is an end; write progress into the task's log."""
        try:
            yield TriggerEvent(dict(await self._followed()))
        except PlannerError as error:
            yield TriggerEvent({"is_good": False, "sentence": str(error)})

    async def _followed(self) -> "End":
        async with AsyncExitStack() as opened:
            api = await asyncio.to_thread(self._connect)
            opened.push_async_callback(asyncio.to_thread, api.close)
            follower, progress = await asyncio.to_thread(self._follower, api), ""
            while (end := await asyncio.to_thread(follower.check)) is None:
                if follower.progress != progress:
                    progress = follower.progress
                    self.log.info("plan %s: %s", self.name, one_line(progress))
                await asyncio.sleep(EVERY_S)
            return end

    def _connect(self) -> "RolloutApi":
        from planner.deployments.api import RolloutApi  # noqa: PLC0415  DAG files that import us stay quick

        return RolloutApi.connect(Path(self.kubeconfig) if self.kubeconfig else None)

    def _follower(self, api: "RolloutApi") -> "Follower":
        from planner.deployments.following import Follower  # noqa: PLC0415
        from planner.deployments.leases import ClusterLeases  # noqa: PLC0415
        from planner.deployments.plans import ClusterPlans  # noqa: PLC0415

        plans, leases = ClusterPlans(api, self.namespace), ClusterLeases(api, self.namespace)
        return Follower(plans, leases, self.name, self.silence_s)


class FollowPlan(BaseOperator):
    """Ends well with the plan's ``End`` once the plan has succeeded; fails with its one sentence otherwise.

    The sentence is the run's note, too, behind what a person has answered.

    It only reads: when it is retried, it follows anew, and nothing is applied twice. A forecast that was missed is no
    failure; the verdict says so in the log and in the result.
    """

    template_fields = ("name", "namespace", "kubeconfig", "silence_s")

    def __init__(self, *, name: str, namespace: str, kubeconfig: str, silence_s: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.name, self.namespace, self.kubeconfig, self.silence_s = name, namespace, kubeconfig, silence_s

    def execute(self, context: "Context") -> "End":
        """Return the end where there is one already, else hand the waiting to the triggerer.

        A trigger that fires before the scheduler has noted that the task waits makes Airflow 3.3 fail the task
        (apache/airflow#71580), so none is made for a plan that is over.
        """
        trigger = PlanTrigger(self.name, self.namespace, self.kubeconfig or None, float(self.silence_s))
        with without_useless_retries(context["ti"]):
            end = trigger.check()
        if end is None:
            self.defer(trigger=trigger, method_name="finish")
        return self.finish(context, dict(end))

    def finish(self, context: "Context", event: dict[str, Any]) -> "End":
        """Return how the plan ended. Raises ``AirflowFailException`` unless it has succeeded."""
        answered = context["ti"].xcom_pull(task_ids="ask", key=KEY)
        leave_note(context["ti"], "; ".join(filter(None, (answered, one_line(event["sentence"])))))
        for sentence in event.get("verdict", []):
            self.log.info(one_line(sentence))
        if not event["is_good"]:
            raise AirflowFailException(one_line(event["sentence"]))
        self.log.info(one_line(event["sentence"]))
        return cast("End", event)
