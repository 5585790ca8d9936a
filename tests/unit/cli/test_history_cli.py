"""``planner history`` without a Prometheus server: what options go together."""

import json
from pathlib import Path

import pytest

from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import planner, refused
from tests.unit.sources.prometheus.fake_http import FakeHttp, Request, matrix

AWAY = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("history")
    (made / "policy.yaml").write_text(POLICY)
    return made


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "found neither --prometheus URL nor --policy FILE"),
        (("--all",), "found neither --prometheus URL nor --policy FILE"),
        (("--prometheus", AWAY), "either --all or --group NAME"),
        (("--prometheus", AWAY, "--all", "-g", "shop"), "either --all or --group NAME"),
        (("--prometheus", AWAY, "--all", "--system", "rabbit"), "found 'rabbit', expected rocketmq or kafka"),
        (("--prometheus", AWAY, "--all", "--match", "job"), "option --match: found 'job', expected name=value"),
        (("--prometheus", AWAY, "--all", "--label", "=x"), "option --label: found '=x', expected name=value"),
        (("--prometheus", AWAY, "--all", "--label", "grp=x"), "grp"),
        (("--prometheus", "prometheus:9090", "--all"), "is no URL of a Prometheus server"),
        (("--prometheus", AWAY, "--all", "--bearer-token-file", "none"), "cannot read the secret none"),
        (("--prometheus", AWAY, "--all", "--until", "yesterday"), "option --until: found 'yesterday'"),
        (("--policy", "policy.yaml"), "names no Prometheus server: write its url under spec.source.prometheus"),
        (("--policy", "policy.yaml", "--all", "--match", "a=b"), "leave --all and --match out"),
        (("--policy", "none.yaml"), "none.yaml"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder: Path, options: tuple[str, ...], said: str) -> None:
    refused(planner("history", *options, cwd=folder), 2, said)


def test_a_server_that_is_away_is_out_of_reach() -> None:
    refused(planner("history", "--prometheus", AWAY, "--all"), 3, f"Prometheus {AWAY}", "check the URL")


def _garbage_of_one(request: Request) -> None:
    """Know two groups, and answer no Prometheus answer when asked for the first one's figures."""
    if request.path.endswith("series"):
        found = [
            {"__name__": "kafka_consumergroup_lag", "consumergroup": name, "topic": "orders", "partition": "0"}
            for name in ("bad", "good")
            if name in request.query["match[]"][0] or "consumergroup=" not in request.query["match[]"][0]
        ]
        is_asked = "kafka_consumergroup_lag" in request.query["match[]"][0]
        request.answer(200, json.dumps({"status": "success", "data": found if is_asked else []}))
    elif "bad" in request.query["query"][0]:
        request.answer(200, "<html>", Content_Type="text/html")
    else:
        request.answer(200, matrix())


def test_an_answer_that_is_none_for_one_group_does_not_hide_the_others() -> None:
    with FakeHttp(_garbage_of_one) as server:
        found = planner("history", "--prometheus", server.url, "--all", "--system", "kafka", "-o", "json")
    assert found.returncode == 3, found.stderr
    answer = json.loads(found.stdout)
    assert [one["group"] for one in answer["groups"]] == ["good"]
    assert [one["group"] for one in answer["unread"]] == ["bad"]
