"""The values for Airflow's chart name what there is: settings, DAGs and policies; what is mounted is a volume."""

import re
from textwrap import indent

import yaml

from planner.policies.fleet import ClusterNamespace, policy_location
from tests.unit.packaging.images import ROOT

VALUES = yaml.safe_load((ROOT / "examples" / "airflow" / "values.yaml").read_text(encoding="utf-8"))
ENV = {entry["name"]: entry["value"] for entry in VALUES["env"]}


def test_every_setting_is_one_that_the_page_names() -> None:
    page = (ROOT / "docs" / "schedule.md").read_text(encoding="utf-8")
    settings = {name for name in ENV if name.startswith("CONSUMER_PLANNER_")}
    assert settings
    assert settings <= set(re.findall(r"`(CONSUMER_PLANNER_[A-Z_]+)`", page))
    assert policy_location(ENV["CONSUMER_PLANNER_POLICIES"]) == ClusterNamespace("shop")


def test_the_bundle_is_the_pages_dag_file_and_is_mounted() -> None:
    ((path, text),) = yaml.safe_load(VALUES["extraConfigMaps"]["consumer-planner-dags"]["data"]).items()
    assert path.endswith(".py")
    assert indent(text.strip(), "   ") in (ROOT / "docs" / "install-airflow.md").read_text(encoding="utf-8")
    (bundle,) = VALUES["dagProcessor"]["dagBundleConfigList"]
    mounts = {mount["mountPath"]: mount["name"] for mount in VALUES["volumeMounts"]}
    assert mounts[bundle["kwargs"]["path"]] == "consumer-planner-dags"
    assert ENV["CONSUMER_PLANNER_DATA"] in mounts
    assert {volume["name"] for volume in VALUES["volumes"]} == set(mounts.values())
