"""``Prometheus``: read-only questions to one server, each by a deadline, tried twice at most."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Self

import numpy as np

from planner.errors import MissingExtraError, OutOfReachError
from planner.sources.prometheus.access import Access
from planner.sources.prometheus.answers import Series, data_of, error_of, label_sets, matrix
from planner.sources.prometheus.errors import AnswerError, QueryError, RefusedError, TooLargeError
from planner.text.bounded import MOST_BYTES, TooMuchError, Unpacker

try:
    import httpx
except ImportError as missing:
    raise MissingExtraError("reading Prometheus", "prometheus") from missing

log = logging.getLogger(__name__)

MOST_POINTS: Final = 11_000
"""A server refuses a range query with more points a series (``web/api/v1``, fixed)."""
SPAN_S: Final = 86_400.0
"""A range query covers at most a day, so that no single answer grows with the length of the history."""
_LEAST_POINTS: Final = 60
"""A span with fewer points is not halved any more: the server sends too much, however little is asked for."""
_PAUSE_S: Final = 0.5
_BUSY: Final = 429
_REFUSED: Final = frozenset({401, 403, 407})
_SHOWN: Final = 300


class Prometheus:
    """One server; a context manager. Only GET requests are sent, to paths that read.

    ``timeout_s`` limits each wait and, checked with every piece that comes, each try. A try that reached no server, ran
    out of time or met a busy server (429, 5xx) is followed by one more. Redirects are not followed: they lead to pages
    for people, or take the account elsewhere.
    """

    def __init__(self, access: Access, *, timeout_s: float = 30.0) -> None:
        self.url = access.base
        self._access = access
        self._timeout_s = timeout_s
        self._http = httpx.Client(verify=access.tls(), timeout=timeout_s, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; closing twice does nothing."""
        self._http.close()

    def range(self, query: str, since: datetime, until: datetime, step_s: float) -> tuple[Series, ...]:
        """Return the series of ``query`` at ``since``, ``since + step_s`` and so on until ``until``, both included.

        Long spans are asked for in parts; the server sees at most ``MOST_POINTS`` points a series at a time. Raises
        ``QueryError``, ``RefusedError``, ``AnswerError``, ``OutOfReachError``.
        """
        first, last = since.timestamp(), until.timestamp()
        points = int(max(0.0, last - first) / step_s) + 1
        each = max(1, min(MOST_POINTS, int(SPAN_S / step_s)))
        answers = [
            self._range_within(query, first + start * step_s, first + (min(start + each, points) - 1) * step_s, step_s)
            for start in range(0, points, each)
        ]
        return _join(answers)

    def series(self, selectors: Sequence[str], since: datetime, until: datetime) -> tuple[Mapping[str, str], ...]:
        """Return the label sets of all series that match any selector and have samples in the span."""
        asked: list[tuple[str, str]] = [("match[]", selector) for selector in selectors]
        asked += [("start", f"{since.timestamp():.3f}"), ("end", f"{until.timestamp():.3f}")]
        where = self._where(", ".join(selectors))
        return label_sets(data_of(self._get("series", asked, where), where), where)

    def _range_within(self, query: str, first: float, last: float, step_s: float) -> tuple[Series, ...]:
        asked = [("query", query), ("start", f"{first:.3f}"), ("end", f"{last:.3f}"), ("step", f"{step_s:.3f}")]
        where = self._where(query)
        try:
            answer = matrix(data_of(self._get("query_range", asked, where), where), where)
        except TooLargeError:
            half = int((last - first) / step_s / 2)
            if half < _LEAST_POINTS:
                raise
        else:
            _check_times(answer, first, last, step_s, where)
            return answer
        early = self._range_within(query, first, first + half * step_s, step_s)
        return _join([early, self._range_within(query, first + (half + 1) * step_s, last, step_s)])

    def _where(self, query: str) -> str:
        shown = query if len(query) <= _SHOWN else f"{query[:_SHOWN]}..."
        return f"Prometheus {self.url}, query {shown}"

    def _get(self, path: str, asked: Sequence[tuple[str, str]], where: str) -> bytes:
        try:
            return self._try(path, asked, where)
        except OutOfReachError as error:
            if isinstance(error, AnswerError):
                raise
            log.info("query tried again", extra={"url": self.url, "reason": str(error)})
            time.sleep(_PAUSE_S)
            return self._try(path, asked, where)

    def _try(self, path: str, asked: Sequence[tuple[str, str]], where: str) -> bytes:
        try:
            status, body = self._answer(path, asked, where)
        except httpx.TimeoutException as error:
            raise self._too_late(where) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise OutOfReachError(f"{where}: no answer ({_reason(error)}): check the URL and that it is up") from error
        if status != httpx.codes.OK:
            raise _refusal(status, body, where)
        return body

    def _answer(self, path: str, asked: Sequence[tuple[str, str]], where: str) -> tuple[int, bytes]:
        """Return status and body, whole, within the time limit: a server that drips is as bad as a silent one."""
        deadline = time.monotonic() + self._timeout_s
        params = httpx.QueryParams(list(asked))
        headers = {**self._access.headers(), "Accept-Encoding": "gzip"}
        body = bytearray()
        with self._http.stream("GET", f"{self.url}/api/v1/{path}", params=params, headers=headers) as answer:
            unpack = _unpacking(answer.headers.get("Content-Encoding", ""), where)
            for packed in answer.iter_raw():
                if time.monotonic() > deadline:
                    raise self._too_late(where)
                try:
                    body += unpack(packed)
                except TooMuchError as error:
                    raise TooLargeError(f"{where}: {error}: take a longer step") from error
                except ValueError as error:
                    raise AnswerError(f"{where}: what came is {error}: check what stands before the server") from error
                if len(body) > MOST_BYTES:
                    raise TooLargeError(f"{where}: more than {MOST_BYTES >> 20} MiB came: take a longer step")
            return answer.status_code, bytes(body)

    def _too_late(self, where: str) -> OutOfReachError:
        return OutOfReachError(
            f"{where}: no whole answer within {self._timeout_s:g} s: take a longer step or a shorter span, or see why "
            f"the server is slow"
        )


def _unpacking(encoding: str, where: str) -> Callable[[bytes], bytes]:
    """Return what undoes an answer's encoding within bounds: 380 KB of gzip can be 4 GB."""
    match encoding.strip().lower():
        case "" | "identity":
            return bytes
        case "gzip" | "x-gzip":
            return Unpacker().unpack
        case _:
            raise AnswerError(
                f"{where}: encoding {encoding[:20]!r} came, gzip was asked for: check what stands before it"
            )


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _refusal(status: int, body: bytes, where: str) -> Exception:
    problem = f"{where}: status {status} came, {error_of(body)}"
    if status in _REFUSED:
        return RefusedError(f"{problem}: give an account that may read (bearerTokenFile or basicAuthFile)")
    if status == _BUSY or status >= 500:
        return OutOfReachError(f"{problem}: see whether the server is well, then try again")
    if 300 <= status < 400:
        return RefusedError(
            f"{problem}: it wants to lead us elsewhere; give the API's own URL, and an account if it asks"
        )
    if status == httpx.codes.NOT_FOUND:
        return QueryError(f"{problem}: there is no Prometheus API below this URL; correct it (a prefix is missing?)")
    return QueryError(f"{problem}: ask for less (a longer step, fewer topics), or correct the settings")


def _check_times(answer: Sequence[Series], first: float, last: float, step_s: float, where: str) -> None:
    """Raise ``AnswerError`` unless the values of each series are of times that were asked for, in order, one each."""
    for series in answer:
        columns = (series.times - first) / step_s
        is_asked = np.isfinite(columns) & (np.abs(columns) < 2**53)
        nearest = np.rint(np.where(is_asked, columns, -1.0))
        is_asked &= (nearest >= 0) & (nearest <= np.rint((last - first) / step_s))
        is_asked[1:] &= np.diff(nearest) > 0
        if not is_asked.all():
            strange = float(series.times[np.flatnonzero(~is_asked)[0]])
            raise AnswerError(
                f"{where}: a value of time {strange:.3f} came, once more or outside of what was asked for, "
                f"{first:.3f} to {last:.3f} every {step_s:.3f} s: check what stands before the server"
            )


def _join(ranges: Sequence[tuple[Series, ...]]) -> tuple[Series, ...]:
    if len(ranges) == 1:
        return ranges[0]
    pieces: dict[tuple[tuple[str, str], ...], list[Series]] = {}
    for series_of_range in ranges:
        for series in series_of_range:
            pieces.setdefault(tuple(sorted(series.labels.items())), []).append(series)
    return tuple(
        Series(
            dict(key), np.concatenate([series.times for series in of]), np.concatenate([series.values for series in of])
        )
        for key, of in pieces.items()
    )
