"""Plain calls to an API server: what the launcher and the kubelet stand-in need, and no more."""

import json
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

Json = dict[str, Any]

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
TIMEOUT_S = 60.0


class ApiError(Exception):
    """An answer other than success; ``status`` is the HTTP code, ``reason`` Kubernetes' own word."""

    def __init__(self, call: str, status: int, body: str) -> None:
        super().__init__(f"{call}: {status} {body[:500]}")
        self.status = status
        self.reason = _reason(body)


class Rest:
    """JSON in, JSON out, as the bearer of ``token``; the server must show a certificate of ``ca_file``."""

    def __init__(self, server: str, ca_file: Path, token: str) -> None:
        self.server = server
        self.ca_file = ca_file
        self._headers = {"Authorization": f"Bearer {token}"}
        self._pool = urllib3.PoolManager(ca_certs=str(ca_file), maxsize=16, retries=False)

    def get(self, path: str, **query: str) -> Json:
        """Return the object or list at ``path``; raise ApiError for any refusal."""
        return self.call("GET", path, query=query)

    def create(self, path: str, body: Json) -> Json:
        """Return what the server made of ``body``."""
        return self.call("POST", path, body)

    def patch(self, path: str, body: Json, kind: str = STRATEGIC) -> Json:
        """Return the object after a patch of ``kind``."""
        return self.call("PATCH", path, body, kind=kind)

    def delete(self, path: str, body: Json | None = None) -> Json:
        """Ask for deletion."""
        return self.call("DELETE", path, body)

    def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """Return the decoded answer; raise ApiError when it is not a success."""
        url = self.server + path + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body)
        headers = {**self._headers, "Content-Type": kind}
        answer = self._pool.request(method, url, body=content, headers=headers, timeout=TIMEOUT_S)
        if answer.status >= 300:
            raise ApiError(f"{method} {path}", answer.status, answer.data.decode(errors="replace"))
        return dict(json.loads(answer.data)) if answer.data else {}

    def text(self, path: str) -> str:
        """Return the answer as it is, whatever its status."""
        answer = self._pool.request("GET", self.server + path, headers=self._headers, timeout=TIMEOUT_S)
        return answer.data.decode(errors="replace")

    def watch(self, path: str, since: str, seconds: int, **query: str) -> Generator[Json, None, None]:
        """Yield watch events after ``since`` until the server ends the watch, at most ``seconds`` later."""
        fields = {**query, "watch": "1", "resourceVersion": since, "timeoutSeconds": str(seconds)}
        answer = self._pool.request(
            "GET",
            f"{self.server}{path}?{urlencode(fields)}",
            headers=self._headers,
            timeout=urllib3.Timeout(connect=TIMEOUT_S, read=seconds + TIMEOUT_S),
            preload_content=False,
        )
        try:
            if answer.status >= 300:
                raise ApiError(f"WATCH {path}", answer.status, answer.data.decode(errors="replace"))
            for line in answer:
                yield json.loads(line)
        finally:
            answer.close()


def _reason(body: str) -> str:
    try:
        return str(json.loads(body).get("reason", ""))
    except (ValueError, AttributeError):
        return ""
