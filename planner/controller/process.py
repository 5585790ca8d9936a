"""The tasks of a running controller: started together, watched over, and ended together."""

import faulthandler
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from prometheus_client import start_http_server

from planner.controller import health, logs
from planner.controller.agenda import Agenda
from planner.controller.background import BackgroundTask
from planner.controller.election import Election
from planner.controller.metrics import Metrics
from planner.controller.plan_cache import PlanCache
from planner.controller.records import Records, check_data
from planner.controller.retention import Retention
from planner.controller.settings import Settings
from planner.controller.watch import watch
from planner.controller.worker import Worker
from planner.deployments.api import RolloutApi
from planner.deployments.clock import ServerClock
from planner.deployments.drive import executor_name
from planner.deployments.groups import Groups, LiveGroups
from planner.deployments.leases import ClusterLeases
from planner.execution.ports import StoredPlan
from planner.execution.progress import RolloutStatus
from planner.verification.calibration import calibration_records

log = logging.getLogger(__name__)

ELECT_S: Final = 2.0
LIST_S: Final = 60.0
"""Between two lists of all plans: what the watch has missed is seen by then."""
RETRY_S: Final = 5.0
SILENT_S: Final = 20.0
"""An API server that did not answer for so long is away."""
STUCK_S: Final = 120.0
"""A task that did nothing for so long hangs: each of its requests has a deadline of 10 s."""
END_S: Final = 20.0
"""How long reconciles that go on and leases that are given back are waited for: a pod has 30 s from SIGTERM on."""
GIVING_S: Final = 8.0
"""What of it is left to giving leases back, however long reconciles go on."""
LAST_S: Final = 25.0
"""After which the process ends, whatever it waits for: a thread of a client's own, a full pipe, a fault of ours."""
NOTICE_S: Final = 0.5
"""Within which time the end is noticed, whichever thread took the signal."""


class Controller:
    """All tasks of one replica."""

    def __init__(self, settings: Settings, api: RolloutApi, groups: Callable[[], Groups]) -> None:
        self._settings, self._api = settings, api
        self.stop = threading.Event()
        self._agenda = Agenda()
        self._cache = PlanCache(self._agenda, self._record_change)
        executor = executor_name()
        leases = ClusterLeases(api, settings.lease_namespace)
        clock = ServerClock(api.server_time)
        self._election = Election(leases, settings.lease_name, executor, clock)
        self.metrics = Metrics(lambda: self._cache.counts() if self._election.leads() else {}, self._election.leads)
        self._worker = Worker(api, groups, executor, self.metrics, settings.data, settings.planning_accounts)
        failed = self.metrics.count_failure
        self._records = Records(settings.data, failed)
        self._retention = Retention(api, settings.finished_plans, clock, self._records.is_kept)
        self._elects = BackgroundTask("election", self._election.attempt, ELECT_S, self.stop, failed)
        self._lists = BackgroundTask("plans", self._list, LIST_S, self.stop, failed)
        self._watches = BackgroundTask("watch", self._watch, RETRY_S, self.stop, failed)
        self._workers = [
            BackgroundTask(f"worker {number}", self._work, 0.0, self.stop, failed) for number in range(settings.workers)
        ]
        self._tasks = [self._elects, self._lists, self._watches, *self._workers]

    def run(self) -> None:
        """Serve health and metrics and run all tasks until ``stop`` is set; then end them, and give leases back."""
        settings = self._settings
        address = settings.listen_address
        server = health.serve_health(address, settings.health_port, self.why_not_alive, self.why_not_ready)
        try:
            metrics, _ = start_http_server(settings.metrics_port, address, self.metrics.registry)
        except OSError as error:
            raise health.port_error("--metrics-port", settings.metrics_port, error) from error
        for task in self._tasks:
            task.thread.start()
        ports = {"health_port": server.server_port, "metrics_port": metrics.server_port}
        log.info("controller begins", extra={"namespaces": list(settings.namespaces) or "all", **ports})
        # A signal that another thread took wakes no thread: its handler runs on this thread, once it runs. As handlers
        # set the event, this thread must never hold its lock, as ``wait`` does.
        while not self.stop.is_set():
            time.sleep(NOTICE_S)
        # It takes neither Python's lock nor one of ours, and writes where each thread stands.
        faulthandler.dump_traceback_later(LAST_S, exit=True)
        self._end([server.shutdown, metrics.shutdown])

    def why_not_alive(self) -> str | None:
        """Return what hangs or has died, so that only a new process helps."""
        for task in self._tasks:
            if not task.thread.is_alive():
                return f"part {task.name} has ended"
        if time.monotonic() - self._elects.began_at > STUCK_S:
            return f"part {self._elects.name} hangs"
        return None

    def why_not_ready(self) -> str | None:
        """Return why no plan would be carried out, nor would this replica take over, ``None`` when it would."""
        if (why := self.why_not_alive()) is not None:
            return why
        if self._election.silent_s > SILENT_S:
            return f"no good answer from {self._api.server} for {SILENT_S:.0f} s"
        if not self._lists.is_done:
            return "the plans were not yet listed"
        return None

    def _end(self, closings: Sequence[Callable[[], None]]) -> None:
        """Let reconciles finish, give leases back, close; what takes too long is logged and left.

        That is safe: a plan whose reconcile goes on keeps its lease, so nobody else begins before that has run out, and
        what is asked of the server late meets another version.
        """
        until = time.monotonic() + END_S
        threads = [task.thread for task in (*self._workers, self._elects)]
        closing = threading.Thread(target=self._close, args=(closings,), name="giving leases back", daemon=True)
        _join(threads, until - GIVING_S)
        closing.start()
        _join([closing], until)
        if left := [thread.name for thread in (*threads, closing) if thread.is_alive()]:
            log.warning("left unfinished", extra={"parts": left, "after_s": END_S})
        log.info("controller ends")

    def _close(self, closings: Sequence[Callable[[], None]]) -> None:
        self._worker.give_back(besides=self._agenda.busy())
        self._election.give_back()
        for close in closings:
            close()

    def _work(self) -> None:
        """Reconcile the plan that is due, if we lead."""
        if not self._election.leads():
            self.stop.wait(0.2)
            return
        key = self._agenda.take(timeout_s=0.5)
        if key is None:
            return
        after_s = self._worker.reconcile(key) if self._election.leads() else 0.0
        self._agenda.put_back(key, after_s)

    def _list(self) -> None:
        self._api.check_installed()
        namespaces: tuple[str | None, ...] = self._settings.namespaces or (None,)
        manifests = [manifest for namespace in namespaces for manifest in self._api.plans(namespace)]
        self._cache.note_all(manifests)
        for manifest in manifests:
            self._records.note(manifest)
        if self._election.leads():
            self._retention.tidy(manifests)

    def _watch(self) -> None:
        self._api.check_installed()
        watch(self._cache, self._api.login, self._settings.namespaces, self.stop)

    def _record_change(self, stored: StoredPlan, before: RolloutStatus) -> None:
        """Keep how its forecast did; count what has come anew into a plan's status, if it is for us to count."""
        self._records.keep(stored)
        if not self._election.leads():
            return
        status = stored.status
        ended = {step.index for step in before.steps if step.finished_at}
        for step in status.steps:
            if step.index not in ended:
                self.metrics.count_step(step)
        for refusal in status.refusals if status.refusals != before.refusals else ():
            self.metrics.count_refusal(refusal)
        if status.verdict is not None and before.verdict is None:
            for record in calibration_records(stored.plan, status.verdict):
                self.metrics.count_verdict(record)


def _join(threads: Iterable[threading.Thread], until: float) -> None:
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def run(settings: Settings, groups: Callable[[], Groups] = LiveGroups) -> None:
    """Carry plans out until SIGTERM or SIGINT.

    Raises ``BadInputError`` for a bad kubeconfig, a taken port, or a data folder that cannot be written.
    """
    logs.set_up(settings.log_format, settings.log_level)
    if settings.data is not None:
        check_data(settings.data)
    with RolloutApi.connect(settings.kubeconfig) as api:
        controller = Controller(settings, api, groups)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: controller.stop.set())
        controller.run()
        # All is logged and given back. An interpreter that comes down meets threads that still wait for an answer,
        # which aborts it (SIGABRT, seen), and on a busy machine takes until the last moment, which is no good end
        # (seen).
        logging.shutdown()
        os._exit(0)
