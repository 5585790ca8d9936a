"""``planner history`` without a Prometheus server: what options go together."""

from pathlib import Path

import pytest

from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import planner, refused

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
