"""What a real Spark process prints of groups with hostile names: nothing steers a terminal or forges a line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.storage.layout import RunFolder
from planner.text.printable import printable
from spark_apps.run import app
from tests.sample_builders import POLICY, watch
from tests.spark.worlds import SAMPLE_EVERY_S, as_group, land
from tests.unit.test_hostile_logs import EVIL, FORGED, SHOWN

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("java")
def test_a_run_of_spark_shows_hostile_names_as_text(tmp_path: Path) -> None:
    samples = watch(30, lambda queue, number: (1000 + (60 + queue.queue_id) * number, 900 + 55 * number))
    land(tmp_path, as_group(samples, EVIL))
    policies = tmp_path / "policies"
    policies.mkdir()
    for name, group in (("observed", EVIL), ("unknown", f"{EVIL}2")):
        text = POLICY.replace("group: shop}", f"group: {json.dumps(group)}}}")
        text = text.replace("{name: shop}", f"{{name: {name}}}").replace("shop-consumer", f"{name}-consumer")
        (policies / f"{name}.yaml").write_text(text, encoding="utf-8")
    at = samples[-1].at
    arguments = ("--data", tmp_path, "--policies", policies, "--at", at.isoformat(), "--sample-every", SAMPLE_EVERY_S)
    command = [sys.executable, app.__file__, *map(str, arguments)]
    run = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, errors="strict", check=False
    )
    log = run.stdout + run.stderr
    assert run.returncode == 0, log
    assert SHOWN in log, "the name is in it"
    assert printable(log) == log
    assert FORGED not in log.splitlines()
    assert RunFolder.of(tmp_path, at).policy("observed").decision.exists(), "it is decided, whatever its name"
