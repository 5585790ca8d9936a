"""The eye of ``make demo``: looks at group, Deployment and plans every second, and keeps what it saw for the page."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from planner.deployments.api import RolloutApi
from planner.deployments.plans import ClusterPlans
from planner.errors import PlannerError
from planner.execution.ports import StoredPlan
from planner.model.samples import GroupSample
from planner.report.run import Observation
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from scripts.demo_stage import DEPLOYMENT, GROUP, NAMESPACE, Stage

EVERY_S = 1.0
HEARTBEAT_S = 30.0
STANDSTILL_S = 600.0
"""Nothing moved for so long: neither members nor pods nor what is consumed."""


@dataclass
class Standstill:
    """For how long nothing has moved."""

    _newest: tuple[object, ...] | None = None
    _since_s: float = 0.0

    def lasts_s(self, newest: Observation | None, now_s: float) -> float:
        """Return for how many seconds members, pods and progress have been those of ``newest``."""
        moving = (newest.members, newest.ready, newest.consumed) if newest else ()
        if moving != self._newest:
            self._newest, self._since_s = moving, now_s
        return now_s - self._since_s


class Watch:
    """What was seen so far; ``tell`` gets a line for each step of a plan that has ended."""

    def __init__(self, stage: Stage, tell: Callable[[str], None]) -> None:
        self.sights: list[Observation] = []
        self.plans: dict[str, StoredPlan] = {}
        self._stage, self._tell = stage, tell
        self._told: dict[str, int] = {}
        self._stop, self._moved = threading.Event(), threading.Condition()

    def wait_for(self, what: str, is_so: Callable[[Observation], bool]) -> Observation:
        """Return the first observation from now on for which ``is_so`` is true, however slow the machine is.

        Every 30 s a line says what it waits for. Raises ``TimeoutError`` when nothing moves any more.
        """
        with self._moved:
            begin, waited_s, moved = len(self.sights), 0.0, Standstill()
            while True:
                match = self._moved.wait_for(lambda: next(filter(is_so, self.sights[begin:]), None), HEARTBEAT_S)
                if isinstance(match, Observation):
                    return match
                waited_s += HEARTBEAT_S
                newest = self.sights[-1] if self.sights else None
                self._tell(f"  still waiting for {what}: {_describe(newest)}")
                if moved.lasts_s(newest, waited_s) >= STANDSTILL_S:
                    raise TimeoutError(f"nothing moved for {STANDSTILL_S:.0f} s while waiting for {what}")

    def run(self) -> None:
        """Look until told to stop. A look that fails is left out: the next one comes in a second."""
        with (
            RocketMQAdmin((self._stage.rocketmq.name_server,)) as admin,
            RolloutApi.connect(self._stage.kubernetes.kubeconfig) as api,
        ):
            plans = ClusterPlans(api, NAMESPACE)
            while not self._stop.wait(EVERY_S):
                try:
                    self._look(admin, api, plans)
                except PlannerError:
                    continue

    def stop(self) -> None:
        """Have ``run`` end."""
        self._stop.set()

    def _look(self, admin: RocketMQAdmin, api: RolloutApi, plans: ClusterPlans) -> None:
        at = datetime.now(UTC)
        sample = observe_group(admin, cluster="DefaultCluster", group=GROUP, topics=None, at=at)
        found = api.find_deployment(NAMESPACE, DEPLOYMENT) or {}
        with self._moved:
            self.sights.append(_observation(sample, found))
            self._moved.notify_all()
        for one in api.plans(NAMESPACE):
            name = one["metadata"]["name"]
            stored = plans.read(name)
            if stored is not None:
                self.plans[name] = stored
                self._tell_steps(stored)

    def _tell_steps(self, stored: StoredPlan) -> None:
        """Tell the steps that have ended since the last look."""
        done = [step for step in stored.status.steps if step.finished_at is not None]
        for step in done[self._told.get(stored.name, 0) :]:
            seconds = (step.finished_at - step.started_at).total_seconds() if step.finished_at else 0.0
            self._tell(f"  step {step.index + 1} of {len(stored.plan.steps)}, {seconds:4.1f} s: {step.message}")
        self._told[stored.name] = len(done)


def _describe(newest: Observation | None) -> str:
    if newest is None:
        return "nothing observed yet"
    return f"{len(newest.members)} consumers, {newest.ready} pods ready, {newest.lag} messages behind"


def _observation(sample: GroupSample, found: Mapping[str, Any]) -> Observation:
    data = [one for one in sample.offsets if not one.queue.is_retry]
    owners = {queue: names for queue, names in sample.owners.items() if not queue.is_retry}
    return Observation(
        at=sample.at,
        arrived=sum(one.broker_offset for one in data),
        consumed=sum(one.consumer_offset or 0 for one in data),
        lag=sum(one.lag if one.lag is not None else one.broker_offset for one in data),
        members=tuple(member.identity for member in sample.members),
        owners={one.queue: owners.get(one.queue, ()) for one in data},
        replicas=int(found.get("spec", {}).get("replicas", 0)),
        ready=int(found.get("status", {}).get("readyReplicas", 0)),
    )


@contextmanager
def watching(stage: Stage, tell: Callable[[str], None]) -> Iterator[Watch]:
    """Give a watch that looks on a thread of its own until the end."""
    watch = Watch(stage, tell)
    thread = threading.Thread(target=watch.run, name="watch", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.stop()
        thread.join()
