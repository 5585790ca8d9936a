"""``make demo``: the closed loop on one machine, live on loopback.

Real brokers, real consumers, a real control plane. Load rises: the scheduled DAG plans, one line approves, the apply
DAG hands the plan to the controller, consumers start, the group settles. Load falls: the same once more, and chosen
consumers stop. All of it ends with the demo; the page of the run stays.
"""

import argparse
import shutil
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from planner.orchestration.checks.java import check_java
from planner.report.run import Note, Observation, Run, write_run
from planner.runs.policy_stages import read_decision
from planner.storage.layout import PolicyFiles, RunFolder
from scripts.cast import Cast
from scripts.demo_acts import WATCH_S, WINDOW_S, Airflow, Teller, airflow_process, planner
from scripts.demo_stage import BUSY, CAPACITY, FEWEST, GROUP, NAMESPACE, QUEUES, QUIET, Stage, open_stage
from scripts.demo_watch import Watch, watching
from scripts.ends import RunFailedError, exit_code_of
from scripts.run_local import ROOT, Settings, environment
from scripts.spark_classes import class_archive
from tests.clusters.errors import CannotRunHereError, StartFailedError
from tests.clusters.kubernetes.build import control_plane_binary, kubernetes_version
from tests.clusters.rocketmq import NEW, server_jars
from tests.clusters.rocketmq_load import ProducerProcess, compiled

PAGE, CAST = "index.html", "demo.cast"

TAIL_S = 6.0
"""Seen on the page after the last plan."""


def main() -> int:
    """Run the demo; return 0 when every plan succeeded, whatever became of the forecasts."""
    parser = argparse.ArgumentParser(prog="scripts.demo", description="The closed loop, live on loopback.")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "work" / "demo", help="folder that everything is written to"
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Enter is pressed")
    parser.add_argument("--rise-only", action="store_true", help="end after the first plan")
    parser.add_argument("--record", type=Path, help="folder that gets the page and the terminal's recording as well")
    given = parser.parse_args()

    def play() -> None:
        page = demo(given.work.resolve(), keeps=given.keep, falls=not given.rise_only)
        if given.record:
            given.record.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, given.record / "page.html")
            shutil.copyfile(page.with_name(CAST), given.record / CAST)
        sys.stdout.write(f"\nThe page of the run: {page}\n")

    return exit_code_of(play, "demo: ", (CannotRunHereError, StartFailedError, TimeoutError))


def demo(work: Path, *, keeps: bool = False, falls: bool = True) -> Path:
    """Play the demo, to its first half without ``falls``, and return its page.

    Raises ``RunFailedError`` for a plan that did not succeed.
    """
    check_java()
    say, settings = Teller(), Settings(policies=work / "policies", capture=work, work=work)
    for old in (settings.data, settings.policies):
        shutil.rmtree(old, ignore_errors=True)
    settings.airflow_home.mkdir(parents=True, exist_ok=True)
    with say.act("build what is not built yet"):
        settings = replace(settings, java_options=(*settings.java_options, *_build(settings, say)))
    say(f"Starting RocketMQ {NEW}, Kubernetes {kubernetes_version()} and Airflow, on loopback only")
    with airflow_process(settings, say) as airflow, ExitStack() as undo:
        with say.act("start all of it"):
            stage = undo.enter_context(open_stage(work))
            watch = undo.enter_context(watching(stage, say))
            stage.produce(QUIET)
            watch.wait_for(f"{FEWEST} consumers that own all queues", _is_settled)
        show = Show(stage, watch, airflow, say)
        rise, more = show.rise()
        page = write_run(work / PAGE, _run(watch, (rise,)))
        if falls:
            page = write_run(page, _run(watch, (rise, show.fall(more))))
        if keeps:
            _keep(stage, page)
        stopping = time.monotonic()
    say.acts.append(("stop all of it", time.monotonic() - stopping))
    say.tell_acts()
    Cast("make demo: load rises, load falls", say.began_at, say.lines).write(work / CAST)
    return page


def _build(settings: Settings, say: Teller) -> tuple[str, ...]:
    """Build what this machine has not built yet, telling how far it is; return the Java options for Spark's classes.

    What is built is kept, also by a build that fails or is interrupted, so that the next one goes on from there.
    """
    say(f"Kubernetes {kubernetes_version()}: built once, then kept")
    control_plane_binary(lambda sentence: say(f"  {sentence}"))
    say("RocketMQ and its clients: fetched and compiled once, then kept")
    server_jars(NEW)
    compiled(NEW)
    say("Spark's classes: archived once, then kept")
    return class_archive(environment(settings))


@dataclass(frozen=True)
class Show:
    """What is played, with all that it takes."""

    stage: Stage
    watch: Watch
    airflow: Airflow
    say: Teller

    def rise(self) -> tuple[Note, ProducerProcess]:
        """Let the load rise and consumers start; return when it rose, and what the additional load comes from."""
        self.say(
            f"{FEWEST} consumers share {QUEUES} queues; each can do {CAPACITY} messages/s. Load: {QUIET:.0f} messages/s"
        )
        more = self.stage.produce(BUSY - QUIET)
        rises = Note(datetime.now(UTC), "load rises")
        self.say(f"Load rises to {BUSY:.0f} messages/s")
        self._change("load has risen", WATCH_S)
        with self.say.act("the new consumers work the backlog off"):
            self.watch.wait_for("the end of the backlog", lambda observation: observation.lag < BUSY)
        self.say("The backlog is gone")
        return rises, more

    def fall(self, more: ProducerProcess) -> Note:
        """Let the load fall and consumers stop; return when it fell."""
        more.stop()
        falls = Note(datetime.now(UTC), "load falls")
        self.say(f"Load falls to {QUIET:.0f} messages/s")
        self._change("load has fallen", WINDOW_S)
        time.sleep(TAIL_S)
        return falls

    def _change(self, why: str, watch_s: int) -> None:
        """Plan by the DAG, approve, have it applied by the controller, verify."""
        settings, kubeconfig = self.airflow.settings, str(self.stage.kubernetes.kubeconfig)
        conf = {"policies": str(settings.policies), "data": str(settings.data), "source": "live"}
        with self.say.act(f"{why}: watch for {watch_s} s, plan"):
            self.airflow.run("consumer_planner", {**conf, "watch_seconds": watch_s})
            plan = _plan_of(_newest_run(settings.data), self.say)
            shown = plan.relative_to(Path.cwd()) if plan.is_relative_to(Path.cwd()) else plan
            planner("approve", str(shown), say=self.say)
        with self.say.act(f"{why}: carry the plan out, verify"):
            self.stage.await_controller()
            self.airflow.run("consumer_planner_apply", {"plan": str(plan), "kubeconfig": kubeconfig})
            name = max(self.watch.plans.values(), key=lambda stored: stored.plan.made_at).name
            planner("verify", name, "--namespace", NAMESPACE, "--kubeconfig", kubeconfig, say=self.say)


def _is_settled(observation: Observation) -> bool:
    return len(observation.members) == FEWEST and all(len(names) == 1 for names in observation.owners.values())


def _newest_run(data: Path) -> PolicyFiles:
    return RunFolder(max((data / "runs").iterdir())).policy(GROUP)


def _plan_of(files: PolicyFiles, say: Teller) -> Path:
    if not files.decision.exists():
        raise RunFailedError(files.no_decision.read_text(encoding="utf-8").strip(), 1)
    reason = read_decision(files.decision).decision.reason
    if not files.plan.exists():
        raise RunFailedError(f"there is no plan: {reason}", 1)
    say(reason)
    return files.plan


def _run(watch: Watch, notes: tuple[Note, ...]) -> Run:
    plans = sorted(watch.plans.values(), key=lambda stored: stored.plan.made_at)
    return Run(
        sights=tuple(watch.sights),
        plans=tuple(plans),
        notes=notes,
        real=(
            f"RocketMQ {NEW}: name server, broker, and every consumer and producer with its own client classes",
            f"Kubernetes {kubernetes_version()}: etcd, API server, controllers, scheduler, from its Go modules",
            "the Deployment, its ReplicaSet, pods and their deletion costs; roles and admission policies from k8s/",
            "planner-controller, as a process with the rights of its own account",
            "both DAGs through Airflow, the planning one with local Spark",
        ),
        stand_ins=(
            "the kubelet: no container engine runs here, so a pod is a local process (a Java consumer)",
            "the load: a producer sends at a fixed rate, each message takes a consumer thread 20 ms",
            f"the capacity of a consumer, {CAPACITY} messages/s, stands in the policy: to learn it takes more history",
        ),
    )


def _keep(stage: Stage, page: Path) -> None:
    sys.stdout.write(
        f"\nThe page: {page}\nEverything still runs. Look around:\n"
        f"  kubeconfig   {stage.kubernetes.kubeconfig}\n  name server  {stage.rocketmq.name_server}\n"
        "Press Enter to stop all of it.\n"
    )
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    sys.exit(main())
