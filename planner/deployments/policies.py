"""Policies as objects of the plan's namespace."""

import json
import os
from pathlib import Path

from planner.deployments.api import RolloutApi
from planner.deployments.world import Policies
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.documents.policy_files import FILES_VARIABLE, check_files


def cluster_policies(api: RolloutApi, namespace: str) -> Policies:
    """Return the way to a policy as it stands in the namespace now.

    Files that it names are read on this host, from its namespace's folder only: ``check_files`` says which.
    """
    folder = os.environ.get(FILES_VARIABLE)
    root = Path(folder) if folder else None

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
        where = f"policy {namespace}/{name}"
        policy = parse_policy(json.dumps(document), where)
        check_files(policy, root, where)
        return policy

    return read
