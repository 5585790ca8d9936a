"""A real RocketMQ on loopback: one name server and up to three brokers from Maven Central's jars."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.artifacts import Coordinate, class_path, find_program
from tests.clusters.errors import StartFailedError
from tests.clusters.java_programs import archive_options
from tests.clusters.launcher import Launcher
from tests.clusters.ports import lease_block
from tests.clusters.processes import POLL_S, ManagedProcess, stop_together
from tests.clusters.rocketmq_admin import MQAdmin
from tests.clusters.rocketmq_grpc import GrpcLoad
from tests.clusters.rocketmq_load import GROUP_ID, RocketMQLoad
from tests.clusters.rocketmq_remoting import QueueCounts
from tests.clusters.workspace import workspace

__all__ = ["FOR_POP", "NEW", "OLD", "Broker", "Proxy", "QueueCounts", "RocketMQCluster"]

OLD, NEW = "4.9.7", "5.5.0"
FOR_POP = {"timerWheelEnable": "true", "reviveQueueNum": "2"}
"""Broker settings without which nobody pops; each revive queue takes 4 MiB of a small broker's direct memory."""
AT_ONCE_S = 0.0
"""Servers that end for good are killed: an orderly shutdown takes a broker ten seconds, and its files go with it."""

READY_S = 180.0
"""A limit against hanging only: a busy machine takes its time."""
GHOSTS_GONE_S = 200.0
"""After so long no member is listed that has left, nor its queues kept for it, however busy the machine was.

A broker takes heartbeats and leaves from two pools of threads. A heartbeat that is taken up after the leave lists the
member again, on a closed connection (``ClientManageProcessor``, ``ConsumerGroupInfo.updateChannel`` of 5.5.0); the next
scan after 120 s forgets it, and the others look again within 20 s.
"""

# Without these a 4.9 broker serves, but its shutdown hook fails before offsets are saved (Java 17).
OPEN_MODULES = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)
FRUGAL_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")

_LETTERS = "abc"

_LOGBACK = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <logger name="RocketmqPop" level="ERROR"/>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""


@dataclass
class Broker:
    """One broker, named ``broker-a`` and so on: a master, or a slave of one and then of the same name."""

    name: str
    address: str
    process: ManagedProcess = field(repr=False)
    _in_route: Callable[[str, int], bool] = field(repr=False)
    broker_id: int = remoting.MASTER

    def start(self, timeout_s: float = READY_S) -> None:
        """Start it and return once it says that it is up and the name server's answer lists it."""
        self.process.start()
        self.await_ready(timeout_s)

    def await_ready(self, timeout_s: float = READY_S) -> None:
        """Return once it is up and in the route; raise StartFailedError with its log tail otherwise."""
        self.process.wait_for_line(r"boot success", timeout_s)
        self.process.wait_until("its entry in the route", lambda: self._in_route(self.name, self.broker_id), timeout_s)

    def announce(self, timeout_s: float = READY_S) -> None:
        """Have it register with its name server as soon as it is up, so that a cluster starts sooner.

        Of 5.5.0 every second start registers with nobody: its client knows no name server yet, as it looks for one at
        the same moment (``scanAvailableNameSrv``), and the next try is 10 s away. With ACLs it may refuse. ``restart``
        leaves it alone: how long it takes is what is watched there.
        """
        self.process.wait_for_line(r"boot success", timeout_s)
        with contextlib.suppress(OSError, remoting.RefusedError):
            remoting.have_announced(self.address)

    def stop(self) -> None:
        """Stop it as an operator does (SIGTERM, SIGKILL after 15 s)."""
        self.process.stop()

    def kill(self) -> None:
        """Crash it (SIGKILL)."""
        self.process.kill()

    def restart(self) -> None:
        """Stop it and start it again on the same ports and store; return when it is back in the route."""
        self.stop()
        self.start()


@dataclass
class Proxy:
    """One proxy: gRPC clients know its ``endpoints``, remoting clients and administrators its ``remoting`` address."""

    endpoints: str
    remoting: str
    process: ManagedProcess = field(repr=False)

    def await_ready(self, timeout_s: float = READY_S) -> None:
        """Return once it serves clients; raise StartFailedError with its log tail otherwise."""
        self.process.wait_for_line(r"rocketmq-proxy startup successfully", timeout_s)


class RocketMQCluster(Launcher):
    """A name server and its brokers. A context manager: leaving it stops everything and deletes all files.

    ``brokers`` is their number, or their names. ``settings`` are extra ``broker.conf`` lines for every broker,
    overriding ours; ``java_properties`` are for the name server and the brokers, ``broker_files`` text files below
    each broker's home; ``jvm_options`` go in the place of those by which JVMs start quickly. With ``local_proxies``
    each broker runs within a proxy's process (``proxyMode`` LOCAL): ``proxies`` are in the brokers' order.
    """

    def __init__(
        self,
        version: str,
        brokers: int | Sequence[str] = 2,
        settings: Mapping[str, str] | None = None,
        *,
        java_properties: Mapping[str, str] | None = None,
        broker_files: Mapping[str, str] | None = None,
        local_proxies: bool = False,
        jvm_options: Sequence[str] | None = None,
    ) -> None:
        names = _broker_names(brokers)
        self.version = version
        self.proxies: list[Proxy] = []
        self._java = find_program("java")
        self._jars = server_jars(version)
        self._jvm_options = _archived(version, self._jars) if jvm_options is None else jvm_options
        self._java_properties = dict(java_properties or {})
        self._broker_files = dict(broker_files or {})
        self._loads: list[RocketMQLoad] = []
        self._slaves: list[Broker] = []
        self._grpc_loads: list[GrpcLoad] = []
        self._undo = contextlib.ExitStack()  # unwound from its end: clients, brokers, name server, files
        with contextlib.ExitStack() as undo:
            self.directory = undo.enter_context(workspace(f"rocketmq-{version}"))
            self.name_server = f"127.0.0.1:{_lease(undo)}"
            self._name_server = self._prepare_name_server()
            undo.callback(self._name_server.stop, AT_ONCE_S)
            self.brokers = tuple(
                self._prepare_broker(
                    name, _lease(undo), settings or {}, proxy_port=_lease(undo) if local_proxies else None
                )
                for name in names
            )
            undo.callback(self._stop_brokers)
            self._undo = undo.pop_all()

    @classmethod
    def start(
        cls,
        version: str,
        brokers: int | Sequence[str] = 2,
        settings: Mapping[str, str] | None = None,
        *,
        java_properties: Mapping[str, str] | None = None,
        broker_files: Mapping[str, str] | None = None,
        local_proxies: bool = False,
    ) -> Self:
        """Return a running cluster, every broker in the route; raise StartFailedError with log tails."""
        return cls(
            version,
            brokers,
            settings,
            java_properties=java_properties,
            broker_files=broker_files,
            local_proxies=local_proxies,
        )._started()

    def broker(self, name: str) -> Broker:
        """Return the broker called ``name``; raise KeyError when there is none."""
        return {broker.name: broker for broker in self.brokers}[name]

    def start_slave(self, of: str) -> Broker:
        """Start a slave of the broker called ``of``, and return it once the name server lists it.

        It copies messages at once, topics, groups and offsets every 10 s (``SlaveSynchronize``).
        """
        slave = self._prepare_broker(of, _lease(self._undo), {"brokerId": "1", "brokerRole": "SLAVE"}, broker_id=1)
        self._slaves.append(slave)
        self._undo.callback(slave.process.stop, AT_ONCE_S)
        slave.start()
        return slave

    def start_proxy(self) -> Proxy:
        """Start a proxy with a process of its own (``proxyMode`` CLUSTER), and return it once it serves clients."""
        proxy = self._prepare_proxy(f"proxy-{len(self.proxies)}", _lease(self._undo), "-pm", "CLUSTER")
        self._undo.callback(proxy.process.stop, AT_ONCE_S)
        proxy.process.start()
        proxy.await_ready()
        return proxy

    def grpc_load(self, proxy: Proxy) -> GrpcLoad:
        """Return a starter of gRPC consumers at one of the proxies."""
        load = GrpcLoad(proxy.endpoints, self.directory)
        self._grpc_loads.append(load)
        self._undo.callback(load.stop)
        return load

    def create_topic(
        self,
        topic: str,
        queues: int = 4,
        *,
        per_broker: Mapping[str, QueueCounts] | None = None,
        permission: int = 6,
        timeout_s: float = READY_S,
    ) -> None:
        """Create ``topic`` with ``queues`` queues on every broker, or exactly as ``per_broker`` says.

        Existing topics are changed. Returns when the name server tells clients about it.
        """
        wanted = dict(per_broker or {broker.name: QueueCounts(queues, queues) for broker in self.brokers})
        for name, counts in wanted.items():
            remoting.update_topic(self.broker(name).address, topic, counts, permission=permission)
        deadline = time.monotonic() + timeout_s
        while not wanted.items() <= (route := remoting.topic_route(self.name_server, topic)).items():
            if time.monotonic() > deadline:
                raise StartFailedError(f"route of {topic}: wanted {wanted}, after {timeout_s:g} s found {route}")
            time.sleep(POLL_S)

    def create_group(self, group: str, **settings: object) -> None:
        """Create a subscription group on every broker; ``settings`` are fields of SubscriptionGroupConfig."""
        for broker in self.brokers:
            remoting.update_group(broker.address, group, settings)

    def members(self, group: str) -> dict[str, tuple[str, ...]]:
        """Return broker name -> sorted client ids of ``group`` that this broker knows."""
        return {broker.name: remoting.consumer_ids(broker.address, group) for broker in self.brokers}

    def produced(self, topic: str) -> dict[tuple[str, int], int]:
        """Return (broker name, queue id) -> number of messages ever sent, for every queue in the route."""
        return {
            (name, queue): remoting.max_offset(self.broker(name).address, topic, queue)
            for name, counts in remoting.topic_route(self.name_server, topic).items()
            for queue in range(counts.write)
        }

    def committed(self, group: str, topic: str) -> dict[tuple[str, int], int | None]:
        """Return (broker name, queue id) -> committed offset of ``group``, for every queue it may read."""
        return {
            (name, queue): remoting.committed_offset(self.broker(name).address, group, topic, queue)
            for name, counts in remoting.topic_route(self.name_server, topic).items()
            for queue in range(counts.read)
        }

    def commit(self, group: str, topic: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets, (broker name, queue id) -> offset, for a group that the brokers have settings for."""
        for (name, queue), offset in offsets.items():
            remoting.commit_offset(self.broker(name).address, group, topic, queue, offset)

    def load(self, client_version: str | None = None) -> RocketMQLoad:
        """Return a starter of real clients for this cluster (``client_version``: the cluster's own version)."""
        load = RocketMQLoad(self.name_server, client_version or self.version, self.directory)
        self._loads.append(load)
        self._undo.callback(load.stop)
        return load

    def mqadmin(self) -> MQAdmin:
        """Return RocketMQ's own command for this cluster; it has logback files, which 4.9 wants, and no account yet."""
        home = self.directory / "mqadmin"
        return MQAdmin(self.name_server, home if home.exists() else self._home("mqadmin"), self._jars)

    @property
    def processes(self) -> tuple[ManagedProcess, ...]:
        """Everything it ever started: name server, brokers, proxies, clients."""
        servers = (server.process for server in (*self.brokers, *self._slaves, *self._own_proxies))
        clients = (process for load in (*self._loads, *self._grpc_loads) for process in load.processes)
        return (self._name_server, *servers, *clients)

    @property
    def _own_proxies(self) -> list[Proxy]:
        """The proxies whose process is not a broker's as well."""
        brokers = [broker.process for broker in self.brokers]
        return [proxy for proxy in self.proxies if proxy.process not in brokers]

    def stop(self) -> None:
        """Stop clients, then brokers, then the name server; delete all files. Stopping twice does nothing."""
        self._undo.close()

    def _start_all(self) -> None:
        self._name_server.start()
        self._name_server.wait_for_line(r"boot success", READY_S)
        for broker in self.brokers:
            broker.process.start()
        try:
            for broker in self.brokers:
                broker.announce()
            for server in (*self.brokers, *self.proxies):
                server.await_ready()
        except StartFailedError as error:
            raise StartFailedError(f"{error}\n{self._name_server.log_tail(10)}") from error

    def _stop_brokers(self) -> None:
        stop_together((broker.process for broker in self.brokers), AT_ONCE_S)

    def _in_route(self, name: str, broker_id: int) -> bool:
        try:
            return name in remoting.broker_addresses(self.name_server, broker_id)
        except (OSError, remoting.RefusedError):
            # Not yet, or no longer; and a name server of 4.9 fails to list brokers while one registers. The caller's
            # time limit decides.
            return False

    def _prepare_name_server(self) -> ManagedProcess:
        home = self._home("namesrv")
        port = self.name_server.rpartition(":")[2]
        _write_properties(home / "namesrv.conf", {"listenPort": port, "bindAddress": "127.0.0.1"})
        return self._java_process(
            "namesrv", home, "64m", "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", "namesrv.conf"
        )

    def _prepare_broker(
        self,
        name: str,
        first_port: int,
        settings: Mapping[str, str],
        broker_id: int = remoting.MASTER,
        proxy_port: int | None = None,
    ) -> Broker:
        place = f"{name}-{broker_id}" if broker_id else name
        home = self._home(place)
        for path, text in self._broker_files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        # It listens on three ports: two below (for clients that ask for it), its own, one above (replication).
        port = first_port + 2
        _write_properties(home / "broker.conf", {**self._broker_settings(name, port, home / "store"), **settings})
        if proxy_port is not None:
            process = self._prepare_proxy(place, proxy_port, "-pm", "LOCAL", "-bc", "broker.conf", home=home).process
        else:
            process = self._java_process(
                place, home, "256m", "org.apache.rocketmq.broker.BrokerStartup", "-c", "broker.conf"
            )
        return Broker(name, f"127.0.0.1:{port}", process, self._in_route, broker_id)

    def _prepare_proxy(self, name: str, first_port: int, *arguments: str, home: Path | None = None) -> Proxy:
        """Return a proxy that listens on ``first_port`` for gRPC and on the next one for remoting, not yet started."""
        place = home or self._home(name)
        settings = {
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": self.name_server,
            "localServeAddr": "127.0.0.1",
            "grpcServerPort": first_port,
            "remotingListenPort": first_port + 1,
        }
        path = place / "conf" / "rmq-proxy.json"
        path.write_text(json.dumps(settings))
        jars = class_path("rocketmq-proxy", [Coordinate(GROUP_ID, "rocketmq-proxy", self.version)])
        main = "org.apache.rocketmq.proxy.ProxyStartup"
        process = self._java_process(name, place, "320m", main, "-pc", str(path), *arguments, jars=jars)
        proxy = Proxy(f"127.0.0.1:{first_port}", f"127.0.0.1:{first_port + 1}", process)
        self.proxies.append(proxy)
        return proxy

    def _broker_settings(self, name: str, port: int, store: Path) -> dict[str, str]:
        return {
            "brokerClusterName": "DefaultCluster",
            "brokerName": name,
            "brokerId": "0",
            "brokerRole": "ASYNC_MASTER",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",  # where its slaves find it
            "bindAddress": "127.0.0.1",  # 4.9 does not know it and listens on all interfaces
            "listenPort": str(port),
            "namesrvAddr": self.name_server,
            "storePathRootDir": str(store),
            "storePathCommitLog": str(store / "commitlog"),
            "flushDiskType": "ASYNC_FLUSH",
            "mappedFileSizeCommitLog": str(16 * 1024 * 1024),
            "mappedFileSizeConsumeQueue": str(15_000 * 20),
            "maxHashSlotNum": "2500",
            "maxIndexNum": "10000",
            "diskMaxUsedSpaceRatio": "95",
            # A busy test machine makes a write wait longer than the 200 ms after which a broker turns
            # messages away ("TIMEOUT_CLEAN_QUEUE"); counts would then depend on who else uses the processor.
            "brokerFastFailureEnable": "false",
            "osPageCacheBusyTimeOutMills": "10000",
            "autoCreateTopicEnable": "false",
            "autoCreateSubscriptionGroup": "true",
            "timerWheelEnable": "false",
            # Where a test turns it on, a flush copies 38 MB, which each second took a sixth of a processor.
            "timerFlushIntervalMs": "60000",
            "registerNameServerPeriod": "10000",
            # TransactionMetricsFlushService of 5.5.0 spins on a core until this time is first over: 10 s by default.
            "transactionMetricFlushInterval": "250",
        }

    def _home(self, name: str) -> Path:
        home = self.directory / name
        (home / "conf").mkdir(parents=True)
        for kind in ("namesrv", "broker", "tools"):
            (home / "conf" / f"logback_{kind}.xml").write_text(_LOGBACK)
        return home

    def _java_process(
        self, name: str, home: Path, heap: str, main: str, *arguments: str, jars: Sequence[Path] | None = None
    ) -> ManagedProcess:
        argv = [
            self._java,
            f"-Xms{heap}",
            f"-Xmx{heap}",
            *FRUGAL_JVM,
            *(self._jvm_options if jars is None else ()),
            *OPEN_MODULES,
            f"-Duser.home={home}",
            f"-Djava.io.tmpdir={home}",  # a broker that is killed leaves its native library there, 10 MB
            f"-Drocketmq.home.dir={home}",
            f"-Drmq.logback.configurationFile={home / 'conf' / 'logback_broker.xml'}",
            "-Dtls.server.mode=disabled",
            *(f"-D{key}={value}" for key, value in self._java_properties.items()),
            "-cp",
            os.pathsep.join(map(str, jars or self._jars)),
            main,
            *arguments,
        ]
        return ManagedProcess(name, argv, home)


def _archived(version: str, jars: Sequence[Path]) -> tuple[str, ...]:
    def run(option: str) -> None:
        with RocketMQCluster(version, brokers=1, jvm_options=(option,))._started() as cluster:
            cluster.create_topic("archived")
            cluster.brokers[0].process.stop(READY_S)
            cluster._name_server.kill()  # asked to end it would write its own classes into the same file

    return archive_options("BrokerStartup", jars, run)


def _broker_names(brokers: int | Sequence[str]) -> Sequence[str]:
    """Return the names, ``broker-a`` and so on where only a number is given."""
    if not isinstance(brokers, int):
        return brokers
    if not 1 <= brokers <= len(_LETTERS):
        raise ValueError(f"1 to {len(_LETTERS)} brokers, not {brokers}")
    return [f"broker-{letter}" for letter in _LETTERS[:brokers]]


def _lease(undo: contextlib.ExitStack) -> int:
    """Return the first of four ports that are given back when ``undo`` unwinds."""
    lease = lease_block()
    undo.callback(lease.release)
    return lease.first


def server_jars(version: str) -> tuple[Path, ...]:
    """Return the jars of name server and broker, fetched first where this machine has not done so yet."""
    return class_path("rocketmq-server", _server_coordinates(version))


def _server_coordinates(version: str) -> list[Coordinate]:
    return [Coordinate(GROUP_ID, f"rocketmq-{part}", version) for part in ("namesrv", "broker", "tools")]


def _write_properties(path: Path, settings: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
