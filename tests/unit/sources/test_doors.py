"""Every door is fed its worst: a typed error comes back, within 512 MiB, whoever sent it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors import DOORS

pytestmark = pytest.mark.slow

MOST_MIB = 512
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("door", DOORS)
def test_the_worst_of_each_door_is_a_typed_error_within_bounds(door: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.doors", door], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    answer = json.loads(done.stdout)
    assert answer["error"] != "NoneType", answer
    assert answer["peak_mib"] < MOST_MIB, answer
