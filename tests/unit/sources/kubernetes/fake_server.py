"""A fake HTTP server that answers each request with the next of some scripted answers. It is no Kubernetes."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Answer = Callable[[socket.socket], None]


def says(body: bytes, status: int = 200) -> Answer:
    """Answer with ``body``."""
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    return lambda client: client.sendall(head + body)


def says_json(content: Any, status: int = 200) -> Answer:
    """Answer with JSON."""
    return says(json.dumps(content).encode(), status)


def says_nothing(client: socket.socket) -> None:
    """Keep the connection open until the other side gives up."""
    while client.recv(4096):
        pass


def trickles(client: socket.socket) -> None:
    """Send a byte now and then, for ever: every single wait is short."""
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        client.sendall(b" ")
        time.sleep(0.05)


def hangs_up(client: socket.socket) -> None:
    """Close the connection in the middle of an answer."""
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")


@contextmanager
def fake_server(*answers: Answer) -> Iterator[tuple[str, list[str]]]:
    """Give (url, request lines seen so far); the last answer is repeated."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[str] = []
    threading.Thread(target=_serve, args=(listener, answers, seen), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def kubeconfig(folder: Path, url: str) -> Path:
    """Write a kubeconfig for ``url``."""
    path = folder / "config"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nusers: [{name: u, user: {token: t}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
    )
    return path


def _serve(listener: socket.socket, answers: Sequence[Answer], seen: list[str]) -> None:
    number = 0
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        answer = answers[min(number, len(answers) - 1)]
        number += 1
        threading.Thread(target=_answer, args=(client, answer, seen), daemon=True).start()


def _answer(client: socket.socket, answer: Answer, seen: list[str]) -> None:
    with client, suppress(OSError):
        head = b""
        while b"\r\n\r\n" not in head:
            if not (part := client.recv(4096)):
                return  # gone before it has asked
            head += part
        seen.append(head.split(b"\r\n")[0].decode())
        answer(client)
