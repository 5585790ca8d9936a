"""``Proxy``: a real HTTP proxy before a real API server, that answers 429, swallows requests or loses answers."""

import threading
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import urllib3
import yaml

from tests.clusters.kubernetes import ControlPlane

_OWN: Final = ("connection", "content-length", "host", "transfer-encoding")


class Treatment(StrEnum):
    """What becomes of one request."""

    PASS = "passed on"
    BUSY = "answered 429"
    SWALLOW = "never answered"
    LOSE = "passed on, its answer lost"


class Proxy:
    """Passes requests on as ``treat`` says of their method and path. A context manager; ``treated`` counts."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.treat: Callable[[str, str], Treatment] = lambda _method, _path: Treatment.PASS
        self.treated: Counter[Treatment] = Counter()
        self.released = threading.Event()
        self._pool = urllib3.PoolManager(ca_certs=str(cluster.ca_file), maxsize=16, retries=False)
        self._cluster = cluster
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def kubeconfig(self, name: str) -> Path:
        """Return a kubeconfig of the administrator that leads through here."""
        user = yaml.safe_load(self._cluster.kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]
        address = f"http://127.0.0.1:{self._server.server_port}"
        return self._cluster.kubeconfig_for(user["token"], name, server=address)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._pool.clear()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Say nothing: what was treated is counted."""

        def serve(handler: BaseHTTPRequestHandler) -> None:
            self._serve(handler)

        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{method}", serve)
        return Handler

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        treatment = self.treat(handler.command, handler.path)
        self.treated[treatment] += 1
        if treatment is Treatment.BUSY:
            told = b'{"kind": "Status", "status": "Failure", "message": "too many requests", "code": 429}'
            _answer(handler, 429, told, {"Retry-After": "1", "Content-Type": "application/json"})
            return
        if treatment is Treatment.SWALLOW:
            self.released.wait()
            handler.close_connection = True
            return
        headers = {key: value for key, value in handler.headers.items() if key.lower() not in _OWN}
        try:
            found = self._pool.request(handler.command, self._cluster.server + handler.path, body=body, headers=headers)
        except urllib3.exceptions.HTTPError:
            handler.close_connection = True
            return
        if treatment is Treatment.LOSE:
            handler.close_connection = True
            return
        kept = {key: value for key, value in found.headers.items() if key.lower() not in _OWN}
        _answer(handler, found.status, found.data, kept)


def _answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    handler.send_response_only(status)
    for key, value in {**headers, "Content-Length": str(len(body))}.items():
        handler.send_header(key, value)
    handler.end_headers()
    handler.wfile.write(body)
