"""Hearing of changes at once: kopf watches the plans and keeps the stream going. It writes nothing to them.

Handlers of events only, no state, no finalizers, no peering, no posting: what kopf would note on an object is not its
business here, as the engine keeps everything in the status.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any, Final

import kopf

from planner.controller.plan_cache import PlanCache, key_of
from planner.deployments.api import Login
from planner.documents.crd import plan_resource
from planner.documents.format import API_GROUP, API_VERSION

log = logging.getLogger(__name__)

_REQUEST_S: Final = 30.0
_STREAM_S: Final = 300
"""A whole number: the server takes no other."""
_STOP_S: Final = 0.5


class _Patience:
    """Seconds between requests while the server is away: it is never given up."""

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0), repeat(8.0))


def watch(cache: PlanCache, login: Callable[[], Login], namespaces: tuple[str, ...], stop: threading.Event) -> None:
    """Pass every change to the cache until ``stop`` is set. Returns or raises early when kopf cannot go on."""
    where: dict[str, Any] = {"namespaces": namespaces} if namespaces else {"clusterwide": True}
    asyncio.run(_operate(_registry(cache, login), stop, where))


async def _operate(registry: kopf.OperatorRegistry, stop: threading.Event, where: dict[str, Any]) -> None:
    # Not our event itself: kopf would wait for it on a thread that nobody can end, and hang there when it fails.
    ended = asyncio.Event()
    relay = asyncio.create_task(_relay_stop(stop, ended))
    try:
        await kopf.operator(registry=registry, settings=_settings(), standalone=True, stop_flag=ended, **where)
    finally:
        relay.cancel()


async def _relay_stop(stop: threading.Event, ended: asyncio.Event) -> None:
    while not stop.is_set():
        await asyncio.sleep(_STOP_S)
    ended.set()


def _registry(cache: PlanCache, login: Callable[[], Login]) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

    def enter(**_: Any) -> kopf.ConnectionInfo:
        return _connection(login())

    async def note_event(event: Mapping[str, Any], **_: Any) -> None:
        manifest = event["object"]
        if event["type"] == "DELETED":
            cache.forget(key_of(manifest))
        else:
            cache.note(manifest)

    version = API_VERSION.rpartition("/")[2]
    kopf.on.login(registry=registry, id="enter")(enter)
    kopf.on.event(API_GROUP, version, plan_resource().plural, registry=registry, id="heard")(note_event)
    return registry


def _connection(login: Login) -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(
        server=login.server,
        ca_path=login.ca_file,
        insecure=not login.is_verified,
        scheme="Bearer" if login.token else None,
        token=login.token,
        certificate_path=login.certificate_file,
        private_key_path=login.key_file,
    )


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # to list definitions and namespaces would take rights over the whole cluster
    settings.process.ultimate_exiting_timeout = None
    settings.networking.request_timeout = _REQUEST_S
    settings.networking.connect_timeout = _REQUEST_S
    settings.networking.error_backoffs = _Patience()
    settings.watching.server_timeout = _STREAM_S
    settings.watching.client_timeout = _STREAM_S + _REQUEST_S
    return settings
