"""Containers that are real consumers: the load program's JVM, for process-backed pods."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clusters.artifacts import find_program
from tests.clusters.kafka_load import java_consumer, java_share_consumer
from tests.clusters.kubernetes.rest import Json
from tests.clusters.rocketmq_grpc import grpc_consumer
from tests.clusters.rocketmq_load import API_TIMEOUT_MS, MAIN, compiled, shared_classes

_JVM = ("-Xmx128m", "-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_LOG = "main.log"
_KAFKA_PROGRAMS = Path(__file__).parents[2] / "load" / "kafka"


def rocketmq_consumer(
    name_server: str,
    *,
    group: str,
    topics: Sequence[str],
    client_version: str,
    client_ip: str = "$(POD_IP)",
    instance: str = "$(POD_NAME)",
    options: Mapping[str, str | int | float] | None = None,
) -> Json:
    """Return a container that runs a push consumer with client id ``client_ip@instance``.

    ``$(POD_IP)`` and ``$(POD_NAME)`` are the pod's own, as in any manifest; instance ``DEFAULT`` lets the client name
    itself ``pid#nanoseconds``; several, with commas, are several members. ``options`` are the load program's. It is
    ready once it has started, and ends gracefully on SIGTERM. Raises CannotRunHereError without Java or the jars.
    """
    flags: dict[str, str | int | float] = {
        "name-server": name_server,
        "group": group,
        "topics": ",".join(topics),
        "instances": instance,
        "client-ip": client_ip,
        "strategy": "AVG",
        "consume-from": "CONSUME_FROM_FIRST_OFFSET",
        "api-timeout-ms": API_TIMEOUT_MS,
        **(options or {}),
    }
    jars = compiled(client_version)
    path = os.pathsep.join(map(str, jars))
    program = [find_program("java"), *_JVM, *shared_classes(jars), "-Duser.home=.", "-cp", path, MAIN]
    return {
        "command": program,
        "args": ["consume", *(word for key, value in flags.items() for word in (f"--{key}", str(value)))],
        "env": [_field("POD_IP", "status.podIP"), _field("POD_NAME", "metadata.name")],
        "readinessProbe": _probe("grep", "-q", "^READY", _LOG),
    }


def kafka_consumer(
    bootstrap: str,
    *,
    group: str,
    topic: str,
    delivery_log: str,
    settings: Mapping[str, str | int] | None = None,
    program: str = "pod_consumer.py",
) -> Json:
    """Return a container that runs a librdkafka consumer whose client id is the pod's name.

    ``delivery_log`` may hold ``$(POD_NAME)``; ``settings`` are librdkafka's. It is ready once it was assigned
    something, and leaves the group on SIGTERM. With ``share_consumer.py`` it is one of a share group.
    """
    words = [bootstrap, group, topic, delivery_log, json.dumps(dict(settings or {}))]
    return {
        "command": [sys.executable, str(_KAFKA_PROGRAMS / program)],
        "args": words,
        "env": [_field("POD_NAME", "metadata.name")],
        "readinessProbe": _probe("test", "-e", "assigned"),
    }


def java_kafka_consumer(
    bootstrap: str,
    *,
    group: str,
    topic: str,
    client_version: str,
    delivery_log: str,
    settings: Mapping[str, str | int],
    service_ms: float,
    client: str = "$(POD_NAME)",
) -> Json:
    """Return a container that runs a Java consumer whose client id is the pod's name, or ``client``.

    Several names, with commas, are several consumers in its process.
    ``delivery_log`` and ``settings``, which are the client's own, may hold variables, as ``$(POD_NAME)``. It is ready
    once it was assigned something, and leaves the group on SIGTERM. Raises CannotRunHereError without Java or the jars.
    """
    program, *words = java_consumer(
        bootstrap,
        client,
        client_version=client_version,
        group=group,
        topic=topic,
        delivery_log=delivery_log,
        config={name: str(value) for name, value in settings.items()},
        service_ms=service_ms,
    )
    return {
        "command": [program],
        "args": words,
        "env": [_field("POD_NAME", "metadata.name")],
        "readinessProbe": _probe("grep", "-q", " assigned ", _LOG),
    }


def java_share_container(bootstrap: str, *, group: str, client_version: str, delivery_log: str) -> Json:
    """Return a container that runs a Java consumer of a share group, whose topic is named as its group.

    Its client id is the pod's name, all else the client's default. It is ready once it has polled, and works off its
    batch and closes on SIGTERM. Raises CannotRunHereError without Java or the jars.
    """
    program, *words = java_share_consumer(
        bootstrap, "$(POD_NAME)", client_version=client_version, group=group, topic=group, delivery_log=delivery_log
    )
    return {
        "command": [program],
        "args": words,
        "env": [_field("POD_NAME", "metadata.name")],
        "readinessProbe": _probe("grep", "-q", " assigned ", _LOG),
    }


def grpc_container(endpoints: str, *, group: str, service_ms: int) -> Json:
    """Return a container that runs a gRPC consumer of RocketMQ 5, whose topic is named as its group.

    Its client names itself by its host: in a pod that is the pod's name.
    """
    program, *words = grpc_consumer(endpoints, {group: group}, service_ms=service_ms, home=".")
    command = shlex.join([program, "-Djdk.net.hosts.file=hosts", *words])
    named = f'hostname "$POD_NAME" && echo "127.0.0.1 $POD_NAME" > hosts && exec {command}'
    return {
        "command": [find_program("unshare")],
        "args": ["--uts", "sh", "-c", named],
        "env": [_field("POD_NAME", "metadata.name")],
        "readinessProbe": _probe("grep", "-q", "^READY", _LOG),
    }


def _probe(*command: str) -> Json:
    """Return a probe by a command that a busy machine may take its time for: it says nothing of the consumer."""
    return {"exec": {"command": list(command)}, "periodSeconds": 1, "timeoutSeconds": 60}


def _field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
