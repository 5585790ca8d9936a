"""Policies as objects of the plan's namespace."""

import json

from planner.deployments.api import RolloutApi
from planner.deployments.world import Policies
from planner.documents.policy import ConsumerScalingPolicy, parse_policy


def cluster_policies(api: RolloutApi, namespace: str) -> Policies:
    """Return the way to a policy as it stands in the namespace now; files that it names are read on this host."""

    def read(name: str) -> ConsumerScalingPolicy | None:
        found = api.policy(namespace, name)
        if found is None:
            return None
        document = {
            "apiVersion": found["apiVersion"],
            "kind": found["kind"],
            "metadata": {"name": name, "namespace": namespace},
            "spec": found["spec"],
        }
        return parse_policy(json.dumps(document), f"policy {namespace}/{name}")

    return read
