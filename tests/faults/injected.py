"""What goes wrong while a plan is carried out, one function each; each starts the executors that it needs itself."""

import signal
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from planner.rollout.steps import PauseForPerson, Step, StopConsumers
from planner.rollout.template import Setting, TemplateChange
from tests.clusters.errors import CannotRunHereError
from tests.clusters.kubernetes.rest import MERGE, ApiError, Rest
from tests.faults.executor import END_S, Executor, Fault
from tests.faults.group import NEVER_JOINS
from tests.faults.kinds import DOWN, annotated, relocated, renewed, start
from tests.faults.place import APP, CLAIM, DELETION_COST, SIMULATION, Place
from tests.faults.proxy import Proxy, Treatment
from tests.faults.running import PLAN, Run
from tests.faults.tokens import ShortToken

SHORT_S = 15
"""Time limit of a step that is to run out of it."""
AWAY_S = 12.0
"""How long a server does not do what it should: longer than one request may take."""
TAKES_S = 10.0
"""Whoever has no answer after so long has none soon: a refusal comes at once, on a busy machine after seconds."""
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
UNREACHABLE = 3
TOO_MANY = 429
NODE, TAINT = "node-2", "faults.consumerplanner.dev/will-be-gone"


@contextmanager
def storm(where: Place, pause_s: float) -> Iterator[None]:
    """Have somebody write to the Deployment again and again meanwhile."""
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.wait(pause_s):
            number += 1
            with suppress(ApiError):
                where.patch({"metadata": {"annotations": {"somebody": str(number)}}})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def through_proxy(run: Run) -> Iterator[Proxy]:
    """Give a proxy that the run's executor goes through."""
    with Proxy(run.cluster) as proxy:
        run.start(kubeconfig=proxy.kubeconfig(f"proxy-{run.where.namespace}"))
        yield proxy
        run.executors[-1].wait()


def stormed(run: Run) -> None:
    """Somebody writes to the Deployment ten times a second, for a while."""
    with storm(run.where, 0.1):
        run.start()
        time.sleep(AWAY_S)


def scaled(run: Run) -> None:
    """Somebody else sets a count that is neither old nor new."""
    run.start()
    run.await_step("awaitSettled")
    run.scale(7)


def scaled_back(run: Run) -> None:
    """Somebody else sets the old count."""
    run.start()
    run.await_step("awaitSettled")
    run.scale(2)


def unclaimed(run: Run) -> None:
    """Somebody takes the claim away."""
    run.start()
    run.await_step("awaitSettled")
    run.where.patch({"metadata": {"annotations": {CLAIM: None}}})


def deleted(run: Run) -> None:
    """Somebody deletes the Deployment."""
    run.start()
    run.await_step("awaitSettled")
    run.cluster.rest.delete(f"{run.where.deployments}/{APP}")


def busy(run: Run) -> None:
    """The API server answers everything with 429 for a while."""
    _treated_so(run, "awaitReady", lambda _method, _path: Treatment.BUSY)


@contextmanager
def no_room(run: Run, account: str, token: str) -> Iterator[Callable[[], None]]:
    """Have the API server refuse all requests of an account: its priority level has room for one, which is taken.

    Yields what keeps it taken, as ``slow_request`` does.
    """
    name = f"no-room-{run.where.namespace}"
    limited = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
    level = {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}
    every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    subject = {"kind": "ServiceAccount", "serviceAccount": {"name": account, "namespace": run.where.namespace}}
    rules = {"subjects": [subject], "resourceRules": [every]}
    schema = {
        "metadata": {"name": name},
        "spec": {"priorityLevelConfiguration": {"name": name}, "matchingPrecedence": 500, "rules": [rules]},
    }
    run.cluster.rest.create(f"{FLOWS}/prioritylevelconfigurations", level)
    run.cluster.rest.create(f"{FLOWS}/flowschemas", schema)
    try:
        with slow_request(run, token) as kept:
            yield kept
            assert _has_refused(run, name), "the server counts no refusal"
    finally:
        run.cluster.rest.delete(f"{FLOWS}/flowschemas/{name}")
        run.cluster.rest.delete(f"{FLOWS}/prioritylevelconfigurations/{name}")


def _is_refused(account: Rest, namespace: str) -> bool:
    try:
        account.get(f"/api/v1/namespaces/{namespace}/configmaps")
    except ApiError as error:
        return error.status == TOO_MANY
    return False


def _has_refused(run: Run, name: str) -> bool:
    counts = run.cluster.rest.text("/metrics").splitlines()
    return any(line.startswith("apiserver_flowcontrol_rejected_requests_total{") and name in line for line in counts)


@contextmanager
def slow_request(run: Run, token: str) -> Iterator[Callable[[], None]]:
    """Keep one request open in the only room: the server waits for the rest of its body, which never comes.

    Yields what makes another one where that one keeps nobody out, to be called again and again: the server may have
    taken it in before it knew of the room, while a request of the executor's was there for a moment.
    """
    other = Rest(run.cluster.server, run.cluster.ca_file, token)
    place = urlsplit(run.cluster.server)
    trusted = ssl.create_default_context(cafile=str(run.cluster.ca_file))

    def begun() -> HTTPSConnection | None:
        made = HTTPSConnection(str(place.hostname), place.port, timeout=TAKES_S, context=trusted)
        made.putrequest("POST", f"/api/v1/namespaces/{run.where.namespace}/configmaps")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Content-Length": "99"}
        for name, value in headers.items():
            made.putheader(name, value)
        made.endheaders(b"{")
        try:
            made.sock.recv(1)  # an answer: it was refused itself, as one of the executor's was there
        except TimeoutError:
            if _is_refused(other, run.where.namespace):
                return made
        made.close()
        return None

    def kept() -> None:
        nonlocal opened
        if not _is_refused(other, run.where.namespace):
            opened.close()
            opened = run.cluster.wait_until("another request without an answer", begun)

    opened = run.cluster.wait_until("a request without an answer", begun)
    try:
        yield kept
    finally:
        opened.close()


def crowded_out(run: Run) -> None:
    """The API server itself answers the executor with 429 for a while."""
    account = run.account()
    token = run.cluster.token(run.where.namespace, account)
    executor = run.start(kubeconfig=run.cluster.kubeconfig_for(token, f"crowded-{run.where.namespace}"))
    run.await_step("pauseForPerson")
    with no_room(run, account, token) as kept:

        def is_refused() -> bool:
            kept()
            return "has too much to do" in executor.said

        run.cluster.wait_until("its refusal", is_refused)
        run.answer()
        time.sleep(AWAY_S)


def token_renewed(run: Run) -> None:
    """The executor's token is renewed in its file, and the one that it began with is taken no more."""
    token = ShortToken.make(run.cluster, run.where.namespace, run.account(), run.path.parent)
    run.start(kubeconfig=token.kubeconfig())
    run.await_step("pauseForPerson")
    token.renew()
    token.end()
    run.answer()


def token_over(run: Run) -> None:
    """The executor's token is taken no more, and nobody renews it; it gives up, and another one goes on."""
    token = ShortToken.make(run.cluster, run.where.namespace, run.account(), run.path.parent)
    first = run.start(kubeconfig=token.kubeconfig())
    run.await_step("pauseForPerson")
    token.end()
    assert first.wait(2 * END_S) == UNREACHABLE, first.said
    assert "renew the token" in first.said, first.said
    run.answer()
    run.start()


def swallowed(run: Run) -> None:
    """The API server answers nothing for a while, and closes nothing."""
    _treated_so(run, "awaitReady", lambda _method, _path: Treatment.SWALLOW)


def _treated_so(run: Run, step: str, treat: Callable[[str, str], Treatment]) -> None:
    with through_proxy(run) as proxy:
        run.await_step(step)
        proxy.treat = treat
        run.cluster.wait_until("a request that is treated so", lambda: proxy.treated[treat("GET", "")], END_S)
        time.sleep(AWAY_S)
        proxy.treat = lambda _method, _path: Treatment.PASS
        proxy.released.set()


def lost(run: Run) -> None:
    """Every second write is done, and its answer is lost."""
    with through_proxy(run) as proxy:
        run.await_step("awaitReady")
        writes = iter(range(10**6))

        def treat(method: str, _: str) -> Treatment:
            return Treatment.LOSE if method != "GET" and next(writes) % 2 else Treatment.PASS

        proxy.treat = treat
    assert proxy.treated[Treatment.LOSE], proxy.treated


def undisturbed(run: Run) -> None:
    """Nothing but what the plan itself brings."""
    run.start()


def evicted(run: Run) -> None:
    """A pod is evicted while the group settles."""
    run.start()
    run.await_step("awaitSettled")
    run.evict(run.where.ready_pods()[0])


def marked_then_asked(pods: Sequence[str]) -> tuple[Step, ...]:
    """A person is asked between the mark and the stop."""
    mark, *rest = DOWN.steps(pods)
    return (mark, PauseForPerson("Shall they stop?", 600), *rest)


def marked_then_stopped_soon(pods: Sequence[str]) -> tuple[Step, ...]:
    """A person is asked between the mark and a stop that must be done soon."""
    mark, asked, stop, *rest = marked_then_asked(pods)
    assert isinstance(stop, StopConsumers)
    return (mark, asked, replace(stop, time_limit_seconds=45), *rest)


def victim_evicted(run: Run) -> None:
    """A pod that was marked is evicted before the stop."""
    run.start()
    run.await_step("pauseForPerson")
    victim = run.where.ready_pods()[0]
    run.evict(victim)
    run.cluster.wait_until("its end", lambda: victim not in run.where.ready_pods())
    run.where.await_ready(4)
    run.answer()


def mark_overwritten(run: Run) -> None:
    """Somebody else gives a pod that was marked another deletion cost before the stop: it must go all the same."""
    run.start()
    run.await_step("pauseForPerson")
    marked = _marked(run)
    _overwrite(run, marked[0])
    run.answer()
    run.executors[0].wait()
    stayed = set(marked) & set(run.where.ready_pods())
    assert not stayed, f"{', '.join(stayed)}, which the plan had chosen, did not stop"


def marks_fought_over(run: Run) -> None:
    """Somebody else gives a pod that was marked another deletion cost, as often as it is marked."""
    over = threading.Event()

    def fight() -> None:
        while not over.wait(0.05):
            for pod in _marked(run):
                with suppress(ApiError):
                    _overwrite(run, pod)

    run.start()
    run.await_step("pauseForPerson")
    thread = threading.Thread(target=fight)
    thread.start()
    try:
        run.answer()
        run.executors[0].wait()
    finally:
        over.set()
        thread.join()
    left = _marked(run)
    assert not left, f"{', '.join(left)} kept the plan's deletion cost"
    for pod in run.where.pods():
        _overwrite(run, pod["metadata"]["name"], None)


def _marked(run: Run) -> list[str]:
    """Return the names of the pods that have a deletion cost below that of others."""
    notes = {pod["metadata"]["name"]: pod["metadata"].get("annotations") or {} for pod in run.where.pods()}
    return sorted(name for name, note in notes.items() if int(note.get(DELETION_COST, 0)) < 0)


def _overwrite(run: Run, pod: str, cost: str | None = "7") -> None:
    note = {"metadata": {"annotations": {DELETION_COST: cost}}}
    run.cluster.rest.patch(f"/api/v1/namespaces/{run.where.namespace}/pods/{pod}", note, MERGE)


def renewed_then_asked(pods: Sequence[str]) -> tuple[Step, ...]:
    """A person is asked once the new template is in."""
    return (*renewed(pods)[:2], PauseForPerson("Do they deliver?", 600))


def old_template_gone(run: Run) -> None:
    """Somebody deletes the old ReplicaSet; then the plan is aborted."""
    run.start()
    run.await_step("pauseForPerson")
    path = f"/apis/apps/v1/namespaces/{run.where.namespace}/replicasets"
    (old,) = [one for one in run.cluster.rest.get(path)["items"] if not one["spec"]["replicas"]]
    run.cluster.rest.delete(f"{path}/{old['metadata']['name']}")
    run.cluster.wait_until("its end", lambda: len(run.cluster.rest.get(path)["items"]) == 1)
    run.abort()


def frozen_before_its_effect(run: Run) -> None:
    """The executor sleeps for longer than its lease right before it scales; another one finishes; the first wakes."""
    first = run.start(fault=Fault(signal.SIGSTOP, 2, request="patch Deployment"))
    _await_sleep(run, first)
    second = run.start()
    second.wait()
    run.await_phase("Succeeded")
    first.send(signal.SIGCONT)


def frozen_and_aborted(run: Run) -> None:
    """The executor sleeps right before it scales; another one undoes the plan; then the first one's request comes."""
    first = run.start(fault=Fault(signal.SIGSTOP, 2, request="patch Deployment"))
    _await_sleep(run, first)
    run.start("abort").wait()
    run.await_phase("RolledBack")
    first.send(signal.SIGCONT)


def killed_at_its_end(run: Run) -> None:
    """An executor is killed when the plan is over and its finalizer is still there; another one applies it again."""
    run.start().wait()
    meta = {"finalizers": ["consumerplanner.dev/rollout"]}
    run.cluster.rest.patch(f"{run.where.plans}/{PLAN}", {"metadata": meta}, MERGE)
    run.start()


def _await_sleep(run: Run, executor: Executor) -> None:
    def sleeps() -> bool:
        stat = Path(f"/proc/{executor.process.pid}/stat").read_text(encoding="utf-8")
        return stat.rpartition(")")[2].split()[0] == "T"

    run.cluster.wait_until("its sleep", sleeps, END_S)


def never_ready(pods: Sequence[str]) -> tuple[Step, ...]:
    """New pods run and are never ready."""
    return renewed(pods, annotated(f"{SIMULATION}never-ready"), SHORT_S)


def crash_looping(pods: Sequence[str]) -> tuple[Step, ...]:
    """New pods end before they are ready, again and again."""
    wanted = {"crash-after-seconds": "0.5", "ready-delay-seconds": "30", "restart-backoff-seconds": "1"}
    change = TemplateChange(annotations=tuple(Setting(f"{SIMULATION}{key}", value) for key, value in wanted.items()))
    return renewed(pods, change, SHORT_S)


def never_joining(pods: Sequence[str]) -> tuple[Step, ...]:
    """New pods become ready, and their consumers do not join."""
    return relocated(pods, annotated(NEVER_JOINS), SHORT_S)


def asked_first(_: Sequence[str]) -> tuple[Step, ...]:
    """A person is asked before anything is done, and no step may take long."""
    begin = replace(start(2, 3)[0], time_limit_seconds=SHORT_S)
    return (PauseForPerson("Shall it begin?", 600), begin, *start(2, 3)[1:])


def storm_without_end(run: Run) -> None:
    """Three others write to the Deployment without a pause, so that no request finds the version it was decided by."""
    run.start()
    run.await_step("pauseForPerson")
    with storm(run.where, 0.0), storm(run.where, 0.0), storm(run.where, 0.0):
        run.answer()
        run.executors[-1].wait()


def asked_between(_: Sequence[str]) -> tuple[Step, ...]:
    """A person is asked between two batches."""
    return (*start(2, 3), PauseForPerson("Do they deliver?", 600), *start(3, 4))


def node_gone(run: Run) -> None:
    """A node loses power and is taken out of the cluster; its pods run elsewhere some time later."""
    pods = [one["metadata"]["name"] for one in run.where.pods() if one["spec"]["nodeName"] == NODE]
    assert pods, "no consumer was on the node that is to go"
    run.start()
    run.await_step("pauseForPerson")
    run.nodes[NODE].stop()
    run.cluster.rest.delete(f"/api/v1/nodes/{NODE}")
    run.cluster.wait_until("their end", lambda: not set(pods) & set(run.where.ready_pods()), END_S)
    run.answer()


def clock_jumps(run: Run) -> None:
    """The wall clock of the executor's host jumps five hours ahead, and then to forty minutes ago."""
    libraries = list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        raise CannotRunHereError("libfaketime", "install the Debian package faketime")
    clock = run.path.with_suffix(".clock")
    clock.write_text("+0\n", encoding="utf-8")
    faked = {
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    run.start(environment=faked)
    run.await_step("awaitReady")
    clock.write_text("+5h\n", encoding="utf-8")
    run.await_step("awaitSettled")
    clock.write_text("-40m\n", encoding="utf-8")
