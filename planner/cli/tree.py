"""A plan as a tree for people who watch: plan, steps, pods, members."""

from rich.tree import Tree

from planner.execution.look import DeploymentLook, Look
from planner.execution.ports import StoredPlan
from planner.execution.progress import StepProgress
from planner.model.deployments import Pod


def plan_tree(stored: StoredPlan, look: Look | None) -> Tree:
    """Return the plan's steps with how far each is, and below them the pods and members that were seen last."""
    status = stored.status
    tree = Tree(f"[bold]{stored.name}[/bold]  {status.phase}: {_plain(status.held or status.message)}")
    begun = {progress.index: progress for progress in status.steps}
    for index, step in enumerate(stored.plan.steps):
        tree.add(_step(index, step.action, begun.get(index)))
    members = {pod: member for group in (look.groups if look else ()) for member, pod in group.pods}
    for found in look.deployments if look else ():
        tree.add(_deployment(found, members))
    return tree


def _step(index: int, action: str, progress: StepProgress | None) -> str:
    if progress is None:
        return f"[dim]○ {index + 1}. {_plain(action)}[/dim]"
    if progress.undone_at is not None:
        return f"[yellow]↩ {index + 1}. {_plain(action)}: undone[/yellow]"
    if progress.finished_at is None:
        return f"[cyan]● {index + 1}. {_plain(action)}[/cyan]"
    return f"[green]✔ {index + 1}. {_plain(progress.message or action)}[/green]"


def _deployment(found: DeploymentLook, members: dict[str, str]) -> Tree:
    if found.facts is None:
        return Tree(f"Deployment {found.name}: not there")
    tree = Tree(
        f"Deployment {found.name}: {found.ready if found.ready is not None else '?'} of {found.facts.replicas} ready"
    )
    for pod in sorted(found.facts.pods or (), key=lambda pod: pod.name):
        branch = tree.add(f"{pod.name}  {_state(pod)}")
        if pod.name in members:
            branch.add(f"member {_plain(members[pod.name])}")
    return tree


def _state(pod: Pod) -> str:
    if pod.is_ending:
        return "[dim]ending[/dim]"
    if pod.is_ready:
        return "[green]ready[/green]" if pod.deletion_cost >= 0 else "[yellow]ready, to stop first[/yellow]"
    return f"[yellow]{pod.phase.lower()}, not ready[/yellow]"


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
