"""The server's JSON as series. Source: Prometheus HTTP API v1 (docs/querying/api.md, 2.42 and 3.x alike)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.sources.prometheus.errors import AnswerError, TooLargeError
from planner.text.bounded import TooMuchError, bounded_json

Floats = NDArray[np.float64]
_SHOWN = 120


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One series: ``times`` in seconds since 1970 (UTC), ascending, and as many ``values``; NaN is a value."""

    labels: Mapping[str, str]
    times: Floats
    values: Floats


def data_of(body: bytes, where: str) -> Any:
    """Return the ``data`` of an answer. ``where`` names URL and query.

    Raises ``AnswerError`` for what is no such answer, and for one with warnings: to queries as plain as ours a server
    adds them only when a part of its stores did not answer (Thanos, Mimir), and a sum that lacks a part is no sum.
    """
    try:
        answer = bounded_json(body)
    except TooMuchError as error:
        raise TooLargeError(f"{where}: {error}: take a longer step or a shorter span") from None
    except ValueError:
        raise AnswerError(
            f"{where}: no JSON came but {_shorten(body)}: check the URL and what stands before it"
        ) from None
    if not isinstance(answer, dict) or answer.get("status") != "success" or "data" not in answer:
        raise AnswerError(f"{where}: JSON came that is no Prometheus answer, {_shorten(body)}: check the URL")
    if answer.get("warnings"):
        warnings = "; ".join(map(str, answer["warnings"]))[: 2 * _SHOWN]
        raise AnswerError(
            f"{where}: the server says that its answer is not whole ({warnings}): see to its stores, try again"
        )
    return answer["data"]


def error_of(body: bytes) -> str:
    """Return what an error answer states, in the server's words; of a page, its beginning."""
    try:
        answer = bounded_json(body)
        return f"{answer['errorType']}: {answer['error']}"[: 4 * _SHOWN]
    except (ValueError, TypeError, KeyError):
        return _shorten(body)


def matrix(data: Any, where: str) -> tuple[Series, ...]:
    """Return the series of a range query's answer. Raises ``AnswerError``."""
    try:
        if data["resultType"] != "matrix":
            raise AnswerError(f"{where}: a {data['resultType']} came where a matrix was asked for: check the URL")
        return tuple(_series(series) for series in data["result"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise AnswerError(f"{where}: an answer of another shape came ({error!r}): check the URL") from error


def label_sets(data: Any, where: str) -> tuple[Mapping[str, str], ...]:
    """Return the label sets of a series listing. Raises ``AnswerError``."""
    if not isinstance(data, list) or not all(isinstance(label_set, dict) for label_set in data):
        raise AnswerError(f"{where}: something else than a list of label sets came: check the URL")
    return tuple({str(name): str(value) for name, value in label_set.items()} for label_set in data)


def _series(entry: Any) -> Series:
    pairs = [(float(time), float(value)) for time, value in entry["values"]]
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return Series({str(name): str(value) for name, value in entry["metric"].items()}, table[:, 0], table[:, 1])


def _shorten(body: bytes) -> str:
    text = " ".join(body[: 4 * _SHOWN].decode(errors="replace").split())
    return repr(text[:_SHOWN] + ("..." if len(text) > _SHOWN else ""))
