"""An HTTP server on loopback that answers as a test tells it, also as no healthy Prometheus would."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit


class Request:
    """One request, and what a script may do with it."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler
        self.method = handler.command
        self.path = urlsplit(handler.path).path
        self.query = parse_qs(urlsplit(handler.path).query)
        self.headers = handler.headers

    def answer(self, status: int, body: bytes | str, **headers: str) -> None:
        """Answer whole."""
        content = body.encode() if isinstance(body, str) else body
        self.begin(status, len(content), **headers)
        self.send(content)

    def begin(self, status: int, length: int, **headers: str) -> None:
        """Send the head only."""
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.send_header("Content-Length", str(length))
        self._handler.end_headers()

    def send(self, content: bytes) -> None:
        """Send a piece of the body."""
        self._handler.wfile.write(content)
        self._handler.wfile.flush()

    def drop(self) -> None:
        """End the connection without an answer."""
        self._handler.close_connection = True
        self._handler.connection.close()


Script = Callable[[Request], None]


class FakeHttp:
    """Hands each request to ``script``; keeps them all."""

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                request = Request(self)
                requests.append(request)
                script(request)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that went away is what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]], **extra: object) -> str:
    """Return the body of a range query's answer."""
    result = [{"metric": labels, "values": [list(pair) for pair in values]} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}, **extra})


def error(kind: str, message: str) -> str:
    """Return the body of an error as Prometheus writes it."""
    return json.dumps({"status": "error", "errorType": kind, "error": message})
