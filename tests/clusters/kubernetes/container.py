"""One container of a pod: a local process in its place, or, without a command, nothing but its status."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes.rest import Json
from tests.clusters.processes import ManagedProcess

BACK_OFF_S, LONGEST_BACK_OFF_S = 10.0, 300.0
# A shell says 128 + n for a process that signal n ended, and so do container runtimes.
SIGNALLED = 128


@dataclass(frozen=True)
class Simulation:
    """What a pod's annotations ask of the stand-in, in seconds; the manifest says what is simulated.

    Keys are ``simulation.consumerplanner.dev/`` with ``start-delay-seconds`` (image pull and the like),
    ``ready-delay-seconds`` (after the process is up), ``crash-after-seconds`` (SIGKILL, in every run),
    ``never-ready`` (``"true"``) and ``restart-backoff-seconds`` (first wait, doubled each time).
    """

    start_delay_s: float = 0.0
    ready_delay_s: float = 0.0
    crash_after_s: float | None = None
    never_ready: bool = False
    back_off_s: float = BACK_OFF_S

    @classmethod
    def of(cls, pod: Json) -> "Simulation":
        """Read a pod's annotations."""
        prefix = "simulation.consumerplanner.dev/"
        asked = {
            key.removeprefix(prefix): value
            for key, value in pod["metadata"].get("annotations", {}).items()
            if key.startswith(prefix)
        }
        crash = asked.get("crash-after-seconds")
        return cls(
            start_delay_s=float(asked.get("start-delay-seconds", 0)),
            ready_delay_s=float(asked.get("ready-delay-seconds", 0)),
            crash_after_s=None if crash is None else float(crash),
            never_ready=asked.get("never-ready") == "true",
            back_off_s=float(asked.get("restart-backoff-seconds", BACK_OFF_S)),
        )


@dataclass
class Container:
    """State and process of one container; ``step`` moves it on and tells whether its status changed."""

    spec: Json
    address: str
    restart_policy: str
    simulation: Simulation
    process: ManagedProcess | None
    state: Json = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last_state: Json = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    _up_at: float = 0.0
    _start_at: float = 0.0
    _probe_at: float = 0.0
    _streak: int = 0

    @property
    def name(self) -> str:
        """Its name in the pod."""
        return str(self.spec["name"])

    @property
    def exit_code(self) -> int | None:
        """How it ended for good, ``None`` before."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    def step(self, now: float) -> bool:
        """Start, restart, crash, notice an end or probe, as it is time to; True when the status changed."""
        if "terminated" in self.state:
            return False
        if "waiting" in self.state:
            return now >= self._start_at and self._start(now)
        if self.process is not None and not self.process.running:
            self._ended(now)
            return True
        self._crash_when_due(now)
        before, self.ready = self.ready, self._is_ready(now)
        return before != self.ready

    def stop_hook(self, timeout_s: float) -> None:
        """Run the ``preStop`` hook, for at most ``timeout_s``, as the kubelet does before it sends SIGTERM."""
        hook = self.spec.get("lifecycle", {}).get("preStop", {})
        if "sleep" in hook:
            time.sleep(min(timeout_s, hook["sleep"]["seconds"]))
        elif "exec" in hook:
            self._run(hook["exec"]["command"], timeout_s)
        elif "httpGet" in hook:
            self._get(hook["httpGet"], timeout_s)

    def finish(self) -> None:
        """Record how it ended, and end what its process left behind."""
        self.ready = False
        if "running" in self.state:
            if self.process is not None:
                self._end_group()
            self._terminate(0 if self.process is None else _exit_code(self.process))
        elif "waiting" in self.state and self.last_state:  # it was waiting for its next try
            self.state = self.last_state

    def status(self) -> Json:
        """Its entry in ``containerStatuses``."""
        return {
            "name": self.name,
            "image": self.spec.get("image", ""),
            "imageID": "",
            "ready": self.ready,
            "started": "running" in self.state,
            "restartCount": self.restarts,
            # A null removes the key of the former state: the server merges what we send.
            "state": {kind: self.state.get(kind) for kind in ("waiting", "running", "terminated")},
            "lastState": self.last_state,
        }

    def _start(self, now: float) -> bool:
        if self.process is not None:
            try:
                self.process.start()
            except StartFailedError as error:
                self._wait("CreateContainerError", str(error), now)
                return True
        self.state = {"running": {"startedAt": timestamp()}}
        self._up_at = now
        self._probe_at = now + self._probe().get("initialDelaySeconds", 0)
        self._streak = 0
        self.ready = self._is_ready(now)
        return True

    def _ended(self, now: float) -> None:
        assert self.process is not None
        self._end_group()
        code = _exit_code(self.process)
        self.ready = False
        self._terminate(code)
        if self.restart_policy == "Always" or (self.restart_policy == "OnFailure" and code != 0):
            self.last_state = self.state
            self.restarts += 1
            self._wait("CrashLoopBackOff", f"ended with {code}", now)

    def _terminate(self, code: int) -> None:
        reason = "Completed" if code == 0 else "Error"
        started = self.state.get("running", {}).get("startedAt")
        self.state = {
            "terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": timestamp()}
        }

    def _wait(self, reason: str, message: str, now: float) -> None:
        pause = min(LONGEST_BACK_OFF_S, self.simulation.back_off_s * 2 ** max(0, self.restarts - 1))
        self._start_at = now + pause
        self.state = {"waiting": {"reason": reason, "message": message[:500]}}

    def _crash_when_due(self, now: float) -> None:
        due = self.simulation.crash_after_s
        if due is not None and self.process is not None and now >= self._up_at + due:
            self.process.kill()

    def _is_ready(self, now: float) -> bool:
        if self.simulation.never_ready or now < self._up_at + self.simulation.ready_delay_s:
            return False
        probe = self._probe()
        if not probe or self.process is None:
            return True
        if now < self._probe_at:
            return self.ready
        self._probe_at = now + probe.get("periodSeconds", 10)
        return self._judge(probe, self._probe_once(probe))

    def _judge(self, probe: Json, passed: bool) -> bool:
        self._streak = self._streak + 1 if passed != self.ready else 0
        wanted = probe.get("successThreshold", 1) if passed else probe.get("failureThreshold", 3)
        if self._streak < wanted:
            return self.ready
        self._streak = 0
        return passed

    def _probe(self) -> Json:
        return dict(self.spec.get("readinessProbe") or {})

    def _probe_once(self, probe: Json) -> bool:
        timeout_s = float(probe.get("timeoutSeconds", 1))
        if "exec" in probe:
            return self._run(probe["exec"]["command"], timeout_s)
        if "tcpSocket" in probe:
            return self._connects(probe["tcpSocket"], timeout_s)
        return self._get(probe["httpGet"], timeout_s)

    def _run(self, command: list[str], timeout_s: float) -> bool:
        assert self.process is not None
        try:
            run = subprocess.run(
                command,
                cwd=self.process.directory,
                env={**os.environ, **self.process.environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return run.returncode == 0

    def _connects(self, target: Json, timeout_s: float) -> bool:
        try:
            with socket.create_connection((target.get("host", self.address), self._port(target)), timeout_s):
                return True
        except OSError:
            return False

    def _get(self, target: Json, timeout_s: float) -> bool:
        url = f"http://{target.get('host', self.address)}:{self._port(target)}{target.get('path', '/')}"
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=timeout_s) as answer:
                return bool(answer.status < 400)
        except OSError:
            return False

    def _port(self, target: Json) -> int:
        port = target["port"]
        named = {one.get("name"): one["containerPort"] for one in self.spec.get("ports", [])}
        return int(named.get(port, port))

    def _end_group(self) -> None:
        # A container's other processes die with its first one; here they share its process group.
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def container_of(spec: Json, pod: Json, address: str, environment: Mapping[str, str], directory: Path) -> Container:
    """Return a container about to start; its process, if it has a command, will run in ``directory``."""
    argv = [expand(word, environment) for word in (*spec.get("command", ()), *spec.get("args", ()))]
    process = ManagedProcess(spec["name"], argv, directory, environment) if spec.get("command") else None
    policy = pod["spec"].get("restartPolicy", "Always")
    return Container(spec, address, policy, Simulation.of(pod), process)


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return ``text`` with each ``$(NAME)`` of ``environment`` replaced; an unknown one stays, ``$$`` is ``$``."""

    def one(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else environment.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]+)\)", one, text)


def timestamp() -> str:
    """Return the time as Kubernetes writes it, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _exit_code(process: ManagedProcess) -> int:
    code = process.returncode
    assert code is not None, f"{process.name} still runs"
    return code if code >= 0 else SIGNALLED - code
