"""What contract tests share beyond tests/conftest.py."""

from collections.abc import Iterator

import pytest

from tests.clusters.kubernetes import ControlPlane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One running control plane for the whole session: make a namespace of your own, leave its processes alone."""
    with ControlPlane.start() as cluster:
        yield cluster
