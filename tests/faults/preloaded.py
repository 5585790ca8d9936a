"""All that ``planner apply`` imports, imported once for all forked processes."""

# ruff: noqa: F401
import planner.cli.apply
import planner.cli.main
import planner.cli.tree
import planner.deployments.drive
import planner.deployments.policies
import planner.deployments.rights
import planner.documents.approve
import planner.documents.plan
import planner.documents.status
import planner.execution.drift
import tests.faults.group
