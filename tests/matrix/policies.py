"""The policy of a cell: what must be there, and the bound at which the cells' truth is stated."""

from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from tests.matrix.cells import Cell

MOST = 12
"""``maxReplicas``, as in docs/policy.md."""

_POLICY = """
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {{name: {name}}}
spec:
  source: {{{source}, cluster: {cluster}, group: {name}}}
  scaleTargetRef: {{name: {name}}}
  maxReplicas: {most}
  membersPerPod: 1
  objective: {{maxUtilisation: 0.8}}
{window}"""
"""A cell's members share one process and its address, each standing for a pod: the planner cannot know that."""


def policy_text(cell: Cell, address: str, window_s: int | None = None) -> str:
    """Return the policy of a cell whose servers are at ``address``; ``window_s`` in place of the default window."""
    servers = ", ".join(f'"{server}"' for server in address.split(","))
    source = f"system: kafka, bootstrapServers: [{servers}]"
    if not cell.is_kafka:
        source = f"system: rocketmq, nameServers: [{servers}]"
    cluster = "matrix" if cell.is_kafka else "DefaultCluster"
    window = f"  window: {{seconds: {window_s}}}\n" if window_s else ""
    return _POLICY.format(name=cell.name, source=source, cluster=cluster, most=MOST, window=window)


def policy(cell: Cell, address: str, window_s: int | None = None) -> ConsumerScalingPolicy:
    """Return the same as a policy."""
    return parse_policy(policy_text(cell, address, window_s), f"policy of {cell.name}")
