"""The Prometheus client against a server that answers well, badly, late or not at all."""

import base64
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from planner.errors import BadInputError, OutOfReachError
from planner.sources.prometheus import Access, AnswerError, Prometheus, QueryError, RefusedError
from planner.sources.prometheus import client as client_module
from tests.unit.sources.prometheus.fake_http import FakeHttp, Request, Script, error, matrix

START = datetime(2026, 11, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
QUERY = 'lag{group="shop"}'


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAUSE_S", 0.0)


def ask(server: FakeHttp, until: datetime = START + HOUR, step_s: float = 60.0, **options: float) -> object:
    with Prometheus(Access(server.url), **options) as prometheus:
        return prometheus.range(QUERY, START, until, step_s)


def says(status: int, body: str | bytes, **headers: str) -> Script:
    return lambda request: request.answer(status, body, **headers)


def test_a_range_is_asked_for_with_both_ends_and_step() -> None:
    with FakeHttp(says(200, matrix(({"group": "shop"}, [(START.timestamp(), "3")])))) as server:
        (series,) = ask(server)
    assert server.requests[0].path == "/api/v1/query_range"
    assert server.requests[0].query == {
        "query": [QUERY],
        "start": [f"{START.timestamp():.3f}"],
        "end": [f"{(START + HOUR).timestamp():.3f}"],
        "step": ["60.000"],
    }
    assert (series.labels, series.times.tolist(), series.values.tolist()) == (
        {"group": "shop"},
        [START.timestamp()],
        [3.0],
    )


@pytest.mark.parametrize(
    ("days", "step_s", "requests", "most"),
    [(14, 60.0, 15, 1440), (14, 1.0, 110, 11_000), (14, 3600.0, 15, 24), (0.5, 60.0, 1, 721)],
)
def test_long_spans_are_asked_in_parts_that_meet_without_overlap(
    days: float, step_s: float, requests: int, most: int
) -> None:
    with FakeHttp(says(200, matrix())) as server:
        ask(server, START + timedelta(days=days), step_s)
        spans = [(float(one.query["start"][0]), float(one.query["end"][0])) for one in server.requests]
    points = [round((end - start) / step_s) + 1 for start, end in spans]
    assert (len(spans), max(points)) == (requests, most)
    assert all(before[1] + step_s == after[0] for before, after in pairwise(spans))
    assert spans[0][0] == START.timestamp()
    assert sum(points) == int(days * 86_400 / step_s) + 1


FIRST = START.timestamp()


@pytest.mark.parametrize(
    "times",
    [
        [FIRST - 60],
        [FIRST + 3660],
        [FIRST, FIRST + 86_400 * 365],
        [FIRST + 60, FIRST],
        [FIRST, FIRST],
        [FIRST, FIRST + 10],
        [float("nan")],
        [float("inf")],
        [-float("inf")],
        [1e300],
        [0.0],
    ],
)
def test_a_value_of_a_time_that_was_not_asked_for_is_no_answer(times: list[float]) -> None:
    """Red where it lands in another column, or its index in none."""
    with (
        FakeHttp(says(200, matrix(({"a": "1"}, [(at, "1") for at in times])))) as server,
        pytest.raises(AnswerError, match=r"a value of time \S+ came, once more or outside of what was asked for"),
    ):
        ask(server)


def test_parts_of_one_series_are_joined_in_order() -> None:
    def script(request: Request) -> None:
        start = float(request.query["start"][0])
        other = [({"b": "2"}, [(start, "9")])] if len(request.query) and start > START.timestamp() else []
        request.answer(200, matrix(({"a": "1"}, [(start, "1")]), *other))

    with FakeHttp(script) as server:
        one, two = ask(server, START + timedelta(days=2), 3600.0)
    assert np.diff(one.times).tolist() == [86_400.0, 86_400.0]
    assert (two.labels, len(two.times)) == ({"b": "2"}, 2)


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (400, error("bad_data", "1:5: parse error"), QueryError, ["status 400", "bad_data: 1:5: parse error"]),
        (422, error("execution", "query processing would load too many samples"), QueryError, ["too many samples"]),
        (404, "<html>Not here</html>", QueryError, ["status 404", "<html>Not here</html>", "prefix"]),
        (401, "Unauthorized", RefusedError, ["status 401", "bearerTokenFile"]),
        (403, "<h1>Forbidden</h1>", RefusedError, ["status 403", "Forbidden"]),
        (302, "", RefusedError, ["status 302", "elsewhere"]),
        (500, error("internal", "out of disk"), OutOfReachError, ["status 500", "internal: out of disk"]),
        (503, error("timeout", "query timed out"), OutOfReachError, ["timeout: query timed out"]),
        (200, "<html><title>Log in</title></html>", AnswerError, ["no JSON", "Log in"]),
        (200, '{"status":"success"}', AnswerError, ["no Prometheus answer"]),
        (200, "[1, 2]", AnswerError, ["no Prometheus answer"]),
        (200, "[" * 200_000, AnswerError, ["no JSON"]),
        (200, '{"status":"success","data":{"resultType":"vector","result":[]}}', AnswerError, ["vector", "matrix"]),
        (200, '{"status":"success","data":{"resultType":"matrix","result":[{"metric":3}]}}', AnswerError, ["shape"]),
        (200, matrix(warnings=["store eu-2 did not answer"]), AnswerError, ["not whole", "store eu-2 did not answer"]),
    ],
)
def test_a_bad_answer_is_named_with_url_query_and_what_came(
    status: int, body: str, kind: type[Exception], words: list[str]
) -> None:
    with FakeHttp(says(status, body)) as server, pytest.raises(kind) as caught:
        ask(server)
    assert type(caught.value) is kind
    for word in [server.url, QUERY, *words]:
        assert word in str(caught.value)


def test_an_explanation_that_is_no_warning_is_no_fault() -> None:
    with FakeHttp(says(200, matrix(infos=["metric might not be a counter"]))) as server:
        assert ask(server) == ()


@pytest.mark.parametrize(("status", "tries"), [(503, 2), (500, 2), (429, 2), (400, 1), (401, 1), (404, 1)])
def test_only_what_may_pass_is_tried_again_and_once(status: int, tries: int) -> None:
    with FakeHttp(says(status, "no")) as server, pytest.raises((BadInputError, OutOfReachError)):
        ask(server)
    assert len(server.requests) == tries


def test_the_second_try_may_succeed() -> None:
    def script(request: Request) -> None:
        if len(server.requests) == 1:
            request.drop()
        else:
            request.answer(200, matrix())

    with FakeHttp(script) as server:
        assert ask(server) == ()


def test_html_with_status_200_is_not_asked_for_again() -> None:
    with FakeHttp(says(200, "<html>")) as server, pytest.raises(AnswerError):
        ask(server)
    assert len(server.requests) == 1


def _silent(over: threading.Event) -> Script:
    return lambda request: (over.wait(30), request.drop())[1]


def _dripping(over: threading.Event) -> Script:
    def script(request: Request) -> None:
        request.begin(200, 1_000_000)
        while not over.wait(0.05):
            request.send(b" ")

    return script


@pytest.mark.parametrize("behaviour", [_silent, _dripping])
def test_a_server_that_hangs_or_drips_is_given_up(behaviour: Callable[[threading.Event], Script]) -> None:
    over = threading.Event()
    with FakeHttp(behaviour(over)) as server:
        try:
            with pytest.raises(OutOfReachError, match=r"no whole answer within 0\.2 s"):
                ask(server, timeout_s=0.2)
        finally:
            over.set()


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MOST_BYTES", 1 << 20)
    with FakeHttp(says(200, b" " * (2 << 20))) as server, pytest.raises(AnswerError, match="more than 1 MiB"):
        ask(server)


def test_nobody_there_is_out_of_reach() -> None:
    with FakeHttp(says(200, "")) as server:
        url = server.url
    with Prometheus(Access(url)) as prometheus, pytest.raises(OutOfReachError, match="no answer"):
        prometheus.range(QUERY, START, START, 60)


def test_a_redirect_takes_no_account_along(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret-token\n")
    with (
        FakeHttp(says(200, matrix())) as elsewhere,
        FakeHttp(says(302, "", Location=elsewhere.url)) as server,
        Prometheus(Access(server.url, bearer_token_file=token)) as prometheus,
        pytest.raises(RefusedError),
    ):
        prometheus.range(QUERY, START, START, 60)
    assert elsewhere.requests == []


def test_the_account_comes_from_a_file_and_is_read_anew(tmp_path: Path) -> None:
    token, pair = tmp_path / "token", tmp_path / "pair"
    token.write_text("first\n")
    pair.write_text("planner:pa:ss\n")
    with FakeHttp(says(200, matrix())) as server:
        with Prometheus(Access(server.url, bearer_token_file=token)) as prometheus:
            prometheus.range(QUERY, START, START, 60)
            token.write_text("second\n")
            prometheus.range(QUERY, START, START, 60)
        with Prometheus(Access(server.url, basic_auth_file=pair)) as prometheus:
            prometheus.range(QUERY, START, START, 60)
    sent = [one.headers["Authorization"] for one in server.requests]
    assert sent == ["Bearer first", "Bearer second", f"Basic {base64.b64encode(b'planner:pa:ss').decode()}"]


@pytest.mark.parametrize("status", [200, 400, 401, 503])
def test_secrets_are_in_no_error_and_no_log(tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    token = tmp_path / "token"
    token.write_text("s3cret-token")
    with (
        FakeHttp(says(status, "<html>")) as server,
        Prometheus(Access(server.url, bearer_token_file=token)) as prometheus,
        pytest.raises((BadInputError, OutOfReachError)) as caught,
    ):
        prometheus.range(QUERY, START, START, 60)
    assert server.requests[0].headers["Authorization"] == "Bearer s3cret-token"
    assert "s3cret" not in str(caught.value) + caplog.text + repr(prometheus)


@pytest.mark.parametrize(
    "url", ["", "prometheus:9090", "ftp://host", "http://", "http://host:99999", "http://host/?a=b", "http://host#x"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadInputError, match="no URL of a Prometheus server"):
        Access(url)


def test_a_url_with_an_account_is_refused_without_repeating_it() -> None:
    with pytest.raises(BadInputError) as caught:
        Access("https://planner:s3cret@host")
    assert "s3cret" not in str(caught.value)


def test_a_prefix_is_kept() -> None:
    with FakeHttp(says(200, matrix())) as server, Prometheus(Access(f"{server.url}/team/prometheus/")) as prometheus:
        prometheus.range(QUERY, START, START, 60)
    assert server.requests[0].path == "/team/prometheus/api/v1/query_range"


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), ("", "empty"), ("one\ntwo", "several lines"), ("kein-umlaut-ü", "not ASCII")],
)
def test_a_secret_file_that_cannot_serve_is_named(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInputError, match=words) as caught:
        Access("http://host", bearer_token_file=path).headers()
    assert str(path) in str(caught.value)


def test_two_accounts_are_one_too_many() -> None:
    with pytest.raises(BadInputError, match="keep one of them"):
        Access("http://host", bearer_token_file=Path("a"), basic_auth_file=Path("b"))


def test_a_password_without_a_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pair").write_text("no-colon")
    with pytest.raises(BadInputError, match="user:password"):
        Access("http://host", basic_auth_file=tmp_path / "pair").headers()


def test_authorities_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(BadInputError, match=r"ca\.pem"):
        Access("https://host", ca_file=tmp_path / "ca.pem").tls()


def test_without_httpx_the_extra_is_named() -> None:
    code = "import sys; sys.modules['httpx'] = None; import planner.sources.prometheus"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install '.[prometheus]'" in run.stderr.splitlines()[-1]


def test_only_get_requests_are_sent() -> None:
    with FakeHttp(says(200, matrix())) as server:
        ask(server)
    assert {one.method for one in server.requests} == {"GET"}
