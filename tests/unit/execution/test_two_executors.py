"""Two executors, two plans, any schedule of requests: no illegal phase, no lost update, no effect twice, none at once.

Each executor runs ``run_reconcile`` in a thread of its own that stops before every request, until the machine lets it
go on: so one of them may be asleep between a look and the effect of it while anything else happens.
"""

import threading
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from planner.execution.phases import Phase
from planner.execution.reconcile import Outcome, run_reconcile
from tests.unit.execution.fake import FakeCluster
from tests.unit.execution.worlds import DEPLOYMENT, Killed, ports, renewed, stored, twice, untouched, up

PLANS = ("plan-1", "plan-2")
ACTORS = tuple((executor, plan) for executor in ("a", "b") for plan in PLANS)


class Executor:
    """One executor of one plan, stopped before its next request."""

    def __init__(self, cluster: FakeCluster, name: str, plan: str) -> None:
        self._cluster, self._name, self._plan = cluster, name, plan
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._is_killed = False
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self._stopped.acquire()

    def step(self) -> None:
        """Have it make one request and stop before the next one."""
        if self.thread.is_alive():
            self._go.release()
            self._stopped.acquire()
        if self.error is not None:
            raise self.error

    def kill(self) -> None:
        self._is_killed = True
        self.step()
        self.thread.join()

    def _run(self) -> None:
        used = ports(self._cluster, self._wait)
        try:
            with suppress(Killed):
                self._wait("start")
                while True:
                    run_reconcile(used, self._plan, self._name)
        except BaseException as error:  # shown by step(), on the test's own thread
            self.error = error
        finally:
            self._stopped.release()

    def _wait(self, _: str) -> None:
        self._stopped.release()
        self._go.acquire()
        if self._is_killed:
            raise Killed


class TwoExecutors(RuleBasedStateMachine):
    """Plan 1 starts two consumers, plan 2 renews all pods: on one Deployment, only one of them can fit."""

    @initialize(is_one_group=st.booleans())
    def begin(self, is_one_group: bool) -> None:
        """With two groups there are two leases: only the claim on their one Deployment keeps the plans apart."""
        self.cluster = FakeCluster(3)
        stored(self.cluster, up(self.cluster), "plan-1")
        second = stored(self.cluster, renewed(self.cluster), "plan-2")
        if not is_one_group:
            other = replace(second.plan.group, cluster="OtherCluster")
            self.cluster.put(replace(second, plan=replace(second.plan, group=other)))
        self.executors = {actor: Executor(self.cluster, *actor) for actor in ACTORS}
        self.effects = 0

    @rule(actor=st.sampled_from(ACTORS), requests=st.integers(1, 12))
    def act(self, actor: tuple[str, str], requests: int) -> None:
        for _ in range(requests):
            self.executors[actor].step()

    @rule(seconds=st.sampled_from([0.5, 3.0, 6.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.cluster.advance(seconds)

    @rule(actor=st.sampled_from(ACTORS))
    def kill(self, actor: tuple[str, str]) -> None:
        self.executors[actor].kill()
        self.executors[actor] = Executor(self.cluster, *actor)

    @rule(plan=st.sampled_from(PLANS), chance=st.integers(0, 5))
    def abort(self, plan: str, chance: int) -> None:
        if chance == 0:
            self.cluster.ask(plan, abort=True)

    @rule(plan=st.sampled_from(PLANS), pause=st.booleans())
    def pause(self, plan: str, pause: bool) -> None:
        self.cluster.ask(plan, pause=pause)

    @rule()
    def somebody_writes(self) -> None:
        self.cluster.touch(DEPLOYMENT)

    @invariant()
    def no_effect_comes_twice(self) -> None:
        assert not twice(self.cluster), self.cluster.touched

    @invariant()
    def two_plans_are_never_under_way_with_effects(self) -> None:
        owners = [touched.what.partition("/")[0] for touched in self.cluster.touched]
        assert len(set(owners)) <= 1 or self._is_over(owners[0]), self.cluster.touched

    def _is_over(self, plan: str) -> bool:
        """A second plan's effects come only after the first one's end, and none of the first after that."""
        owners = [touched.what.partition("/")[0] for touched in self.cluster.touched]
        changes = sum(before != after for before, after in pairwise(owners))
        return changes == 1 and self.cluster.status(plan).phase.is_final

    @invariant()
    def enough_consumers_are_ready(self) -> None:
        assert self.cluster.lowest_ready is None or self.cluster.lowest_ready >= 3

    def teardown(self) -> None:
        if not hasattr(self, "executors"):
            return
        for executor in self.executors.values():
            executor.kill()
        for plan in PLANS:
            self.cluster.ask(plan, pause=False)
        self._end()
        self._check_ends()

    def _end(self) -> None:
        """A last executor takes turns with both plans: one may wait for the other."""
        for _ in range(600):
            outcomes = {run_reconcile(ports(self.cluster), plan, "last").outcome for plan in PLANS}
            if outcomes == {Outcome.DONE}:
                return
            self.cluster.advance(0.5 if Outcome.MOVED in outcomes else 3.0)
        raise AssertionError(f"not at their ends: {[self.cluster.status(plan) for plan in PLANS]}")

    def _check_ends(self) -> None:
        scaled, renewed_too = (self.cluster.status(plan).ended for plan in PLANS)
        found = self.cluster.deployments[DEPLOYMENT]
        assert Phase.STUCK not in {self.cluster.status(plan).phase for plan in PLANS}
        assert found.replicas == (5 if scaled == "new" else 3)
        assert found.revision == (2 if renewed_too == "new" else 1)
        assert (scaled, renewed_too) != ("new", "new")
        assert untouched(self.cluster)
        assert not twice(self.cluster), self.cluster.touched


TwoExecutors.TestCase.settings = settings(
    max_examples=30, stateful_step_count=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_two_executors_and_two_plans = TwoExecutors.TestCase
