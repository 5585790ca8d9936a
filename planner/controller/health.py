"""``/healthz`` and ``/readyz``: 200, or 503 with a sentence that says what is wrong."""

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from planner.errors import BadInputError

Check = Callable[[], str | None]
"""What is wrong, ``None`` when nothing is."""


class _Handler(BaseHTTPRequestHandler):
    checks: dict[str, Check]

    def do_GET(self) -> None:
        """Answer one of the known paths."""
        check = self.checks.get(self.path.partition("?")[0])
        if check is None:
            self._answer(HTTPStatus.NOT_FOUND, f"there are {', '.join(self.checks)}")
        elif (wrong := check()) is not None:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, wrong)
        else:
            self._answer(HTTPStatus.OK, "ok")

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing: a probe comes every few seconds."""


def serve_health(address: str, port: int, is_alive: Check, is_ready: Check) -> ThreadingHTTPServer:
    """Serve both checks on a thread; ``shutdown()`` ends it. Raises ``BadInputError`` for a port that is taken."""
    handler = type("Handler", (_Handler,), {"checks": {"/healthz": is_alive, "/readyz": is_ready}})
    try:
        server = _server_class(address)((address, port), handler)
    except OSError as error:
        raise port_error("--health-port", port, error) from error
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server


def _server_class(address: str) -> type[ThreadingHTTPServer]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return type("Server", (ThreadingHTTPServer,), {"address_family": family})


def port_error(option: str, port: int, error: OSError) -> BadInputError:
    """Return the error for a port that cannot be listened on."""
    return BadInputError(f"{option} {port} cannot be listened on: {error.strerror}: name another one")
