"""A plan as a tree for people who watch: plan, steps, pods, members."""

from rich.text import Text
from rich.tree import Tree

from planner.execution.observation import DeploymentObservation, Observation
from planner.execution.ports import StoredPlan
from planner.execution.progress import StepProgress
from planner.model.pods import Pod


def plan_tree(stored: StoredPlan, observation: Observation | None) -> Tree:
    """Return the plan's steps with how far each is, and below them the pods and members of the last observation."""
    status = stored.status
    tree = Tree(Text.assemble((stored.name, "bold"), f"  {status.phase}: {status.held or status.message}"))
    begun = {progress.index: progress for progress in status.steps}
    for index, step in enumerate(stored.plan.steps):
        tree.add(_step(index, step.action, begun.get(index)))
    members = {pod: member for group in (observation.groups if observation else ()) for member, pod in group.pods}
    for deployment in observation.deployments if observation else ():
        tree.add(_deployment(deployment, members))
    return tree


def _step(index: int, action: str, progress: StepProgress | None) -> Text:
    if progress is None:
        return Text(f"○ {index + 1}. {action}", "dim")
    if progress.undone_at is not None:
        return Text(f"↩ {index + 1}. {action}: undone", "yellow")
    if progress.finished_at is None:
        return Text(f"● {index + 1}. {action}", "cyan")
    return Text(f"✔ {index + 1}. {progress.message or action}", "green")


def _deployment(deployment: DeploymentObservation, members: dict[str, str]) -> Tree:
    if deployment.facts is None:
        return Tree(f"Deployment {deployment.name}: not there")
    ready = deployment.ready if deployment.ready is not None else "?"
    tree = Tree(f"{deployment.title}: {ready} of {deployment.facts.replicas} ready")
    for pod in sorted(deployment.facts.pods or (), key=lambda pod: pod.name):
        branch = tree.add(Text.assemble(f"{pod.name}  ", _state(pod)))
        if pod.name in members:
            branch.add(f"member {members[pod.name]}")
    return tree


def _state(pod: Pod) -> Text:
    if pod.is_ending:
        return Text("ending", "dim")
    if pod.is_ready:
        return Text("ready", "green") if pod.deletion_cost >= 0 else Text("ready, to stop first", "yellow")
    return Text(f"{pod.phase.lower()}, not ready", "yellow")
