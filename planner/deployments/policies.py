"""Policies as objects of the plan's namespace."""

import json

from planner.deployments.api import RolloutApi
from planner.deployments.world import Policies
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.documents.policy_files import FileRules


def cluster_policies(api: RolloutApi, namespace: str) -> Policies:
    """Return the way to a policy as it stands in the namespace now.

    Files that it names are read on this host, from its namespace's folder only, and sent to the servers only that an
    administrator listed: ``FileRules``. Raises ``BadInputError`` for rules that cannot be read.
    """
    rules = FileRules.of_environment()

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
        rules.check(policy, where)
        return policy

    return read
