"""Tags from a folder of policies: whatever lies there, a DAG file is parsed."""

from pathlib import Path

from planner.orchestration.tags import MOST_BYTES, policy_tags
from tests.sample_builders import POLICY, kafka_policy


def test_systems_and_clusters_of_all_policies_are_named_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POLICY)
    (tmp_path / "b.yml").write_text(POLICY.replace("shop", "bank"))
    (tmp_path / "c.yaml").write_text(kafka_policy("kafka:9092", "billing"))
    tags = policy_tags(tmp_path, tmp_path)
    assert {"kafka", "rocketmq", "DefaultCluster"} <= set(tags)
    assert list(tags) == sorted(set(tags))


def test_what_is_wrong_is_left_out_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "right.yaml").write_text(POLICY)
    expected = policy_tags(tmp_path, tmp_path)
    for number, text in enumerate(("kind: [", "", "3", "spec: {source: 7}", "spec: {source: {system: [x]}}", "\0")):
        (tmp_path / f"wrong-{number}.yaml").write_text(text)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "deep.yaml").write_text("[" * 60_000)
    (tmp_path / "large.yaml").write_text(POLICY.replace("DefaultCluster", "large") + "#" * MOST_BYTES)
    (tmp_path / "long.yaml").write_text(POLICY.replace("DefaultCluster", "c" * 101))
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.yaml").mkdir()
    assert policy_tags(tmp_path, tmp_path) == expected


def test_no_folder_is_no_tag(tmp_path: Path) -> None:
    assert policy_tags(tmp_path / "nowhere", tmp_path) == ()


def test_policies_of_a_cluster_are_named_as_the_last_run_has_kept_them(tmp_path: Path) -> None:
    """Red when the DAG of a namespace has no tag of its systems and clusters, or an older run's."""
    assert policy_tags("k8s://shop", tmp_path) == ()
    for run, text in (("20261121T101500.000Z", kafka_policy("kafka:9092", "old")), ("20261121T102500.000Z", POLICY)):
        (tmp_path / "runs" / run / "policies").mkdir(parents=True)
        (tmp_path / "runs" / run / "policies" / "shop.yaml").write_text(text)
    (tmp_path / "runs" / "zzz").mkdir()
    assert policy_tags("k8s://shop", tmp_path) == ("DefaultCluster", "rocketmq")
    assert policy_tags("k8s://shop", tmp_path / "nowhere") == ()
