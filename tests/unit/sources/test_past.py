"""The past out of metrics around a watch: what cannot be is said before it, what fails later costs only the past."""

import sys
from datetime import timedelta

import pytest

from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.errors import BadInputError, MissingExtraError, OutOfReachError
from planner.sources import past
from planner.sources.past import check_past, past_or_problem
from tests.sample_builders import POLICY, START


def policy(prometheus: str) -> ConsumerScalingPolicy:
    return parse_policy(POLICY.replace("group: shop}", f"group: shop, prometheus: {{{prometheus}}}}}"), "p.yaml")


def test_a_server_is_not_asked_beforehand() -> None:
    check_past(policy("url: http://127.0.0.1:1"))
    check_past(parse_policy(POLICY, "p.yaml"))


@pytest.mark.parametrize(
    ("prometheus", "said"),
    [
        ("url: http://one:9090, bearerTokenFile: missing", "cannot read the secret"),
        ("url: https://one:9090, caFile: missing", "cannot be read"),
    ],
)
def test_settings_that_cannot_be_are_said_beforehand(prometheus: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        check_past(policy(prometheus))


def test_a_missing_extra_is_said_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("planner.sources.prometheus")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"\[prometheus\]"):
        check_past(policy("url: http://one:9090"))


@pytest.mark.parametrize("error", [OutOfReachError("away"), BadInputError("this account may not read")])
def test_a_server_that_fails_costs_the_past_alone(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(past, "read_past", fail)
    found = past_or_problem(policy("url: http://one:9090"), START - timedelta(hours=6), START)
    assert found == (None, (f"the past out of metrics was not read: {error}",))
