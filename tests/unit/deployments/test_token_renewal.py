"""A token that the server takes no more is read anew from where it came. The server here is a fake one."""

from pathlib import Path

import pytest
import yaml

from planner.deployments.api import RolloutApi
from planner.errors import OutOfReachError
from planner.sources.kubernetes import NotLetInError
from tests.unit.sources.kubernetes.fake_server import fake_server, kubeconfig, says_json

UNKNOWN = says_json({"kind": "Status", "message": "Unauthorized"}, 401)
LEASE = says_json({"metadata": {"name": "lease", "resourceVersion": "1"}})


def with_token_file(folder: Path, url: str) -> tuple[Path, Path]:
    """Return a kubeconfig that names a token's file, and that file with the token ``old`` in it."""
    path, token = kubeconfig(folder, url), folder / "token"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content["users"][0]["user"] = {"tokenFile": str(token)}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    token.write_text("old", encoding="utf-8")
    return path, token


def test_a_renewed_token_is_read_once_the_old_one_is_refused(tmp_path: Path) -> None:
    with fake_server(UNKNOWN, LEASE) as (url, seen):
        path, token = with_token_file(tmp_path, url)
        with RolloutApi.connect(path) as api:
            token.write_text("new", encoding="utf-8")
            assert api.login().token == "old"
            assert api.lease("shop", "lease") is not None
            assert api.login().token == "new"
            assert len(seen) == 2


def test_a_token_that_nobody_renewed_is_not_tried_twice(tmp_path: Path) -> None:
    with fake_server(UNKNOWN) as (url, seen):
        path, _ = with_token_file(tmp_path, url)
        with RolloutApi.connect(path) as api, pytest.raises(NotLetInError, match="renew the token"):
            api.lease("shop", "lease")
        assert len(seen) == 1


def test_a_token_that_cannot_be_read_is_no_other_failure(tmp_path: Path) -> None:
    with fake_server(UNKNOWN) as (url, _):
        path, _ = with_token_file(tmp_path, url)
        with RolloutApi.connect(path) as api:
            path.unlink()
            with pytest.raises(NotLetInError, match="renew the token"):
                api.lease("shop", "lease")


@pytest.mark.parametrize(("status", "told"), [(429, "has too much to do"), (401, "does not know us")])
def test_a_server_that_does_not_tell_the_time_is_not_called_away(tmp_path: Path, status: int, told: str) -> None:
    with fake_server(says_json({"message": "no"}, status)) as (url, _):
        path, _ = with_token_file(tmp_path, url)
        with RolloutApi.connect(path) as api, pytest.raises(OutOfReachError, match=told):
            api.server_time()
